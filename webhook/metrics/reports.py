"""The metrics of policy reports.

``process`` is the process that marked the resources: ``audit`` or ``admission``.
"""

from __future__ import annotations

from typing import Final

from webhook.metrics.registry import Metric

REPORT_RESULTS: Final = Metric(
    "waddle_report_results",
    "gauge",
    "Results of the last sweep by constraint, namespace and result, whether or not a "
    "report has them. Beyond --max-constraint-series pairs of constraint and namespace "
    "they count under constraint_name=_other.",
    ("constraint_kind", "constraint_name", "namespace", "result"),
)

REPORT_WRITES: Final = Metric(
    "waddle_report_writes",
    "counter",
    "Attempts to write a report. There are none while nothing changes.",
    ("process", "action"),
)

REPORT_OUTCOMES: Final = Metric(
    "waddle_report_outcomes",
    "counter",
    "Updates of reports by outcome: create, replace, delete, unchanged; limit, at "
    "--report-max-resources; foreign, if another product's report has the name; "
    "terminating, if the namespace ends; conflict, if other writers were faster.",
    ("process", "outcome"),
)

REPORTS_LOST: Final = Metric(
    "waddle_reports_lost",
    "counter",
    "Resources whose report waits for the next audit, by reason.",
    ("process", "reason"),
)

REPORTS_WAITING: Final = Metric(
    "waddle_reports_waiting", "gauge", "Resources whose report is due for an update.", ("process",)
)

REPORT_LIMIT_REACHED: Final = Metric(
    "waddle_report_limit_reached",
    "gauge",
    "1 for ten minutes after --report-max-resources prevented a report.",
    ("process",),
)
