"""What is reported, and how: the values that whoever composes hands over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.values import dataclass

if TYPE_CHECKING:
    from webhook.reports.finding import ReportResult


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """What the operator chose about reports."""

    api: str
    """A name of :data:`webhook.reports.report_api.APIS`."""
    is_by_resource: bool
    """Whether each resource has a report; else each policy in each namespace."""
    stored: frozenset[ReportResult]
    resources_max: int
    """Reports that there may be; by policy, results of one in one namespace."""
    entries_max: int
    """Results in a report of a policy."""
    tells_drift: bool
    """Whether what mutators would change is a result."""
    debounce_seconds: float
    """From an admission to the report of its resource."""
