"""Sweeps one after the other, and what happens between them, for one session at the API server."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from webhook.api import timestamp
from webhook.app.audit_metrics import AuditMetrics
from webhook.app.priority import give_way
from webhook.app.reports import Reports
from webhook.app.reports_audit import AuditReports
from webhook.audit.continuous import Continuous
from webhook.audit.events import AuditEvents
from webhook.audit.expansions import read_expansion
from webhook.audit.kinds import is_matchable
from webhook.audit.ledger import Ledger
from webhook.audit.members import Members, members
from webhook.audit.namespaces import Namespaces
from webhook.audit.results import Results
from webhook.audit.reviewer import PATIENCE, Reviewer
from webhook.audit.scope import Scope
from webhook.audit.sink import Sinks, SweepEnd
from webhook.audit.source import CacheSource, ListSource
from webhook.audit.statuses import ConstraintStatuses
from webhook.audit.sweep import Sweep
from webhook.audit.totals import Totals
from webhook.audit.violation_log import ViolationLog
from webhook.audit.watches import ObjectWatches
from webhook.cluster.errors import ApiError, UnreachableError
from webhook.cluster.kinds import PODS
from webhook.constraint.breaker import Guard
from webhook.constraint.limits import Budget, Limits
from webhook.replicas.pods import AUDIT_PODS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.api.gvk import GroupVersionKind
    from webhook.api.pod_status import Json
    from webhook.app.decisions import DecisionLog
    from webhook.audit.sink import Sink
    from webhook.audit.tally import ConstraintKey, Count
    from webhook.audit.totals import Receiver
    from webhook.cluster.client import Client
    from webhook.cluster.resource import Resource
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.server.serving import Revision, Serving
    from webhook.settings.serve import ServeSettings

MEMBERS_SECONDS: Final = 5.0
"""How often audits look for each other: one that is gone is missed for no longer."""

STEP_SECONDS: Final = 0.5
"""How soon a change of policy is noticed."""

WATCHES_SECONDS: Final = 30.0
"""How long a sweep waits for the watches' first lists; without them it sweeps all the same."""


def _every_kind(gvk: GroupVersionKind) -> bool:
    del gvk
    return True


class Sweeps:
    """Audits the cluster. Used by one task."""

    def __init__(
        self,
        settings: ServeSettings,
        client: Client,
        serving: Serving,
        registry: Registry,
        log: Logger,
        *,
        decisions: DecisionLog | None,
        tell: Callable[[Mapping[ConstraintKey, Json | None]], None],
    ) -> None:
        """``tell`` takes what one share of several found, for this replica's own statuses."""
        self._settings = settings
        self._client = client
        self._serving = serving
        self._log = log
        self._budget = Budget.of(
            settings.evaluation_budget_seconds * PATIENCE,
            rest=give_way if settings.serves_admission else None,
            guard=Guard(),
        )
        self._lists = ListSource(client, settings.audit_chunk_size)
        self._metrics = AuditMetrics(registry, self._lists.statistics)
        self._statuses = ConstraintStatuses(client, log)
        limit = settings.constraint_violations_limit
        self._results = Results(self._statuses, tell, self._is_current, limit)
        self._members = Members(frozenset({settings.pod_uid}), settings.pod_uid)
        violations = ViolationLog(log)
        receivers: list[Receiver] = [violations, self._metrics, self._results]
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
            sinks.append(
                AuditReports(
                    self.reports, registry, log, series_max=series_max, share=self._is_ours
                )
            )
        if settings.emit_audit_events:
            self.events = AuditEvents(
                client,
                settings.pod_namespace,
                log,
                in_violating_namespace=settings.audit_events_involved_namespace,
            )
            sinks.append(self.events)
        self._ledger = Ledger(limit) if settings.audit_continuous else None
        self._watches = ObjectWatches(client) if settings.audit_continuous else None
        self._continuous: Continuous | None = None
        # What changed is told to all but the totals: those are the ledger's then.
        self._told = Sinks(list(sinks))
        if self._ledger is not None:
            sinks.append(self._ledger)
            receivers.append(self._ledger)
        sinks.append(Totals(limit, receivers))
        self._sink = Sinks(sinks)

    async def run(self) -> None:
        """What goes on beside the sweeps: Events, reports and watches."""
        async with asyncio.TaskGroup() as tasks:
            for part in (self.reports, self.events, self._watches):
                if part is not None:
                    tasks.create_task(part.run())

    # --- a sweep -------------------------------------------------------------------------------

    async def sweep(
        self,
        revision: Revision,
        tick: Callable[[], None],
        kinds: Callable[[GroupVersionKind], bool] = _every_kind,
    ) -> None:
        """One sweep by a revision of policies; what fails is logged and counted."""
        audit_id = timestamp.now()
        try:
            self._members = self._results.members = await self._present_members()
            looked = await self._lists.look()
            expansion = await read_expansion(self._client, looked, self._log)
            scope = Scope(
                revision.snapshot,
                revision.is_excluded_from_audit,
                expansion,
                self._members.share,
                kinds,
            )
            await self._watch(scope, looked)
            sweep = Sweep(
                audit_id,
                scope,
                (
                    CacheSource(looked, revision.unsynced)
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
            self._continue(replace(scope, kinds=_every_kind))
        except (ApiError, UnreachableError) as error:
            self._metrics.failed()
            self._log.error(
                "no sweep: the cluster cannot be asked", error=str(error), process="audit"
            )
        self._metrics.refresh(self._statuses, self.events)

    async def _watch(self, scope: Scope, looked: tuple[Resource, ...]) -> None:
        """Watch what is audited, from before it is listed: no change falls between the two."""
        if self._watches is None:
            return
        self._watches.follow(
            resource
            for resource in looked
            if is_matchable(scope.snapshot, scope.expansion, resource.gvk)
        )
        await self._watches.wait_synced(WATCHES_SECONDS)

    def _limits(self) -> Limits:
        deadline = time.monotonic() + self._settings.review_timeout_seconds
        return Limits(deadline=deadline, budget=self._budget)

    # --- several audits ------------------------------------------------------------------------

    async def _present_members(self) -> Members:
        """The audits there are; this one alone where it does not know its own Pod."""
        own = self._settings.pod_uid
        if not own:
            return self._members
        query = {"labelSelector": AUDIT_PODS}
        path = PODS.collection(self._settings.pod_namespace)
        return members((await self._client.request("GET", path, query=query))["items"], own)

    async def _is_current(self) -> bool:
        """Whether shares are still as they were when the sweep began."""
        try:
            return await self._present_members() == self._members
        except (ApiError, UnreachableError):
            return False  # What cannot be told is not published.

    def _is_ours(self, gvk: GroupVersionKind, namespace: str) -> bool:
        return self._members.share(gvk, namespace)

    # --- between sweeps ------------------------------------------------------------------------

    async def follow(self, until: float, tick: Callable[[], None]) -> None:
        """Review what changes, until so late, or until shares move."""
        looked_at = time.monotonic()
        while (now := time.monotonic()) < until:
            if now - looked_at >= MEMBERS_SECONDS:
                looked_at = now
                if not await self._is_current():
                    return
            seconds = min(until - now, STEP_SECONDS if self._watches else MEMBERS_SECONDS)
            if self._continuous is None:
                await asyncio.sleep(seconds)
            else:
                await self._step(self._continuous, seconds, tick)

    async def _step(self, continuous: Continuous, seconds: float, tick: Callable[[], None]) -> None:
        revision = self._serving.revision
        if revision is not None and revision.snapshot is not continuous.snapshot:
            touched = continuous.touched(revision.snapshot)
            if touched:
                await self.sweep(revision, tick, touched.__contains__)
                return
            self._continue(
                replace(
                    continuous.scope,
                    snapshot=revision.snapshot,
                    is_excluded=revision.is_excluded_from_audit,
                )
            )
            return
        if self._watches is not None and (kinds := self._watches.take_overflowed()):
            if revision is not None:
                await self.sweep(revision, tick, kinds.__contains__)
            return
        await continuous.step(seconds, self._publish)

    def _continue(self, scope: Scope) -> None:
        """Review changes by these policies from now on."""
        if self._watches is None or self._ledger is None:
            return
        namespaces = Namespaces(self._client, scope.snapshot.namespaces)
        reviewer = Reviewer(scope, namespaces, self._log, self._limits)
        self._continuous = Continuous(
            scope, reviewer, self._watches, self._ledger, self._told, self._log
        )

    async def _publish(self, totals: Mapping[ConstraintKey, Count]) -> None:
        """Totals that changed between sweeps."""
        assert self._continuous is not None  # It is the one that publishes.
        end = SweepEnd(timestamp.now(), self._continuous.snapshot, frozenset())
        await self._metrics.publish(end, totals)
        await self._results.publish(end, totals)
        self._metrics.refresh(self._statuses, self.events)
