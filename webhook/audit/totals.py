"""The totals of a sweep by constraint, from completely reported kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from webhook.api.gvk import GroupVersionKind
from webhook.audit.sink import Audited, AuditSink, SweepEnd, SweepStart
from webhook.audit.tally import ConstraintKey, Count, Tally


class TotalsReceiver(Protocol):
    """Takes the totals of each sweep."""

    async def publish(self, end: SweepEnd, totals: Mapping[ConstraintKey, Count]) -> None:
        """Receives the totals of every constraint that the sweep decided, zero included."""


class Totals(AuditSink):
    """A sink that counts. Used by one task.

    Counts are kept by kind until the sweep ends: counts of incomplete or deleted kinds are dropped.
    """

    def __init__(self, limit: int, receivers: Sequence[TotalsReceiver]) -> None:
        """``limit`` is the most violations kept of each constraint."""
        self._limit = limit
        self._receivers = receivers
        self._by_kind: dict[GroupVersionKind, Tally] = {}

    async def start(self, start: SweepStart) -> None:
        """Starts empty."""
        del start
        self._by_kind = {}

    async def audited(self, audited: Audited) -> None:
        """Counts an object's results."""
        if not audited.audit_id or not audited.responses.results:
            return
        gvk = audited.identity.gvk
        tally = self._by_kind.get(gvk)
        if tally is None:
            tally = self._by_kind[gvk] = Tally(self._limit)
        for result in audited.responses.results:
            tally.add(audited.identity, result)

    async def end(self, end: SweepEnd) -> None:
        """Adds up the counts, and publishes decided totals."""
        whole = Tally(self._limit)
        for gvk in sorted(end.complete & self._by_kind.keys()):
            whole.merge(self._by_kind[gvk])
        self._by_kind = {}
        totals = {
            constraint.key: whole.get(constraint.key)
            for constraint in end.snapshot.constraints
            if constraint.key not in end.undecided
        }
        for receiver in self._receivers:
            await receiver.publish(end, totals)
