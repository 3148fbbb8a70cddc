"""Every metric: its name, help and labels declared once, its numbers kept plainly.

A count on the admission path is one addition on a dictionary, without a lock:
admission has one thread, and the thread that is asked for ``/metrics`` only
reads (:mod:`webhook.exposition`).

Labels hold only what cannot grow without bound: fixed words, and names of
kinds and constraints (checked names, with a cap on their number). Never text.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from webhook.following_metrics import FOLLOWING_METRICS
from webhook.metric import Metric
from webhook.report_metrics import REPORT_METRICS
from webhook.specialisation_metrics import SPECIALISATION_METRICS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

GATEKEEPER_SECONDS: Final = (
    *(n / 1000 for n in range(1, 10)),
    *(n / 100 for n in range(1, 10)),
    *(n / 10 for n in range(1, 10)),
    *(n / 2 for n in range(2, 21)),
)
"""Gatekeeper's bounds of a request's duration, 1 ms to 10 s."""

REQUEST_SECONDS: Final = (0.0001, 0.0002, 0.0003, 0.0005, 0.0007, *GATEKEEPER_SECONDS)
"""Gatekeeper's, and some below a millisecond: most reviews here end before its first."""

INGESTION_SECONDS: Final = (
    *(0.001, 0.002, 0.005),
    *(n / 100 for n in range(1, 10)),
    *(0.1, 0.2, 0.3, 0.4, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0),
)

_G = "gatekeeper_"
_W = "waddle_"

VALIDATION_REQUESTS: Final = Metric(
    f"{_G}validation_request_count",
    "counter",
    "Requests to the validation webhook, by what they were answered.",
    ("admission_status", "admission_dryrun"),
    gatekeeper=True,
)
VALIDATION_SECONDS: Final = Metric(
    f"{_G}validation_request_duration_seconds",
    "histogram",
    "Time from a request's last byte to its answer.",
    ("admission_status",),
    gatekeeper=True,
    buckets=REQUEST_SECONDS,
)
CONSTRAINTS: Final = Metric(
    f"{_G}constraints",
    "gauge",
    "Known constraints.",
    ("enforcement_action", "status"),
    gatekeeper=True,
)
TEMPLATES: Final = Metric(
    f"{_G}constraint_templates", "gauge", "Known templates.", ("status",), gatekeeper=True
)
TEMPLATES_WITH_CEL: Final = Metric(
    f"{_G}constraint_templates_with_cel",
    "gauge",
    "Templates with the CEL engine.",
    gatekeeper=True,
)
INGESTIONS: Final = Metric(
    f"{_G}constraint_template_ingestion_count",
    "counter",
    "Templates compiled, by outcome.",
    ("status",),
    gatekeeper=True,
)
INGESTION_DURATION: Final = Metric(
    f"{_G}constraint_template_ingestion_duration_seconds",
    "histogram",
    "Time to compile a template.",
    ("status",),
    gatekeeper=True,
    buckets=INGESTION_SECONDS,
)
VIOLATIONS: Final = Metric(
    f"{_W}constraint_violations",
    "counter",
    "Violations found at admission, by constraint and action; beyond --max-constraint-series "
    "constraints they are counted under constraint_name=_other.",
    ("constraint_kind", "constraint_name", "enforcement_action"),
)
EVALUATION_ERRORS: Final = Metric(
    f"{_W}evaluation_errors",
    "counter",
    "Evaluations of a template that failed, by template kind.",
    ("constraint_kind",),
)
OVERRUNS: Final = Metric(
    f"{_W}evaluation_overruns",
    "counter",
    "Evaluations ended because they took more than --evaluation-budget, by template kind.",
    ("constraint_kind",),
)
POLICY_FAULTS: Final = Metric(
    f"{_W}policy_faults",
    "counter",
    "Constraints that matched a request and could not be decided, by cause (parse, compile, "
    "template, constraint, error, overrun, suspended, deadline) and by answer (reject, warn, "
    "record).",
    ("constraint_kind", "cause", "answer"),
)
ENGINE_FAULTS: Final = Metric(
    f"{_W}engine_faults",
    "counter",
    "Evaluations that ended in a fault of the engine's own (a bug), by template kind; the policy is "
    "treated as one that fails.",
    ("constraint_kind",),
)
BREAKERS: Final = Metric(
    f"{_W}constraint_suspended",
    "gauge",
    "1 for each constraint that is not evaluated because it took too long repeatedly; at most "
    "--max-constraint-series of them.",
    ("constraint_kind", "constraint_name"),
)
SLOW_REVIEWS: Final = Metric(
    f"{_W}slow_reviews",
    "counter",
    "Reviews that took too long for the admission thread and were carried on beside it.",
)
IN_FLIGHT: Final = Metric(
    f"{_W}requests_in_flight", "gauge", "Requests received and not yet answered."
)
WAITING_BYTES: Final = Metric(
    f"{_W}waiting_bytes", "gauge", "Bytes of bodies received and not yet reviewed."
)
REFUSED: Final = Metric(
    f"{_W}requests_refused",
    "counter",
    "Requests answered with anything but a decision, by reason.",
    ("reason",),
)
UNDECIDABLE: Final = Metric(
    f"{_W}objects_undecidable",
    "counter",
    "Objects refused because they are too deep or too large to be reviewed.",
)
CONNECTIONS: Final = Metric(f"{_W}connections", "gauge", "Open connections to the webhook.")
CLOSED: Final = Metric(
    f"{_W}connections_closed",
    "counter",
    "Connections that the server closed for a reason of its own.",
    ("reason",),
)
HANDSHAKES: Final = Metric(
    f"{_W}handshakes", "gauge", "Connections to the webhook that are in their TLS handshake."
)
HANDSHAKES_FAILED: Final = Metric(
    f"{_W}handshakes_failed",
    "counter",
    "TLS handshakes that came to nothing, by reason (error, timeout, too_many_connections).",
    ("reason",),
)
LAG: Final = Metric(
    f"{_W}event_loop_lag_seconds",
    "gauge",
    "How late the admission thread came to its last tick.",
)
LAG_MAX: Final = Metric(
    f"{_W}event_loop_lag_max_seconds",
    "gauge",
    "The largest such lag since the start.",
)
LAG_SECONDS: Final = Metric(
    f"{_W}event_loop_delay_seconds",
    "histogram",
    "How late the admission thread came to a timer that is set ten times a second.",
    buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0),
)
SNAPSHOT: Final = Metric(
    f"{_W}snapshot_info",
    "gauge",
    "Always 1; the label names the revision in force, equal on replicas that enforce the same.",
    ("digest",),
)
SNAPSHOT_REVISION: Final = Metric(
    f"{_W}snapshot_revision", "gauge", "Number of the revision in force, 0 before the first."
)
RELOADS: Final = Metric(
    f"{_W}reloads",
    "counter",
    "Loads of policies or certificates from the disk, by outcome.",
    ("subject", "status"),
)
RELOAD_FAULT: Final = Metric(
    f"{_W}reload_failing",
    "gauge",
    "1 while the last load failed and the revision before it is kept.",
    ("subject",),
)
RELOAD_SECONDS: Final = Metric(
    f"{_W}last_reload_duration_seconds", "gauge", "Time of the last load.", ("subject",)
)
CERT_NOT_AFTER: Final = Metric(
    f"{_W}cert_not_after_timestamp_seconds",
    "gauge",
    "When the server's certificate ends, in seconds since 1970.",
)
READY: Final = Metric(f"{_W}ready", "gauge", "1 when /readyz says so.")
BUILD: Final = Metric(f"{_W}build_info", "gauge", "Always 1.", ("version",))

DECISIONS_OFFERED: Final = Metric(
    f"{_W}decisions_offered",
    "counter",
    "Records that there were to export; equal to those acknowledged, sent, dropped and queued.",
)
DECISIONS_ACKNOWLEDGED: Final = Metric(
    f"{_W}decisions_acknowledged", "counter", "Records that a sidecar made durable."
)
DECISIONS_SENT: Final = Metric(
    f"{_W}decisions_sent", "counter", "Records sent to a receiver that never acknowledges."
)
DECISIONS_RETRIED: Final = Metric(
    f"{_W}decisions_retried", "counter", "Records sent again after a connection was lost."
)
DECISIONS_DROPPED: Final = Metric(
    f"{_W}decisions_dropped",
    "counter",
    "Records that will never be exported, by reason.",
    ("reason",),
)
DECISIONS_CONNECT_FAILURES: Final = Metric(
    f"{_W}decisions_connect_failures", "counter", "Attempts to reach the sidecar that failed."
)
DECISIONS_FAULTS: Final = Metric(
    f"{_W}decisions_export_faults",
    "counter",
    "Connections to the sidecar that a bug ended; the export began anew.",
)
DECISIONS_QUEUED: Final = Metric(f"{_W}decisions_queued", "gauge", "Records not yet acknowledged.")
DECISIONS_QUEUED_BYTES: Final = Metric(
    f"{_W}decisions_queued_bytes", "gauge", "Bytes of records not yet acknowledged."
)
DECISIONS_CONNECTED: Final = Metric(
    f"{_W}decisions_connected", "gauge", "1 while connected to the sidecar."
)

POLICY_STATES: Final = Metric(
    f"{_W}policies",
    "gauge",
    "Templates and constraints by the state that their conditions tell, of all replicas together; "
    "every replica of --operation=status says the same.",
    ("kind", "state"),
)
POLICIES_NOT_NEWEST: Final = Metric(
    f"{_W}policies_not_newest",
    "gauge",
    "Templates and constraints of which this replica does not enforce the newest generation: an "
    "earlier one because of an error, none because of an error, or another one by annotation.",
    ("kind", "cause"),
)
POLICY_REVISIONS: Final = Metric(
    f"{_W}policy_revisions", "gauge", "PolicyRevision objects that the replica knows."
)
CLUSTER_FAULTS: Final = Metric(
    f"{_W}cluster_faults", "counter", "Times that a bug made the replica begin following anew."
)

AUDIT_SECONDS: Final = tuple(60.0 * n for n in (1, 3, 5, 10, 15, 20, 40, 80, 160, 320))
"""Gatekeeper's bounds of a sweep's duration."""

AUDIT_DURATION: Final = Metric(
    f"{_G}audit_duration_seconds",
    "histogram",
    "Duration of the audit's sweeps.",
    gatekeeper=True,
    buckets=(1.0, 5.0, 15.0, 30.0, *AUDIT_SECONDS),
)
AUDIT_LAST_RUN: Final = Metric(
    f"{_G}audit_last_run_time",
    "gauge",
    "When the last sweep began, in seconds since 1970.",
    gatekeeper=True,
)
AUDIT_LAST_RUN_END: Final = Metric(
    f"{_G}audit_last_run_end_time",
    "gauge",
    "When the last sweep ended, in seconds since 1970.",
    gatekeeper=True,
)
AUDIT_VIOLATIONS: Final = Metric(
    f"{_G}violations",
    "gauge",
    "Violations in the cluster as the audit last knew them.",
    ("enforcement_action",),
    gatekeeper=True,
)
AUDIT_SWEEPS: Final = Metric(
    f"{_W}audit_sweeps",
    "counter",
    "Sweeps by outcome: complete; partial, where the totals of some constraints are not known; "
    "failed, where those of none are.",
    ("outcome",),
)
AUDIT_OBJECTS: Final = Metric(f"{_W}audit_objects", "counter", "Objects that sweeps reviewed.")
AUDIT_LEFT_OUT: Final = Metric(
    f"{_W}audit_objects_left_out",
    "counter",
    "Objects that sweeps could not audit; the log names them, and statuses count them.",
)
AUDIT_LISTS: Final = Metric(
    f"{_W}audit_list_tokens_expired",
    "counter",
    "Lists whose continue token expired, by how they went on: behind the last object (continued) "
    "or from the beginning (restarted).",
    ("how",),
)
AUDIT_UNREADABLE: Final = Metric(
    f"{_W}audit_kinds_unreadable",
    "gauge",
    "Kinds that a constraint can match and the audit has no right to list.",
)
AUDIT_UNDECIDED: Final = Metric(
    f"{_W}audit_constraints_undecided",
    "gauge",
    "Constraints whose total the last sweep could not tell; their status keeps the one before.",
)
AUDIT_EVENTS: Final = Metric(
    f"{_W}audit_events",
    "counter",
    "Events of violations, by what became of them.",
    ("outcome",),
)

METRICS: Final = (
    VALIDATION_REQUESTS,
    VALIDATION_SECONDS,
    CONSTRAINTS,
    TEMPLATES,
    TEMPLATES_WITH_CEL,
    INGESTIONS,
    INGESTION_DURATION,
    VIOLATIONS,
    EVALUATION_ERRORS,
    OVERRUNS,
    POLICY_FAULTS,
    ENGINE_FAULTS,
    BREAKERS,
    SLOW_REVIEWS,
    IN_FLIGHT,
    WAITING_BYTES,
    REFUSED,
    UNDECIDABLE,
    CONNECTIONS,
    CLOSED,
    HANDSHAKES,
    HANDSHAKES_FAILED,
    LAG,
    LAG_MAX,
    LAG_SECONDS,
    SNAPSHOT,
    SNAPSHOT_REVISION,
    RELOADS,
    RELOAD_FAULT,
    RELOAD_SECONDS,
    CERT_NOT_AFTER,
    READY,
    BUILD,
    DECISIONS_OFFERED,
    DECISIONS_ACKNOWLEDGED,
    DECISIONS_SENT,
    DECISIONS_RETRIED,
    DECISIONS_DROPPED,
    DECISIONS_CONNECT_FAILURES,
    DECISIONS_FAULTS,
    DECISIONS_QUEUED,
    DECISIONS_QUEUED_BYTES,
    DECISIONS_CONNECTED,
    *FOLLOWING_METRICS,
    POLICY_STATES,
    POLICIES_NOT_NEWEST,
    POLICY_REVISIONS,
    CLUSTER_FAULTS,
    AUDIT_DURATION,
    AUDIT_LAST_RUN,
    AUDIT_LAST_RUN_END,
    AUDIT_VIOLATIONS,
    AUDIT_SWEEPS,
    AUDIT_OBJECTS,
    AUDIT_LEFT_OUT,
    AUDIT_LISTS,
    AUDIT_UNREADABLE,
    AUDIT_UNDECIDED,
    AUDIT_EVENTS,
    *REPORT_METRICS,
    *SPECIALISATION_METRICS,
)
"""In the order in which documentation lists them."""

Labels = tuple[str, ...]


class Histogram:
    """Counts of observations by bucket, and their sum."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count one value; a value on a bound belongs to it."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


class Registry:
    """The numbers of one process. Written by the thread concerned, read by any."""

    __slots__ = ("counters", "gauges", "histograms", "violations")

    def __init__(self, *, constraint_series_max: int = 1000) -> None:
        self.counters: dict[Metric, dict[Labels, int]] = {}
        self.gauges: dict[Metric, dict[Labels, float]] = {}
        self.histograms: dict[Metric, dict[Labels, Histogram]] = {}
        self.violations = ConstraintSeries(constraint_series_max)

    def count(self, metric: Metric, *labels: str, by: int = 1) -> None:
        """Add to a counter."""
        series = self.counters.get(metric)
        if series is None:
            series = self.counters[metric] = {}
        series[labels] = series.get(labels, 0) + by

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        """Set a gauge."""
        self.gauges.setdefault(metric, {})[labels] = value

    def replace(self, metric: Metric, series: Mapping[Labels, float]) -> None:
        """Set all series of a gauge at once, forgetting those not named."""
        self.gauges[metric] = dict(series)

    def histogram(self, metric: Metric, *labels: str) -> Histogram:
        """The histogram of a metric with these labels, to be observed into."""
        series = self.histograms.setdefault(metric, {})
        found = series.get(labels)
        if found is None:
            found = series[labels] = Histogram(metric.buckets)
        return found


OTHER: Final = "_other"
"""Not a name that Kubernetes allows, so that no constraint can be taken for it."""


class ConstraintSeries:
    """Violations for each constraint, a bounded number of them."""

    __slots__ = ("_constraints", "_max", "series")

    def __init__(self, series_max: int) -> None:
        self._max = series_max
        self._constraints: set[tuple[str, str]] = set()
        self.series: dict[Labels, int] = {}

    def count(self, kind: str, name: str, action: str) -> None:
        """Count one violation."""
        labels = (kind, name, action)
        if labels not in self.series and (kind, name) not in self._constraints:
            if len(self._constraints) >= self._max:
                labels = ("", OTHER, action)
            else:
                self._constraints.add((kind, name))
        self.series[labels] = self.series.get(labels, 0) + 1

    def keep(self, constraints: Iterable[tuple[str, str]]) -> None:
        """Forget constraints that are no more, so that new ones find room."""
        kept = self._constraints & set(constraints)
        if kept != self._constraints:
            self._constraints = kept
            self.series = {
                labels: value
                for labels, value in self.series.items()
                if labels[:2] in kept or labels[1] == OTHER
            }
