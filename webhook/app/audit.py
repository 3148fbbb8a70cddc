"""The thread that audits the cluster: sweeps at their interval, and everything they tell.

It has an event loop and a session at the API server of its own, so that neither
admission nor the watches wait for it. Policies come from the revision in force,
which the cluster's thread swaps.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import threading
import time
from typing import TYPE_CHECKING, Final

import uvloop

from webhook import metrics
from webhook.app.audit_metrics import AuditMetrics
from webhook.app.reports import Reports
from webhook.app.reports_audit import AuditReports
from webhook.audit.events import AuditEvents
from webhook.audit.expansions import read_expansion
from webhook.audit.namespaces import Namespaces
from webhook.audit.scope import Scope
from webhook.audit.sink import Sinks
from webhook.audit.source import CacheSource, ListSource
from webhook.audit.statuses import ConstraintStatuses
from webhook.audit.sweep import Sweep
from webhook.audit.totals import Totals
from webhook.audit.violation_log import ViolationLog
from webhook.cluster.backoff import Backoff
from webhook.cluster.client import Client
from webhook.cluster.credentials import load_credentials
from webhook.cluster.errors import ApiError, UnreachableError
from webhook.constraint.breaker import Guard
from webhook.constraint.limits import Budget, Limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.app.decisions import DecisionLog
    from webhook.audit.sink import Sink
    from webhook.log import Logger
    from webhook.metrics import Registry
    from webhook.server.serving import Revision, Serving
    from webhook.settings.serve import ServeSettings

AWAIT_SECONDS: Final = 0.2
"""How often a revision of policies is looked for before the first sweep."""

STALLED_SECONDS: Final = 300.0
"""An audit that shows no sign of life for so long hangs: no request to the API server and no review
may take half of it."""

HEARTBEAT_SECONDS: Final = 5.0

PATIENCE: Final = 10
"""An evaluation may take so many times what an admission's may: nobody waits for it. What takes
more is suspended for the audit alone."""

STOP_SECONDS: Final = 5.0


class AuditThread:
    """Audits from :meth:`start` to :meth:`stop`."""

    def __init__(
        self,
        settings: ServeSettings,
        serving: Serving,
        registry: Registry,
        log: Logger,
        decisions: DecisionLog | None,
    ) -> None:
        """Read the credentials; raises :class:`~webhook.cluster.credentials.CredentialsError`."""
        self._settings = settings
        self._serving = serving
        self._registry = registry
        self._log = log
        self._decisions = decisions
        self._credentials = load_credentials(settings.kubeconfig or None)
        self._alive_at = time.monotonic()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._alive_at = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        """Leave the sweep where it is, and wait a moment for the thread."""
        loop, task = self._loop, self._task
        if loop is not None and task is not None and self._thread.is_alive():
            loop.call_soon_threadsafe(task.cancel)
            self._thread.join(timeout=STOP_SECONDS)

    def stalled(self) -> str:
        """Why the audit is taken for hanging, or an empty text; any thread may ask."""
        seconds = time.monotonic() - self._alive_at
        return "" if seconds < STALLED_SECONDS else f"no sign of life for {seconds:.0f} s"

    def _tick(self) -> None:
        self._alive_at = time.monotonic()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            try:
                runner.run(self._audit_forever())
            except asyncio.CancelledError:
                return

    async def _audit_forever(self) -> None:
        """Audit; after a bug begin anew."""
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        backoff = Backoff(initial_seconds=1.0)
        while True:
            try:
                async with Client(self._credentials) as client, asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._beat())
                    sweeps = Sweeps(
                        self._settings,
                        client,
                        self._serving,
                        self._registry,
                        self._log,
                        self._decisions,
                    )
                    if sweeps.reports is not None:
                        tasks.create_task(sweeps.reports.run())
                    if sweeps.events is not None:
                        tasks.create_task(sweeps.events.run())
                    tasks.create_task(self._sweep_forever(sweeps))
            except Exception as error:  # noqa: BLE001  # the thread's boundary: its end is not silent
                self._registry.count(metrics.AUDIT_SWEEPS, "failed")
                self._log.fault("bug: the sweep ended; beginning anew", error, process="audit")
            await asyncio.sleep(backoff.next_seconds())

    async def _beat(self) -> None:
        while True:
            self._tick()
            await asyncio.sleep(HEARTBEAT_SECONDS)

    async def _sweep_forever(self, sweeps: Sweeps) -> None:
        """Sweep at the interval; a sweep that takes longer is followed by the next at once."""
        interval = self._settings.audit_interval_seconds
        while (revision := self._serving.revision) is None:  # noqa: ASYNC110  # another thread's
            await asyncio.sleep(AWAIT_SECONDS)
        if not interval:
            self._log.info("no audit: --audit-interval=0", process="audit")
            return
        due = time.monotonic()
        while True:
            await sweeps.sweep(self._serving.revision or revision, self._tick)
            due = max(due + interval, time.monotonic())
            await asyncio.sleep(due - time.monotonic())


def _rest() -> None:
    """Let an admission go first."""
    time.sleep(0)


class Sweeps:
    """Makes one sweep after the other, for one session at the API server."""

    def __init__(
        self,
        settings: ServeSettings,
        client: Client,
        serving: Serving,
        registry: Registry,
        log: Logger,
        decisions: DecisionLog | None,
    ) -> None:
        self._settings = settings
        self._client = client
        self._log = log
        self._budget = Budget.of(
            settings.evaluation_budget_seconds * PATIENCE,
            rest=_rest if settings.serves_admission else None,
            guard=Guard(),
        )
        self._lists = ListSource(client, settings.audit_chunk_size)
        self._metrics = AuditMetrics(registry, self._lists.statistics)
        self._statuses = ConstraintStatuses(client, log)
        violations = ViolationLog(log)
        receivers = (violations, self._metrics, self._statuses)
        sinks: list[Sink] = [violations, self._metrics]
        if decisions is not None and (records := decisions.audit_sink()) is not None:
            sinks.append(records)
        self.events: AuditEvents | None = None
        self.reports: Reports | None = None
        if settings.reports:
            self.reports = Reports(
                client, serving, settings, log, self._limits, registry=registry, process="audit"
            )
            series_max = settings.max_constraint_series
            sinks.append(AuditReports(self.reports, registry, log, series_max=series_max))
        if settings.emit_audit_events:
            self.events = AuditEvents(
                client,
                settings.pod_namespace,
                log,
                in_violating_namespace=settings.audit_events_involved_namespace,
            )
            sinks.append(self.events)
        sinks.append(Totals(settings.constraint_violations_limit, receivers))
        self._sink = Sinks(sinks)

    async def sweep(self, revision: Revision, tick: Callable[[], None]) -> None:
        """One sweep by a revision of policies; what fails is logged and counted."""
        audit_id = dt.datetime.now(tz=dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        try:
            kinds = await self._lists.look()
            expansion = await read_expansion(self._client, kinds, self._log)
            scope = Scope(revision.snapshot, revision.is_excluded_from_audit, expansion)
            sweep = Sweep(
                audit_id,
                scope,
                (
                    CacheSource(kinds, revision.unsynced)
                    if self._settings.audit_from_cache
                    else self._lists
                ),
                Namespaces(self._client, revision.snapshot.namespaces),
                self._sink,
                self._log,
                limits=self._limits,
                tick=tick,
            )
            await sweep.run()
        except (ApiError, UnreachableError) as error:
            self._metrics.failed()
            self._log.error(
                "no sweep: the cluster cannot be asked", error=str(error), process="audit"
            )
        self._metrics.refresh(self._statuses, self.events)

    def _limits(self) -> Limits:
        deadline = time.monotonic() + self._settings.review_timeout_seconds
        return Limits(deadline=deadline, budget=self._budget)
