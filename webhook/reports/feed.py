"""From admissions to reports: a bounded list of admitted resources, by name.

The admission thread only notes a resource; the cluster's thread does the rest after the debounce,
when the resource exists or not. Denied requests and dry runs are not noted.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.api.gvk import name_of, namespace_of, text
from webhook.backoff import Backoff
from webhook.constraint import enforcement
from webhook.constraint.targets.admission import NAME as TARGET
from webhook.metrics.cluster import CLUSTER_FAULTS
from webhook.reports.admitted import AdmissionResults
from webhook.reports.finding import Admitted, ReportSubject, is_reportable
from webhook.reports.keeper import ADMISSION, Reports

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from webhook.api.admission import AdmissionResponse
    from webhook.cluster.client import ClusterClient
    from webhook.constraint.limits import Limits
    from webhook.external_data.exchange import AskAsync
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.serving.recorder import Reviewed
    from webhook.serving.revision import Serving
    from webhook.settings.reports import ReportSettings

FEED_SECONDS: Final = 0.5
"""The interval of taking over admitted resources, in seconds: long against an admission, short
against the debounce."""

NOTED_MAX: Final = 10_000
"""The most noted resources: far more than in half a second; some 400 bytes each."""

FINDINGS_MAX: Final = 50_000
"""The most noted results of admissions: 500 bytes each, and a message of 1 KiB at most."""

_WRITES: Final = frozenset({"CREATE", "UPDATE"})

_SUBRESOURCES: Final = frozenset({"", "ephemeralcontainers", "resize"})
"""Requests of these subresources contain the resource itself, and change fields that policies read.
"""


class Noted(NamedTuple):
    """An admitted resource, and the results of its admission only."""

    subject: ReportSubject
    admitted: Admitted | None


class AdmissionFeed:
    """Notes admitted resources. The admission thread calls :meth:`note`, another :meth:`take`."""

    def __init__(self, operations: frozenset[str], results: AdmissionResults | None = None) -> None:
        """``operations`` are the operations that may change a report.

        ``results`` receives the results of admission-only constraints; without it they are not
        reported.
        """
        self._operations = operations
        self._results = results
        self._noted: dict[str, Noted] = {}
        self._findings = 0
        self._dropped = 0

    def note(self, reviewed: Reviewed, response: AdmissionResponse) -> None:
        """Notes the resource of an answered request, if its report may change."""
        request, snapshot = reviewed.request, reviewed.snapshot
        if (
            not response.allowed
            or request.dry_run
            or snapshot is None
            or request.operation not in self._operations
            or request.sub_resource not in _SUBRESOURCES
        ):
            return
        kind = request.kind.group_kind
        results = self._results
        if not is_reportable(kind) or not (
            snapshot.plan(enforcement.AUDIT, TARGET, kind).steps
            or (results is not None and results.only(snapshot, kind))
        ):
            return
        obj = request.old_object if request.operation == "DELETE" else request.object
        uid = text(obj, "metadata", "uid")
        name = request.name or name_of(obj)
        if not uid or not name:
            return
        if not self._noted:
            self._findings = 0
        if (len(self._noted) >= NOTED_MAX and uid not in self._noted) or (
            self._findings >= FINDINGS_MAX
        ):
            self._dropped += 1
            return
        # A Namespace's request may name itself as its namespace.
        namespace = "" if kind == ("", "Namespace") else request.namespace or namespace_of(obj)
        admitted = None
        # After a deletion the resource may still exist because of its finalizers.
        if results is not None and reviewed.responses is not None and request.operation != "DELETE":
            admitted = results.of(reviewed.responses, snapshot, obj or {}, kind)
            self._findings += 0 if admitted is None else len(admitted.findings)
        self._noted[uid] = Noted(ReportSubject(request.kind, namespace, name, uid), admitted)

    def take(self) -> Iterator[Noted]:
        """Yields the resources noted so far, each once."""
        while self._noted:
            try:
                yield self._noted.popitem()[1]
            except KeyError:
                return

    def take_dropped(self) -> int:
        """Returns how many found no room since the last call; a concurrent count may be lost."""
        dropped, self._dropped = self._dropped, 0
        return dropped


class AdmissionReports:
    """The reports of admitted resources: the feed, and the writer on the cluster's thread."""

    def __init__(
        self,
        options: ReportSettings,
        serving: Serving,
        limits: Callable[[], Limits],
        registry: Registry,
        log: Logger,
        ask: AskAsync | None = None,
    ) -> None:
        """``limits`` returns the limits of a review, which gives way to admissions.

        ``ask`` calls providers.
        """
        self._ask = ask
        self._options = options
        self._serving = serving
        self._limits = limits
        self._registry = registry
        self._log = log
        # The garbage collector deletes the own report of a deleted resource.
        stored = frozenset(options.results)
        # In the other mode a report is of a policy with all its results; here of a resource.
        self._feed = (
            AdmissionFeed(_WRITES, AdmissionResults(stored))
            if options.mode == "resource"
            else AdmissionFeed(_WRITES | {"DELETE"}, AdmissionResults(stored, None))
        )

    def note(self, reviewed: Reviewed, response: AdmissionResponse) -> None:
        """Notes the resource of an answered request; called by the admission thread."""
        self._feed.note(reviewed, response)

    async def run(self, client: ClusterClient) -> None:
        """Writes until cancelled; a bug here must not stop other tasks of the thread."""
        backoff = Backoff(initial_seconds=1.0)
        while True:
            try:
                await self._write(client)
            except Exception as error:  # noqa: BLE001  # counted, logged, retried
                self._registry.count(CLUSTER_FAULTS)
                self._log.fault("bug: reports of admissions ended; they begin again", error)
            await asyncio.sleep(backoff.next_seconds())

    async def _write(self, client: ClusterClient) -> None:
        reports = Reports(
            client,
            self._serving,
            self._options,
            self._log,
            self._limits,
            registry=self._registry,
            process=ADMISSION,
            ask=self._ask,
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(reports.run())
            while True:
                await asyncio.sleep(FEED_SECONDS)
                for subject, admitted in self._feed.take():
                    delay = self._options.debounce_seconds
                    reports.refresher.mark(subject, delay, admitted=admitted)
                reports.refresher.lost["queue_full"] += self._feed.take_dropped()
