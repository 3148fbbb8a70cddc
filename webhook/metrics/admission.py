"""The metrics of admissions: requests, decisions, and failures to decide."""

from __future__ import annotations

from typing import Final

from webhook.metrics.registry import Metric

GATEKEEPER_SECONDS: Final = (
    *(n / 1000 for n in range(1, 10)),
    *(n / 100 for n in range(1, 10)),
    *(n / 10 for n in range(1, 10)),
    *(n / 2 for n in range(2, 21)),
)
"""Gatekeeper's buckets of a request's duration, in seconds."""

REQUEST_SECONDS: Final = (0.0001, 0.0002, 0.0003, 0.0005, 0.0007, *GATEKEEPER_SECONDS)
"""Gatekeeper's buckets and some below a millisecond: most reviews end before Gatekeeper's first."""

VALIDATION_REQUESTS: Final = Metric(
    "gatekeeper_validation_request_count",
    "counter",
    "Requests to the validation webhook, by their answer.",
    ("admission_status", "admission_dryrun"),
    gatekeeper=True,
)

VALIDATION_SECONDS: Final = Metric(
    "gatekeeper_validation_request_duration_seconds",
    "histogram",
    "Time from a request's head to its answer.",
    ("admission_status",),
    gatekeeper=True,
    buckets=REQUEST_SECONDS,
)

VIOLATIONS: Final = Metric(
    "waddle_constraint_violations",
    "counter",
    "Violations found at admission, by constraint and action. Beyond "
    "--max-constraint-series constraints they count under constraint_name=_other.",
    ("constraint_kind", "constraint_name", "enforcement_action"),
)

EXCUSED: Final = Metric(
    "waddle_excused_admission_violations",
    "counter",
    "Violations found at admission that exceptions excuse, by the constraint's kind and the "
    "exception's effect.",
    ("constraint_kind", "effect"),
)

EVALUATION_ERRORS: Final = Metric(
    "waddle_evaluation_errors",
    "counter",
    "Evaluations of a template that failed, by template kind.",
    ("constraint_kind",),
)

OVERRUNS: Final = Metric(
    "waddle_evaluation_overruns",
    "counter",
    "Evaluations that exceeded --evaluation-budget and were stopped, by template kind.",
    ("constraint_kind",),
)

POLICY_FAULTS: Final = Metric(
    "waddle_policy_faults",
    "counter",
    "Matching constraints without a verdict, by cause (parse, compile, template, "
    "constraint, engine, environment, error, overrun, suspended, deadline, object, "
    "requester) and by answer (reject, warn, record).",
    ("constraint_kind", "cause", "answer"),
)

ENGINE_FAULTS: Final = Metric(
    "waddle_engine_faults",
    "counter",
    "Evaluations and compilations that failed because of a bug in the engine, by "
    "template kind. The policy then counts as one that fails.",
    ("constraint_kind",),
)

BREAKERS: Final = Metric(
    "waddle_constraint_suspended",
    "gauge",
    "1 for each constraint that is suspended because its evaluations took too long; at "
    "most --max-constraint-series of them.",
    ("constraint_kind", "constraint_name"),
)

STRANGERS: Final = Metric(
    "waddle_stranger_requests",
    "counter",
    "Requests of clients that did not prove to be an API server, with --api-server-ca-file.",
)
SLOW_REVIEWS: Final = Metric(
    "waddle_slow_reviews",
    "counter",
    "Reviews and mutations that took too long for the admission thread, and continued on another.",
)

REFUSED: Final = Metric(
    "waddle_requests_refused",
    "counter",
    "Requests whose answer was not a decision, by reason.",
    ("reason",),
)

UNDECIDABLE: Final = Metric(
    "waddle_objects_undecidable",
    "counter",
    "Objects that were refused because they were too deep, too large or too slow to "
    "review or mutate.",
)

ADMISSION_EVENTS: Final = Metric(
    "waddle_admission_events",
    "counter",
    "Events of violations in admissions, by outcome.",
    ("outcome",),
)

MEMO_HITS: Final = Metric(
    "waddle_memo_hits",
    "counter",
    "Constraints that a review did not evaluate, because a kept result applies.",
)

MEMO_MISSES: Final = Metric(
    "waddle_memo_misses",
    "counter",
    "Constraints that were evaluated because no kept result has the values of the fields "
    "that they read.",
)

MEMO_BYTES: Final = Metric(
    "waddle_memo_bytes", "gauge", "Memory for kept results, about; at most --memo-bytes."
)

MEMO_RESTING: Final = Metric(
    "waddle_memo_resting",
    "gauge",
    "Constraints whose results are not kept for now, because keeping them costs more "
    "than it saves.",
)
