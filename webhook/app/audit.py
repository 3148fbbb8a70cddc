"""The thread that audits the cluster: regular sweeps, with their logs, metrics and reports.

It has an event loop and a session at the API server of its own, so that neither admission nor the
watches wait for it. It takes policies from the revision in force, which the cluster's thread
replaces.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from webhook.app.loop_thread import LoopThread
from webhook.app.priority import give_way
from webhook.audit.events import AuditEvents
from webhook.audit.kept import KeptResults
from webhook.audit.reviewer import AuditLimits
from webhook.audit.shares import Shares
from webhook.audit.sweeps import SweepOptions, Sweeps
from webhook.backoff import Backoff
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import load_credentials
from webhook.metrics.audit import AUDIT_SWEEPS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.api.shapes import Json
    from webhook.app.decisions import DecisionLog
    from webhook.audit.sink import AuditSink
    from webhook.audit.tally import ConstraintKey
    from webhook.external_data.exchange import AskAsync
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.serving.revision import Serving
    from webhook.settings.serve import ServeSettings

STALLED_SECONDS: Final = 300.0
"""An audit without a sign of life for this long hangs: no request to the API server and no review
may take half of it."""

HEARTBEAT_SECONDS: Final = 5.0


class AuditThread:
    """Audits from :meth:`start` to :meth:`stop`."""

    def __init__(
        self,
        settings: ServeSettings,
        serving: Serving,
        registry: Registry,
        log: Logger,
        *,
        decisions: DecisionLog | None,
        notify: Callable[[Mapping[ConstraintKey, Json | None]], None],
        ask: AskAsync | None = None,
    ) -> None:
        """Reads the credentials; raises :class:`~webhook.cluster.credentials.CredentialsError`.

        ``notify`` takes the results of one of several shares, from any thread; ``ask`` calls
        providers.
        """
        self._ask = ask
        self._notify = notify
        self._settings = settings
        self._serving = serving
        self._registry = registry
        self._log = log
        self._decisions = decisions
        self._credentials = load_credentials(settings.policies.kubeconfig or None, log=log)
        self._alive_at = time.monotonic()
        kept_bytes = settings.audit.kept_bytes
        self._kept = KeptResults(kept_bytes, self._reads_metadata_only) if kept_bytes else None
        self._thread = LoopThread("audit", self._audit_forever)

    def start(self) -> None:
        """Begin."""
        self._alive_at = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        """Interrupts the sweep, and waits a moment for the thread."""
        self._thread.stop()

    def stalled(self) -> str:
        """Returns why the audit is taken for hanging, or an empty text; any thread may ask."""
        seconds = time.monotonic() - self._alive_at
        return "" if seconds < STALLED_SECONDS else f"no sign of life for {seconds:.0f} s"

    def _tick(self) -> None:
        self._alive_at = time.monotonic()

    async def _audit_forever(self) -> None:
        """Audits; restarts after a bug."""
        backoff = Backoff(initial_seconds=1.0)
        while True:
            try:
                client = ClusterClient(
                    self._credentials,
                    replica=self._settings.pod.name,
                    log=self._log,
                    keep_history=self._settings.policies.keep_writers_history,
                )
                async with client, asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._beat())
                    sweeps = self._sweeps(client, tasks)
                    tasks.create_task(sweeps.run())
                    interval = self._settings.audit.interval_seconds
                    tasks.create_task(sweeps.sweep_forever(interval, self._tick))
            except Exception as error:  # noqa: BLE001  # the thread's boundary: its end is not silent
                self._registry.count(AUDIT_SWEEPS, "failed")
                self._log.fault("bug: the audit ended; it begins again", error, process="audit")
            await asyncio.sleep(backoff.next_seconds())

    def _sweeps(self, client: ClusterClient, tasks: asyncio.TaskGroup) -> Sweeps:
        """Returns the sweeps of one session, with their sinks; starts the tasks beside them."""
        settings = self._settings
        shares = Shares(client, settings.pod.namespace, settings.pod.uid)
        limits = AuditLimits(
            settings.limits.review_timeout_seconds,
            settings.deciding.evaluation_budget_seconds,
            rest=give_way if settings.serves_admission else None,
        )
        sinks: list[AuditSink] = []
        if self._decisions is not None and (records := self._decisions.audit_sink()) is not None:
            sinks.append(records)
        if settings.reports.enabled:
            sinks.append(self._reports(client, tasks, shares, limits))
        events = self._events(client) if settings.audit.emit_events else None
        if events is not None:
            sinks.append(events)
            tasks.create_task(events.run())
        return Sweeps(
            client,
            self._serving,
            SweepOptions(
                settings.audit.chunk_size,
                settings.audit.constraint_violations_limit,
                settings.audit.continuous,
                settings.audit.from_cache,
                settings.reports.mutation_drift,
                settings.policies.admission_policies == "audit",
                settings.policies.kyverno_policies != "off",
            ),
            shares,
            limits,
            registry=self._registry,
            log=self._log,
            sinks=sinks,
            events=events,
            notify=self._notify,
            ask=self._ask,
            kept=self._kept,
        )

    def _reads_metadata_only(self) -> bool:
        """Whether every sink needs only the metadata of objects.

        Reports match objects again, records may hold whole objects, and synced data may lack fields
        that no policy reads.
        """
        settings, records = self._settings, self._decisions
        is_whole = records is not None and records.includes_objects
        return not (settings.reports.enabled or settings.audit.from_cache or is_whole)

    def _events(self, client: ClusterClient) -> AuditEvents:
        settings = self._settings
        return AuditEvents(
            client,
            settings.pod.namespace,
            self._log,
            in_violating_namespace=settings.audit.events_involved_namespace,
        )

    def _reports(
        self, client: ClusterClient, tasks: asyncio.TaskGroup, shares: Shares, limits: AuditLimits
    ) -> AuditSink:
        """Returns the sinks of reports of the audit."""
        # Imported here: an unused module would cost memory and start-up time.
        from webhook.reports.audited import AuditReports  # noqa: PLC0415
        from webhook.reports.confirmation import Author, Confirmer  # noqa: PLC0415
        from webhook.reports.keeper import Reports  # noqa: PLC0415

        reports = Reports(
            client,
            self._serving,
            self._settings.reports,
            self._log,
            limits,
            registry=self._registry,
            process="audit",
            ask=self._ask,
        )
        tasks.create_task(reports.run())
        settings = self._settings
        author = Author(
            settings.pod.name,
            settings.pod.namespace,
            settings.pod.uid,
            settings.audit.interval_seconds,
        )
        confirmer = Confirmer(client, author, reports, self._log)
        tasks.create_task(confirmer.run())
        return AuditReports(
            reports,
            confirmer,
            self._registry,
            self._log,
            series_max=settings.logging.max_constraint_series,
            share=shares.is_ours,
        )

    async def _beat(self) -> None:
        while True:
            self._tick()
            await asyncio.sleep(HEARTBEAT_SECONDS)
