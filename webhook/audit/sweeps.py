"""Successive sweeps, and the reviews between them, for one session at the API server."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from webhook.api import timestamp
from webhook.api.audit_shard import shard
from webhook.audit.continuous import Continuous
from webhook.audit.foreign_totals import (
    OF_ADMISSION_POLICIES,
    OF_KYVERNO_POLICIES,
    SERIES_MAX,
    ForeignTotals,
)
from webhook.audit.ledger import AuditLedger
from webhook.audit.namespaces import Namespaces
from webhook.audit.reviewer import Reviewer
from webhook.audit.scope import Scope
from webhook.audit.sink import Audited, AuditSink, Sinks, SweepEnd, SweepStart
from webhook.audit.source import CacheSource, ListSource
from webhook.audit.statuses import ConstraintStatuses
from webhook.audit.sweep import Sweep
from webhook.audit.sweep_metrics import AuditMetrics
from webhook.audit.totals import Totals, TotalsReceiver
from webhook.audit.violation_log import ViolationLog
from webhook.audit.watches import ObjectWatches
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.metrics.audit import EXCUSED_VIOLATIONS
from webhook.metrics.mutation import MUTATION_DRIFT
from webhook.policy_kinds.known import extension_named
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from webhook.api.gvk import GroupVersionKind
    from webhook.api.resource import Resource
    from webhook.api.shapes import Json
    from webhook.audit.events import AuditEvents
    from webhook.audit.kept import KeptResults
    from webhook.audit.members import Members
    from webhook.audit.shares import Shares
    from webhook.audit.tally import ConstraintKey, Count
    from webhook.cluster.client import ClusterClient
    from webhook.constraint.limits import Limits
    from webhook.external_data.exchange import AskAsync
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.mutation.mutator import MutatorId
    from webhook.serving.revision import ExceptionUses, Revision, Serving

MEMBERS_SECONDS: Final = 5.0
"""The interval at which audits look for each other, in seconds: the longest unnoticed absence."""

AWAIT_SECONDS: Final = 0.2
"""The interval of looking for a revision of policies before the first sweep, in seconds."""

STEP_SECONDS: Final = 0.5
"""The longest wait of a sweep for the watches' first lists, in seconds; it then starts without
them."""

WATCHES_SECONDS: Final = 30.0
"""How long a sweep waits for the watches' first lists; without them it sweeps all the same."""


class Results:
    """A receiver of totals. Used by one task."""

    def __init__(
        self,
        statuses: ConstraintStatuses,
        notify: Callable[[Mapping[ConstraintKey, Json | None]], None],
        is_current: Callable[[], Awaitable[bool]],
        limit: int,
    ) -> None:
        """``notify`` takes a share's results, for this replica's own statuses; None for none.

        ``is_current`` returns whether the members of the shares are unchanged: if not, the results
        are no longer a share, and the former total stays.
        """
        self._is_current = is_current
        self._statuses = statuses
        self._notify = notify
        self._limit = limit
        self._shared: set[ConstraintKey] = set()
        self.members: Members | None = None
        """The members of this sweep's shares; None for audits that are always single."""

    async def publish(self, end: SweepEnd, totals: Mapping[ConstraintKey, Count]) -> None:
        """Writes the totals, or reports this share's."""
        if not await self._is_current():
            return
        if self.members is None or self.members.is_alone:
            if self._shared:
                self._notify(dict.fromkeys(self._shared))
                self._shared.clear()
            await self._statuses.publish(end, totals)
            return
        digest = self.members.digest
        self._shared |= totals.keys()
        self._notify(
            {
                key: shard(end.audit_id, digest, count.total, count.documents(), limit=self._limit)
                for key, count in totals.items()
            }
        )


def _shown(mutator: MutatorId) -> str:
    """Returns a mutator, or a mutating policy of others, with its group."""
    return f"{mutator.kind}.{extension_named(mutator.kind).group} /{mutator.name}"


class DriftTotals(AuditSink):
    """A sink of the audit. Used by one task."""

    def __init__(self, registry: Registry, log: Logger) -> None:
        self._registry = registry
        self._log = log
        self._objects: Counter[MutatorId] = Counter()

    async def start(self, start: SweepStart) -> None:
        """A sweep begins."""
        del start
        self._objects.clear()

    async def audited(self, audited: Audited) -> None:
        """Counts an object with each mutator that would change it."""
        if audited.audit_id:
            self._objects.update(drift.mutator for drift in audited.drifts)

    async def end(self, end: SweepEnd) -> None:
        """Reports the numbers of a sweep of every kind."""
        if not end.is_whole:
            return
        self._registry.replace(
            MUTATION_DRIFT,
            {
                (mutator.kind, mutator.name): float(number)
                for mutator, number in self._objects.most_common(SERIES_MAX)
            },
        )
        if self._objects:
            self._log.info(
                "mutators would change objects that exist",
                process="audit",
                audit_id=end.audit_id,
                mutators={
                    _shown(mutator): self._objects[mutator] for mutator in self._first_mutators()
                },
            )

    def _first_mutators(self) -> list[MutatorId]:
        return sorted(mutator for mutator, _ in self._objects.most_common(20))


class ExcusedTotals(AuditSink):
    """A sink for excused violations and the use of exceptions. Used by one task."""

    def __init__(self, registry: Registry, uses: ExceptionUses) -> None:
        self._registry = registry
        self._uses = uses
        self._counts: Counter[tuple[str, str]] = Counter()

    async def start(self, start: SweepStart) -> None:
        """A sweep begins."""
        del start
        self._counts.clear()

    async def audited(self, audited: Audited) -> None:
        """Counts the excused violations of an object."""
        responses = audited.responses
        if not responses.excused and not responses.results:
            return
        self._uses.note(responses)
        if audited.audit_id:
            self._counts.update(
                (result.constraint.kind, result.excuse.effect)
                for result in (*responses.excused, *responses.results)
                if result.excuse is not None
            )

    async def end(self, end: SweepEnd) -> None:
        """Reports the numbers of a sweep of every kind."""
        if end.is_whole:
            self._registry.replace(
                EXCUSED_VIOLATIONS, {(*key,): float(number) for key, number in self._counts.items()}
            )


def _every_kind(gvk: GroupVersionKind) -> bool:
    del gvk
    return True


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """How to sweep, as set."""

    chunk_size: int
    """Objects in a page of a list."""
    violations_limit: int
    """Violations that a constraint's status shows."""
    continuous: bool
    """Whether an object that changes between sweeps is reviewed at once."""
    from_cache: bool
    """Whether only synced objects are reviewed, as policies see them."""
    reports_drift: bool = False
    """Whether the changes that mutators would make to existing objects are reported."""
    admission_policies: bool = False
    """Whether the API server's own policies are reviewed by, too."""
    kyverno_policies: bool = False
    """Whether Kyverno's are."""


class Sweeps:
    """Audits the cluster. Used by one task."""

    def __init__(  # noqa: PLR0913  # the parts it joins, each named
        self,
        client: ClusterClient,
        serving: Serving,
        options: SweepOptions,
        shares: Shares,
        limits: Callable[[], Limits],
        *,
        registry: Registry,
        log: Logger,
        sinks: Sequence[AuditSink],
        events: AuditEvents | None,
        notify: Callable[[Mapping[ConstraintKey, Json | None]], None],
        ask: AskAsync | None = None,
        kept: KeptResults | None = None,
    ) -> None:
        """``sinks`` receive each object, ``events`` among them if given.

        ``limits`` returns the limits of a review; ``notify`` takes the results of one share of
        several, for this replica's own statuses; ``ask`` calls providers; ``kept`` has the results
        of earlier sweeps, None to review each object in each sweep.
        """
        self._kept = kept
        self._ask = ask
        self._client = client
        self._serving = serving
        self._options = options
        self._shares = shares
        self._limits = limits
        self._log = log
        self._events = events
        self._lists = ListSource(client, options.chunk_size)
        self._metrics = AuditMetrics(registry, self._lists.statistics)
        self._statuses = ConstraintStatuses(client, log)
        limit = options.violations_limit
        self._results = Results(self._statuses, notify, shares.is_current, limit)
        violations = ViolationLog(log)
        receivers: list[TotalsReceiver] = [self._metrics, self._results]
        every: list[AuditSink] = [self._metrics, *sinks]
        every.append(ExcusedTotals(registry, serving.uses))
        if options.reports_drift:
            every.append(DriftTotals(registry, log))
        if options.admission_policies:
            every.append(ForeignTotals(OF_ADMISSION_POLICIES, registry, log))
        if options.kyverno_policies:
            every.append(ForeignTotals(OF_KYVERNO_POLICIES, registry, log))
        self._ledger = AuditLedger() if options.continuous else None
        self._watches = ObjectWatches(client) if options.continuous else None
        self._continuous: Continuous | None = None
        # Changes go to all sinks except the totals, which the ledger then corrects.
        self._of_changes = Sinks([*every, violations])
        if self._ledger is not None:
            every.append(self._ledger)
            receivers.append(self._ledger)
        # The log is last: readers of a sweep's end then find metrics and statuses updated.
        every.append(Totals(limit, [*receivers, violations]))
        self._sink = Sinks([*every, violations])

    async def run(self) -> None:
        """Runs the tasks beside the sweeps."""
        if self._watches is not None:
            await self._watches.run()

    async def sweep_forever(self, interval_seconds: float, tick: Callable[[], None]) -> None:
        """Sweeps at the interval, or after a change of shares; a late sweep is followed at once.

        Uses the policies in force, once there are any; ``tick`` is called throughout.
        """
        while (  # noqa: ASYNC110  # another thread's
            revision := self._serving.revision
        ) is None or self._serving.awaits_admission_policies:
            await asyncio.sleep(AWAIT_SECONDS)
        if not interval_seconds:
            self._log.info("audits are off: --audit-interval=0", process="audit")
            return
        due = time.monotonic()
        while True:
            await self.sweep(self._serving.revision or revision, tick)
            due = max(due + interval_seconds, time.monotonic())
            await self.follow(due, tick)
            due = min(due, time.monotonic())

    # --- a sweep -------------------------------------------------------------------------------

    async def sweep(
        self,
        revision: Revision,
        tick: Callable[[], None],
        kinds: Callable[[GroupVersionKind], bool] = _every_kind,
    ) -> None:
        """Runs one sweep by a revision of policies; faults are logged and counted."""
        audit_id = timestamp.now()
        try:
            self._results.members = await self._shares.look()
            looked = await self._lists.look()
            scope = self._scope(revision, kinds)
            await self._watch(scope, looked)
            sweep = Sweep(
                audit_id,
                scope,
                (
                    CacheSource(looked, revision.synced, revision.unsynced)
                    if self._options.from_cache
                    else self._lists
                ),
                Namespaces(self._client, revision.snapshot.namespaces),
                self._sink,
                self._log,
                limits=self._limits,
                tick=tick,
                ask=self._ask,
                kept=self._kept,
            )
            await sweep.run()
            self._continue(revision, time.monotonic())
        except (ApiError, ApiUnreachable) as error:
            self._metrics.failed()
            self._log.error(
                "an audit failed; the next one begins at its interval",
                error=str(error),
                process="audit",
            )
        self._metrics.refresh(self._statuses, self._events, self._kept)

    def _scope(
        self, revision: Revision, kinds: Callable[[GroupVersionKind], bool] = _every_kind
    ) -> Scope:
        """Returns the scope of an audit by a revision, in a sweep and after it."""
        reports_drift = self._options.reports_drift
        policies = self._serving.audited(revision)
        return Scope(policies, self._shares.is_ours, kinds, reports_drift)

    async def _watch(self, scope: Scope, looked: tuple[Resource, ...]) -> None:
        """Watches audited kinds, starting before their lists: no change between the two is lost."""
        if self._watches is None:
            return
        self._watches.follow(resource for resource in looked if scope.is_listed(resource.gvk))
        await self._watches.wait_synced(WATCHES_SECONDS)

    # --- between sweeps ------------------------------------------------------------------------

    async def follow(self, until: float, tick: Callable[[], None]) -> None:
        """Reviews changes until a time, or until shares change."""
        looked_at = time.monotonic()
        while (now := time.monotonic()) < until:
            if now - looked_at >= MEMBERS_SECONDS:
                looked_at = now
                if not await self._shares.is_current():
                    return
            seconds = min(until - now, STEP_SECONDS if self._watches else MEMBERS_SECONDS)
            if self._continuous is None:
                await asyncio.sleep(seconds)
            else:
                await self._step(self._continuous, seconds, tick)

    async def _step(self, continuous: Continuous, seconds: float, tick: Callable[[], None]) -> None:
        revision = self._serving.revision
        if revision is not None and revision is not continuous.revision:
            if (kinds_to_sweep := continuous.kinds_to_sweep(revision)) is not None:
                await self.sweep(revision, tick, kinds_to_sweep)
                return
            # Synced data changes often: totals are not postponed each time.
            self._continue(revision, continuous.published_at)
            return
        if self._watches is not None and (kinds := self._watches.take_overflowed()):
            if revision is not None:
                await self.sweep(revision, tick, kinds.__contains__)
            return
        await continuous.step(seconds, self._publish)

    def _continue(self, revision: Revision, published_at: float) -> None:
        """Reviews changes by this revision from now on; totals were published at that time."""
        if self._watches is None or self._ledger is None:
            return
        scope = self._scope(revision)
        namespaces = Namespaces(self._client, revision.snapshot.namespaces)
        reviewer = Reviewer(scope, namespaces, self._log, self._limits, self._ask)
        self._continuous = Continuous(
            revision,
            scope,
            reviewer,
            self._watches,
            self._ledger,
            self._of_changes,
            log=self._log,
            published_at=published_at,
        )

    async def _publish(self, totals: Mapping[ConstraintKey, Count]) -> None:
        """Totals that changed between sweeps."""
        assert self._continuous is not None  # Only this one publishes.
        end = SweepEnd(timestamp.now(), self._continuous.revision.snapshot, frozenset())
        await self._metrics.publish(end, totals)
        await self._results.publish(end, totals)
        self._metrics.refresh(self._statuses, self._events)
