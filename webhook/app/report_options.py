"""Policy reports as flags say them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from webhook.reports.keeper import ReportOptions

if TYPE_CHECKING:
    from webhook.reports.finding import ReportResult
    from webhook.settings.reports import ReportSettings


def report_options(settings: ReportSettings) -> ReportOptions:
    """What is reported, and how; the flags' values have been checked."""
    return ReportOptions(
        api=settings.report_api,
        is_by_resource=settings.report_mode == "resource",
        stored=cast("frozenset[ReportResult]", frozenset(settings.report_results)),
        resources_max=settings.report_max_resources,
        entries_max=settings.report_max_entries,
        tells_drift=settings.report_mutation_drift,
        debounce_seconds=settings.report_debounce_seconds,
    )
