"""Assembles policy reports in a process, on the cluster's event loop."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

from webhook.audit.kinds import listable
from webhook.audit.scope import Scope
from webhook.cluster.discovery import FRESH_SECONDS, UnknownKind
from webhook.metrics.reports import (
    REPORT_LIMIT_REACHED,
    REPORT_OUTCOMES,
    REPORT_WRITES,
    REPORTS_LOST,
    REPORTS_WAITING,
)
from webhook.reports.admitted import whole
from webhook.reports.assessor import ReportedFindings, SnapshotAssessor
from webhook.reports.capacity import Capacity
from webhook.reports.finding import RESULTS_MAX, Assessment, ReportSubject, digest
from webhook.reports.policy_reports import PolicyReports
from webhook.reports.refresher import Refresher
from webhook.reports.report import finding_in, report, results_in
from webhook.reports.report_api import APIS, ReportApi
from webhook.reports.writer import Faults, ReportWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webhook.api.gvk import GroupKind, GroupVersionKind
    from webhook.api.resource import Resource
    from webhook.api.shapes import Json
    from webhook.cluster.client import ClusterClient
    from webhook.cluster.store import Key
    from webhook.constraint.limits import Limits
    from webhook.external_data.exchange import AskAsync
    from webhook.log import Logger
    from webhook.metrics.registry import Metric, Registry
    from webhook.serving.revision import Serving
    from webhook.settings.reports import ReportSettings

AUDIT: Final = "audit"
ADMISSION: Final = "admission"

COUNT_SECONDS: Final = 1.0
"""The interval of metrics updates, in seconds."""


MISSING_SECONDS: Final = 5.0
"""The shortest interval of listing all kinds again for an unknown kind, in seconds."""


class ResourceReports:
    """Keeps one report for each resource with findings, and none for others."""

    def __init__(self, writer: ReportWriter, api: ReportApi) -> None:
        self._writer = writer
        self._api = api

    async def put(self, subject: ReportSubject, assessment: Assessment, *, is_new: bool) -> None:
        """Writes the findings into the resource's report; raises as :class:`ReportWriter`."""
        seconds = int(time.time())

        def desired(current: Json | None) -> Json | None:
            stored = [] if current is None else [finding_in(item) for item in results_in(current)]
            findings = whole(
                assessment.findings,
                stored,
                assessment.admitted,
                assessment.state,
                assessment.only,
            )
            return report(subject, findings, self._api, seconds)

        outcome = await self._writer.revise(subject.uid, subject.namespace, desired, is_new=is_new)
        if outcome == "conflict":
            raise self._writer.lost_race(subject.uid)


class PreferredKinds:
    """Looks kinds up by group and kind. Used on one event loop."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._known: dict[GroupKind, Resource] = {}
        self._listed_at: float | None = None
        self._asking = asyncio.Lock()

    async def resource(self, gvk: GroupVersionKind) -> Resource:
        """Returns the resource of a kind at its group's preferred version.

        Raises :class:`~webhook.cluster.discovery.UnknownKind`,
        :class:`~webhook.cluster.errors.ApiError` and
        :class:`~webhook.cluster.errors.ApiUnreachable`.
        """
        async with self._asking:
            if self._is_stale(gvk.group_kind):
                self._known = {item.gvk.group_kind: item for item in await listable(self._client)}
                self._listed_at = time.monotonic()
        preferred = self._known.get(gvk.group_kind)
        if preferred is None:
            raise UnknownKind(f"the API server lists no {gvk}")
        return preferred

    def _is_stale(self, kind: GroupKind) -> bool:
        if self._listed_at is None:
            return True
        limit = FRESH_SECONDS if kind in self._known else MISSING_SECONDS
        return time.monotonic() - self._listed_at >= limit


class Reports:
    """Writes reports of marked resources; :meth:`run` in a task of its own."""

    def __init__(
        self,
        client: ClusterClient,
        serving: Serving,
        options: ReportSettings,
        log: Logger,
        limits: Callable[[], Limits],
        *,
        registry: Registry,
        process: str,
        ask: AskAsync | None = None,
    ) -> None:
        """``limits`` returns the limits of a review; ``process`` is the metrics' label.

        ``ask`` calls providers.
        """
        self.client = client
        self._registry = registry
        self._serving = serving
        self._process = process
        self._keeps_digests = process == AUDIT
        self._reports_drift = options.mutation_drift
        self.api = APIS[options.api]
        self.is_by_resource = options.mode == "resource"
        self.findings = ReportedFindings(
            frozenset(options.results), RESULTS_MAX if self.is_by_resource else None
        )
        self._capacity = Capacity(client, self.api, options.max_resources, log)
        self._writer = ReportWriter(client, self.api, self._capacity, log)
        faults = Faults(log, registry)
        self._store: ResourceReports | PolicyReports
        if self.is_by_resource:
            self._store = ResourceReports(self._writer, self.api)
        else:
            self._store = PolicyReports(
                self._writer,
                self.api,
                log,
                entries_max=options.max_entries,
                resources_max=options.max_resources,
                faults=faults,
            )
        assessor = SnapshotAssessor(client, self._scope, self.findings, log, limits, ask)
        self.digests: dict[str, bytes] = {}
        """The digests that an audit stored since it last cleared this, by the resources' UIDs."""
        self.refresher = Refresher(client, PreferredKinds(client), assessor, self, log, faults)

    async def put(self, subject: ReportSubject, assessment: Assessment, *, is_new: bool) -> None:
        """Stores a resource's findings, and remembers them for a moment; raises as the store."""
        await self._store.put(subject, assessment, is_new=is_new)
        if self._keeps_digests:
            self.digests[subject.uid] = digest(assessment.findings)

    async def run(self) -> None:
        """Writes until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._count_forever())
            tasks.create_task(self.refresher.run())
            if isinstance(self._store, PolicyReports):
                tasks.create_task(self._store.run())

    def _scope(self) -> Scope | None:
        """Returns the policies in force as an audit uses them; None before there are any."""
        revision = self._serving.revision
        if revision is None:
            return None
        return Scope(self._serving.audited(revision), reports_drift=self._reports_drift)

    async def room(self) -> int | None:
        """Returns how many more resources may have a report, None for any number.

        Raises as requests do.
        """
        return await self._capacity.room() if self.is_by_resource else None

    def refuse(self) -> None:
        """Counts a resource that gets no report because the limit is reached."""
        self._writer.outcomes["limit"] += 1
        self._capacity.refuse()

    async def remove(self, reports: Iterable[Key]) -> None:
        """Deletes reports of the previous mode; raises the errors of requests."""
        for namespace, name in reports:
            await self._writer.write(name, namespace, None)

    @property
    def is_idle(self) -> bool:
        """Returns whether all marked reports are written."""
        return self.refresher.is_idle and (
            not isinstance(self._store, PolicyReports) or self._store.is_idle
        )

    @property
    def unwritten(self) -> int:
        """Returns the number of outdated reports: waiting ones, and those given up so far."""
        stored = self._store.unwritten if isinstance(self._store, PolicyReports) else 0
        return self.refresher.waiting + self.refresher.lost.total() + stored

    async def _count_forever(self) -> None:
        """Updates the metrics every ``COUNT_SECONDS``."""
        while True:
            self._count()
            await asyncio.sleep(COUNT_SECONDS)

    def _count(self) -> None:
        registry = self._registry
        self._add(REPORT_WRITES, self._writer.requests)
        self._add(REPORT_OUTCOMES, self._writer.outcomes)
        self._add(REPORTS_LOST, self.refresher.lost)
        registry.set(REPORTS_WAITING, self.refresher.waiting, self._process)
        full = self._capacity.is_reached or (
            isinstance(self._store, PolicyReports) and bool(self._store.left_out)
        )
        registry.set(REPORT_LIMIT_REACHED, int(full), self._process)

    def _add(self, metric: Metric, numbers: Mapping[Any, int]) -> None:
        series = self._registry.counters.setdefault(metric, {})
        series.update({(self._process, label): number for label, number in numbers.items()})
