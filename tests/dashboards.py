"""``python -m tests.dashboards``: Grafana's dashboards in manifests/dashboards, made of these tables.

A panel is a title, a unit and its queries, each with what its line is called; what it shows is told
by the metrics' own help. `POD` is the replica's selector, which a variable of each dashboard sets.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from tests.programs import ROOT
from webhook.metrics.exposition import METRICS

FOLDER = ROOT / "manifests" / "dashboards"
POD = 'pod=~"$pod"'
RATE = "$__rate_interval"
SUFFIXES = ("_total", "_bucket", "_sum", "_count")

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Panel:
    """A chart, or a number with ``stat``."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    stat: bool = False
    text: str = ""
    """The description, if no metric has a help text."""


def rate(name: str, by: str = "", more: str = "") -> str:
    """Returns a query for events per second, summed by labels."""
    selector = ",".join(filter(None, (POD, more)))
    grouped = f"sum by ({by}) " if by else "sum"
    return f"{grouped}(rate({name}{{{selector}}}[{RATE}]))"


def quantile(share: float, name: str, by: str = "") -> str:
    """Of a histogram."""
    labels = f"{by}, le" if by else "le"
    inner = f"sum by ({labels}) (rate({name}_bucket{{{POD}}}[{RATE}]))"
    return f"histogram_quantile({share}, {inner})"


def gauge(name: str, how: str = "sum", by: str = "", more: str = "") -> str:
    """A gauge of the chosen replicas."""
    selector = ",".join(filter(None, (POD, more)))
    grouped = f"{how} by ({by}) " if by else how
    return f"{grouped}({name}{{{selector}}})"


LATENCY = "gatekeeper_validation_request_duration_seconds"
MUTATION = "gatekeeper_mutation_request_duration_seconds"
AUDIT = "gatekeeper_audit_duration_seconds"
INGESTION = "gatekeeper_constraint_template_ingestion_duration_seconds"
SINK = "waddle_decisions_sink_"

SERVING = (
    Panel(
        "Replicas ready",
        "none",
        ((gauge("waddle_ready", more='process="admission"'), "ready"),),
        stat=True,
    ),
    Panel(
        "Certificate ends in",
        "s",
        ((f"min(waddle_cert_not_after_timestamp_seconds{{{POD}}}) - time()", "left"),),
        stat=True,
    ),
    Panel(
        "Admissions",
        "reqps",
        (
            (
                rate("gatekeeper_validation_request_count_total", "admission_status"),
                "{{admission_status}}",
            ),
        ),
    ),
    Panel(
        "Duration of a review",
        "s",
        tuple((quantile(share, LATENCY), name) for share, name in ((0.5, "p50"), (0.99, "p99"))),
    ),
    Panel(
        "Refused before a review",
        "reqps",
        ((rate("waddle_requests_refused_total", "reason"), "{{reason}}"),),
    ),
    Panel(
        "Mutations",
        "reqps",
        (
            (
                rate("gatekeeper_mutation_request_count_total", "mutation_status"),
                "{{mutation_status}}",
            ),
        ),
    ),
    Panel("Duration of a mutation, p99", "s", ((quantile(0.99, MUTATION), "p99"),)),
    Panel(
        "The admission thread is late by, p99",
        "s",
        ((quantile(0.99, "waddle_event_loop_delay_seconds", "pod"), "{{pod}}"),),
    ),
    Panel("In flight", "none", ((gauge("waddle_requests_in_flight", by="pod"), "{{pod}}"),)),
    Panel("Connections", "none", ((gauge("waddle_connections", by="pod"), "{{pod}}"),)),
    Panel("Slow reviews", "reqps", ((rate("waddle_slow_reviews_total", "pod"), "{{pod}}"),)),
    Panel(
        "Connections closed, handshakes failed",
        "ops",
        (
            (rate("waddle_connections_closed_total", "reason"), "closed: {{reason}}"),
            (rate("waddle_handshakes_failed_total", "reason"), "handshake: {{reason}}"),
        ),
    ),
)

POLICIES = (
    Panel(
        "Revisions in force",
        "none",
        ((f"count(count by (digest) (waddle_snapshot_info{{{POD}}}))", "digests"),),
        stat=True,
        text="1 where all replicas enforce the same; `waddle status` tells who is behind.",
    ),
    Panel(
        "Constraints",
        "none",
        ((gauge("gatekeeper_constraints", "max", "enforcement_action"), "{{enforcement_action}}"),),
    ),
    Panel(
        "Templates",
        "none",
        ((gauge("gatekeeper_constraint_templates", "max", "status"), "{{status}}"),),
    ),
    Panel(
        "Objects by state",
        "none",
        ((gauge("waddle_policies", "max", "kind, state"), "{{kind}} {{state}}"),),
    ),
    Panel(
        "Not at their newest generation",
        "none",
        (
            (
                gauge("waddle_policies_not_newest", "max", "pod, kind, cause"),
                "{{pod}} {{kind}}: {{cause}}",
            ),
        ),
    ),
    Panel(
        "Violations, the ten constraints with most",
        "reqps",
        (
            (
                f"topk(10, {rate('waddle_constraint_violations_total', 'constraint_kind, constraint_name, enforcement_action')})",
                "{{constraint_kind}} {{constraint_name}} ({{enforcement_action}})",
            ),
        ),
    ),
    Panel(
        "Faults of policies",
        "reqps",
        (
            (
                rate("waddle_policy_faults_total", "constraint_kind, cause, answer"),
                "{{constraint_kind}} {{cause}}: {{answer}}",
            ),
        ),
    ),
    Panel(
        "Overruns",
        "reqps",
        ((rate("waddle_evaluation_overruns_total", "constraint_kind"), "{{constraint_kind}}"),),
    ),
    Panel(
        "Suspended constraints",
        "none",
        (
            (
                gauge("waddle_constraint_suspended", "max", "constraint_kind, constraint_name"),
                "{{constraint_kind}} {{constraint_name}}",
            ),
        ),
    ),
    Panel("Compilation of a template, p99", "s", ((quantile(0.99, INGESTION), "p99"),)),
    Panel("Mutators", "none", ((gauge("gatekeeper_mutators", "max", "status"), "{{status}}"),)),
    Panel(
        "Fighting mutators",
        "none",
        (
            (
                gauge("waddle_mutators_fighting", "max", "mutator_kind, mutator_name"),
                "{{mutator_kind}} {{mutator_name}}",
            ),
        ),
    ),
    Panel("Synced objects", "none", ((gauge("gatekeeper_sync", "max", "kind"), "{{kind}}"),)),
    Panel(
        "Writes to the API server",
        "reqps",
        ((rate("waddle_api_writes_total", "what"), "{{what}}"),),
    ),
)

AUDITED = (
    Panel(
        "Since the last audit",
        "s",
        ((f"time() - max(gatekeeper_audit_last_run_end_time{{{POD}}})", "seconds"),),
        stat=True,
    ),
    Panel(
        "Violations",
        "none",
        ((gauge("gatekeeper_violations", "max", "enforcement_action"), "{{enforcement_action}}"),),
    ),
    Panel("Duration of a sweep, p99", "s", ((quantile(0.99, AUDIT), "p99"),)),
    Panel("Sweeps", "ops", ((rate("waddle_audit_sweeps_total", "outcome"), "{{outcome}}"),)),
    Panel("Objects looked at", "ops", ((rate("waddle_audit_objects_total"), "objects"),)),
    Panel("Objects left out", "ops", ((rate("waddle_audit_objects_left_out_total"), "objects"),)),
    Panel(
        "What totals do not say",
        "none",
        (
            (gauge("waddle_audit_constraints_undecided", "max"), "constraints undecided"),
            (gauge("waddle_audit_kinds_unreadable", "max"), "kinds unreadable"),
        ),
    ),
    Panel(
        "Policy reports: results, the ten constraints with most",
        "none",
        (
            (
                f"topk(10, {gauge('waddle_report_results', 'sum', 'constraint_kind, constraint_name, result')})",
                "{{constraint_kind}} {{constraint_name}}: {{result}}",
            ),
        ),
    ),
    Panel(
        "Reports written",
        "ops",
        ((rate("waddle_report_writes_total", "process, action"), "{{process}} {{action}}"),),
    ),
    Panel(
        "Reports lost",
        "ops",
        ((rate("waddle_reports_lost_total", "process, reason"), "{{process}}: {{reason}}"),),
    ),
)

DECISIONS = (
    Panel(
        "Replicas that reach their sidecar",
        "none",
        ((gauge("waddle_decisions_connected"), "connected"),),
        stat=True,
    ),
    Panel(
        "Decisions",
        "ops",
        (
            (rate("waddle_decisions_offered_total"), "offered"),
            (rate("waddle_decisions_acknowledged_total"), "acknowledged"),
        ),
    ),
    Panel("Dropped", "ops", ((rate("waddle_decisions_dropped_total", "reason"), "{{reason}}"),)),
    Panel("Queued in memory", "none", ((gauge("waddle_decisions_queued", by="pod"), "{{pod}}"),)),
    Panel(
        "Queued bytes in memory",
        "bytes",
        ((gauge("waddle_decisions_queued_bytes", by="pod"), "{{pod}}"),),
    ),
    Panel("Sent again", "ops", ((rate("waddle_decisions_retried_total"), "records"),)),
    Panel(
        "Connections that failed",
        "ops",
        ((rate("waddle_decisions_connect_failures_total", "pod"), "{{pod}}"),),
    ),
)

SIDECAR = (
    Panel(
        "Queues that are full",
        "none",
        ((gauge("waddle_decisions_queue_blocked"), "full"),),
        stat=True,
    ),
    Panel(
        "Records",
        "ops",
        (
            (rate("waddle_decisions_received_total"), "received"),
            (rate("waddle_decisions_committed_total"), "made durable"),
        ),
    ),
    Panel(
        "Queue, share of its room",
        "percentunit",
        (
            (
                f"max by (pod, queue) (waddle_decisions_queue_bytes{{{POD}}} / waddle_decisions_queue_bytes_max{{{POD}}})",
                "{{pod}} {{queue}}",
            ),
        ),
    ),
    Panel("Delivered", "ops", ((rate(f"{SINK}delivered_total", "sink"), "{{sink}}"),)),
    Panel(
        "Records that wait for a sink",
        "none",
        ((gauge(f"{SINK}lag_records", "sum", "sink"), "{{sink}}"),),
    ),
    Panel(
        "Age of the oldest that waits",
        "s",
        ((gauge(f"{SINK}oldest_unsent_seconds", "max", "sink"), "{{sink}}"),),
    ),
    Panel(
        "Failures in a row",
        "none",
        ((gauge(f"{SINK}consecutive_failures", "max", "sink"), "{{sink}}"),),
    ),
    Panel(
        "Lost after they were acknowledged",
        "ops",
        ((rate(f"{SINK}dropped_total", "sink"), "{{sink}}"),),
    ),
    Panel(
        "Writes and syncs that failed",
        "ops",
        ((rate("waddle_decisions_commit_failures_total", "pod"), "{{pod}}"),),
    ),
)

DASHBOARDS = {
    "serving": ("Waddle: serving", "waddle_ready", SERVING),
    "policies": ("Waddle: policies", "waddle_ready", POLICIES),
    "audit": ("Waddle: audit", "waddle_ready", AUDITED),
    "decision-log": ("Waddle: decision log, servers", "waddle_decisions_connected", DECISIONS),
    "sidecar": ("Waddle: decision log, sidecars", "waddle_decisions_connections", SIDECAR),
}
"""By file: the title, the metric that every pod in question has, the panels."""

COLUMNS = 24
WIDTH, HEIGHT = 12, 8


def metrics_of(expression: str) -> list[str]:
    """The metrics that a query asks for, as it names them."""
    return re.findall(r"\b(?:waddle|gatekeeper)_[a-z_]+", expression)


def described(panel: Panel) -> str:
    """Returns the panel's description: the help texts of its metrics."""
    if panel.text:
        return panel.text
    helps = {metric.name: metric.help for metric in METRICS}
    found = []
    for expression, _ in panel.queries:
        for word in metrics_of(expression):
            name = next((word.removesuffix(end) for end in SUFFIXES if word.endswith(end)), word)
            found += [text for text in [helps.get(name) or helps.get(word)] if text]
    return " ".join(dict.fromkeys(found)) or "docs/decisions.md says what it counts."


def dashboard(name: str) -> Json:
    """A dashboard as Grafana imports and provisions it."""
    title, present, panels = DASHBOARDS[name]
    source = {"type": "prometheus", "uid": "${datasource}"}
    made = []
    for number, panel in enumerate(panels):
        made.append(
            {
                "id": number + 1,
                "type": "stat" if panel.stat else "timeseries",
                "title": panel.title,
                "description": described(panel),
                "datasource": source,
                "gridPos": {
                    "x": number * WIDTH % COLUMNS,
                    "y": number * WIDTH // COLUMNS * HEIGHT,
                    "w": WIDTH,
                    "h": HEIGHT,
                },
                "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
                "options": {},
                "targets": [
                    {
                        "refId": chr(ord("A") + index),
                        "datasource": source,
                        "expr": expression,
                        "legendFormat": legend,
                    }
                    for index, (expression, legend) in enumerate(panel.queries)
                ],
            }
        )
    return {
        "uid": f"waddle-{name}",
        "title": title,
        "tags": ["waddle"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                {
                    "name": "datasource",
                    "label": "Data source",
                    "type": "datasource",
                    "query": "prometheus",
                },
                {
                    "name": "pod",
                    "label": "Pod",
                    "type": "query",
                    "datasource": source,
                    "query": {"query": f"label_values({present}, pod)", "refId": "pod"},
                    "includeAll": True,
                    "multi": True,
                    "allValue": ".*",
                    "current": {"text": "All", "value": "$__all"},
                    "refresh": 2,
                    "sort": 1,
                },
            ]
        },
        "panels": made,
    }


def main() -> None:
    """Write them."""
    FOLDER.mkdir(exist_ok=True)
    for name in DASHBOARDS:
        (FOLDER / f"{name}.json").write_text(json.dumps(dashboard(name), indent=2) + "\n")


if __name__ == "__main__":
    main()
