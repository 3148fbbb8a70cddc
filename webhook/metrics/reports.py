"""The metrics of policy reports.

``process`` is the process that marked the resources: ``audit`` or ``admission``.
"""

from __future__ import annotations

from typing import Final

from webhook.metrics.registry import Metric

REPORT_RESULTS: Final = Metric(
    "waddle_report_results",
    "gauge",
    "Results of the last sweep by constraint, namespace and result, whether or not a report holds "
    "them; beyond --max-constraint-series pairs of constraint and namespace they are counted under "
    "constraint_name=_other.",
    ("constraint_kind", "constraint_name", "namespace", "result"),
)

REPORT_WRITES: Final = Metric(
    "waddle_report_writes",
    "counter",
    "Requests that wrote a report or tried to. None where nothing changes.",
    ("process", "action"),
)

REPORT_OUTCOMES: Final = Metric(
    "waddle_report_outcomes",
    "counter",
    "Reports brought up to date, by what that took: create, replace, delete, unchanged; limit, "
    "where --report-max-resources let none be made; foreign, where another product's report has the "
    "name; terminating, where the namespace ends; conflict, where other writers were faster.",
    ("process", "outcome"),
)

REPORTS_LOST: Final = Metric(
    "waddle_reports_lost",
    "counter",
    "Resources whose report was given up until the next audit, by reason.",
    ("process", "reason"),
)

REPORTS_WAITING: Final = Metric(
    "waddle_reports_waiting", "gauge", "Resources whose report is to be looked at.", ("process",)
)

REPORT_LIMIT_REACHED: Final = Metric(
    "waddle_report_limit_reached",
    "gauge",
    "1 for ten minutes after --report-max-resources kept a report from being made.",
    ("process",),
)
