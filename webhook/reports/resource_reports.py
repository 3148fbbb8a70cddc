"""``--report-mode=resource``: one report for each resource, named by its UID."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from webhook.reports.admitted import whole
from webhook.reports.report import finding_in, report, results_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.api.shapes import Json
    from webhook.reports.finding import Assessment, ReportSubject
    from webhook.reports.report_api import ReportApi
    from webhook.reports.writer import ReportWriter


class ResourceReports:
    """Keeps one report for each resource that has findings, and none for the others."""

    def __init__(
        self, writer: ReportWriter, api: ReportApi, now: Callable[[], float] = time.time
    ) -> None:
        self._writer = writer
        self._api = api
        self._now = now

    async def put(self, subject: ReportSubject, assessment: Assessment, *, is_new: bool) -> None:
        """Make the resource's report say what was found; raises as :class:`ReportWriter`."""
        seconds = int(self._now())

        def wanted(current: Json | None) -> Json | None:
            stored = [] if current is None else [finding_in(item) for item in results_in(current)]
            findings = whole(
                assessment.findings,
                stored,
                assessment.admitted,
                assessment.state,
                assessment.only,
            )
            return report(subject, findings, self._api, seconds)

        outcome = await self._writer.revise(subject.uid, subject.namespace, wanted, is_new=is_new)
        if outcome == "conflict":
            raise self._writer.lost_race(subject.uid)
