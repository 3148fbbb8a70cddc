"""The audit in the metrics."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

from webhook.audit.sink import AuditSink, SweepEnd, SweepStart
from webhook.metrics.audit import (
    AUDIT_DURATION,
    AUDIT_EVENTS,
    AUDIT_KEPT_BYTES,
    AUDIT_KEPT_OBJECTS,
    AUDIT_LAST_RUN,
    AUDIT_LAST_RUN_END,
    AUDIT_LEFT_OUT,
    AUDIT_LISTS,
    AUDIT_OBJECTS,
    AUDIT_STRANDED,
    AUDIT_SWEEPS,
    AUDIT_UNCHANGED,
    AUDIT_UNDECIDED,
    AUDIT_UNREADABLE,
    AUDIT_VIOLATIONS,
)
from webhook.metrics.cluster import API_WRITE_FAILURES, API_WRITES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.audit.events import AuditEvents
    from webhook.audit.kept import KeptResults
    from webhook.audit.pages import ListStatistics
    from webhook.audit.statuses import ConstraintStatuses
    from webhook.audit.tally import ConstraintKey, Count
    from webhook.metrics.registry import Metric, Registry

ACTIONS = ("deny", "dryrun", "warn", "scoped", "unrecognized")
"""The values of ``enforcement_action`` that are always exported, as in Gatekeeper."""


class AuditMetrics(AuditSink):
    """A sink and a receiver of totals that keeps the audit's metrics. Used by one task."""

    def __init__(self, registry: Registry, lists: ListStatistics) -> None:
        self._registry = registry
        self._lists = lists
        self._known: dict[ConstraintKey, Counter[str]] = {}
        self._counted: dict[tuple[Metric, tuple[str, ...]], int] = {}

    async def start(self, start: SweepStart) -> None:
        """When it began."""
        del start
        self._registry.set(AUDIT_LAST_RUN, int(time.time()))

    async def end(self, end: SweepEnd) -> None:
        """Records the counts and duration of a sweep."""
        registry = self._registry
        registry.set(AUDIT_LAST_RUN_END, int(time.time()))
        registry.histogram(AUDIT_DURATION).observe(end.duration_ns / 1e9)
        registry.count(AUDIT_SWEEPS, "partial" if end.undecided else "complete")
        registry.count(AUDIT_OBJECTS, by=end.reviewed)
        registry.count(AUDIT_UNCHANGED, by=end.recalled)
        registry.count(AUDIT_LEFT_OUT, by=end.left_out)
        registry.count(AUDIT_STRANDED, by=end.stranded)
        registry.set(AUDIT_UNREADABLE, len(end.unreadable))
        registry.set(AUDIT_UNDECIDED, len(end.undecided))

    def failed(self) -> None:
        """A sweep that could not even begin."""
        self._registry.count(AUDIT_SWEEPS, "failed")

    async def publish(self, end: SweepEnd, totals: Mapping[ConstraintKey, Count]) -> None:
        """Exports violations by action: the last known total of each constraint."""
        there = {constraint.key for constraint in end.snapshot.constraints}
        self._known = {key: actions for key, actions in self._known.items() if key in there}
        self._known |= {key: count.actions for key, count in totals.items()}
        sums = Counter(dict.fromkeys(ACTIONS, 0))
        for actions in self._known.values():
            for action, number in actions.items():
                # A constraint's action may be any text, a label may not.
                sums[action if action in ACTIONS else "unrecognized"] += number
        self._registry.replace(
            AUDIT_VIOLATIONS, {(action,): float(number) for action, number in sums.items()}
        )

    def refresh(
        self,
        statuses: ConstraintStatuses,
        events: AuditEvents | None,
        kept: KeptResults | None = None,
    ) -> None:
        """Updates the metrics that other objects count."""
        self._count(API_WRITES, statuses.writes, "audit")
        self._count(API_WRITE_FAILURES, statuses.failures, "audit")
        self._count(AUDIT_LISTS, self._lists.continued, "continued")
        self._count(AUDIT_LISTS, self._lists.restarted, "restarted")
        if kept is not None:
            self._registry.set(AUDIT_KEPT_OBJECTS, kept.objects)
            self._registry.set(AUDIT_KEPT_BYTES, kept.bytes)
        if events is not None:
            for outcome, number in events.outcomes.items():
                self._count(AUDIT_EVENTS, number, outcome)

    def _count(self, metric: Metric, now: int, *labels: str) -> None:
        before = self._counted.get((metric, labels), 0)
        self._counted[metric, labels] = now
        self._registry.count(metric, *labels, by=now - before)
