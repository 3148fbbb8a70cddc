"""What a sweep found that mutators would change, counted by mutator."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from webhook.metrics.mutation import MUTATION_DRIFT

if TYPE_CHECKING:
    from webhook.audit.sink import Audited, Identity, SweepEnd, SweepStart
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.mutation.mutator import MutatorId

SERIES_MAX: Final = 1000
"""Mutators that are told of; of those beyond, the ones with most objects are."""


class DriftTotals:
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
        """Count an object with each mutator that would change it."""
        if audited.audit_id:
            self._objects.update(drift.mutator for drift in audited.drifts)

    async def gone(self, identity: Identity) -> None:
        """Nothing: the next sweep does not come across it."""

    async def end(self, end: SweepEnd) -> None:
        """Tell the numbers of a sweep of every kind."""
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
                mutators={str(mutator): self._objects[mutator] for mutator in self._told()},
            )

    def _told(self) -> list[MutatorId]:
        return sorted(mutator for mutator, _ in self._objects.most_common(20))
