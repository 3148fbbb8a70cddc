"""Remembers the violations of each object in short form, to correct totals after a change.

A sweep fills it. Between sweeps a changed object is reviewed alone, and the totals of the
constraints that it violates now or did before are corrected. Objects without violations use no
memory. An object with violations takes about :data:`OBJECT_BYTES`, and :data:`ENTRY_BYTES` for each
constraint. The first violations of each constraint, which a status shows, are kept in addition.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from webhook.audit.sink import Audited, AuditSink, Identity, SweepEnd, SweepStart
from webhook.audit.tally import ConstraintKey, Count, violation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.api.gvk import GroupVersionKind
    from webhook.constraint.result import Result

OBJECT_BYTES: Final = 300
"""Bytes of a UID (85), its entry in a dict (about 100), a tuple with a hash (96)."""
ENTRY_BYTES: Final = 72
"""Bytes of a pair of small numbers (56) and its slot (16 with growth)."""

_Entry = tuple[int, tuple[tuple[int, int], ...]]
"""A hash of the results, and the number of violations of each constraint, by its number."""


class AuditLedger(AuditSink):
    """A sink, and a receiver of totals. Used by one task."""

    def __init__(self) -> None:
        self._numbers: dict[ConstraintKey, int] = {}
        self._keys: list[ConstraintKey] = []
        self._kinds: dict[GroupVersionKind, dict[str, _Entry]] = {}
        self._fresh: dict[GroupVersionKind, dict[str, _Entry]] = {}
        self._counts: dict[ConstraintKey, Count] = {}
        self._dirty: set[ConstraintKey] = set()

    @property
    def objects(self) -> int:
        """Returns the number of objects with violations."""
        return sum(map(len, self._kinds.values()))

    # --- a sweep -------------------------------------------------------------------------------

    async def start(self, start: SweepStart) -> None:
        """Starts empty for the kinds that will be listed."""
        self._fresh = {gvk: {} for gvk in start.kinds}

    async def audited(self, audited: Audited) -> None:
        """Keeps results of a sweep; :meth:`change` takes those outside of one."""
        if audited.audit_id and audited.responses.results:
            entry = self._entry(audited.responses.results)
            self._fresh.setdefault(audited.identity.gvk, {})[audited.identity.uid] = entry

    async def end(self, end: SweepEnd) -> None:
        """Ends a sweep: objects absent from complete kinds are dropped; others stay."""
        for gvk, fresh in self._fresh.items():
            known = self._kinds.get(gvk, {})
            self._kinds[gvk] = fresh if gvk in end.complete else {**known, **fresh}
        self._fresh = {}

    async def publish(self, end: SweepEnd, totals: Mapping[ConstraintKey, Count]) -> None:
        """Takes the totals, and drops deleted constraints."""
        there = {constraint.key for constraint in end.snapshot.constraints}
        self._counts = {key: count for key, count in self._counts.items() if key in there}
        self._counts |= totals
        self._dirty.clear()

    # --- a change ------------------------------------------------------------------------------

    def differs(self, identity: Identity, results: Sequence[Result]) -> bool:
        """Returns whether an object's results differ from the recorded ones."""
        known = self._kinds.get(identity.gvk, {}).get(identity.uid)
        if known is None:
            return bool(results)
        return known[0] != _hash(results)

    def change(self, identity: Identity, results: Sequence[Result]) -> None:
        """Corrects the totals by an object's present results; none for a deleted object."""
        kind = self._kinds.setdefault(identity.gvk, {})
        _, before = kind.pop(identity.uid, (0, ()))
        if results:
            kind[identity.uid] = self._entry(results)
        lost = {self._keys[number]: count for number, count in before}
        by_constraint: dict[ConstraintKey, list[Result]] = {}
        for result in results:
            by_constraint.setdefault(result.constraint.key, []).append(result)
        for key in lost.keys() | by_constraint.keys():
            count = self._counts.get(key)
            if count is None:
                continue  # No sweep has its total yet, or it was deleted.
            new = by_constraint.get(key, [])
            self._correct(count, identity, lost.get(key, 0), new)
            self._dirty.add(key)

    def _correct(self, count: Count, identity: Identity, lost: int, new: list[Result]) -> None:
        place = (identity.gvk.group, identity.gvk.kind, identity.namespace, identity.name)
        count.first = [
            item
            for item in count.first
            if (item.group, item.kind, item.namespace, item.name) != place
        ]
        action = next(iter(count.actions), "")
        count.total -= lost
        for result in new:
            count.add(violation(identity, result))
            action = result.enforcement_action
        # All violations of a constraint have the action of the constraint.
        count.actions = Counter({action: count.total} if count.total else {})

    def take_changed(self) -> dict[ConstraintKey, Count]:
        """Returns the totals that changed since the last call, or the last sweep."""
        taken = {key: self._counts[key] for key in self._dirty if key in self._counts}
        self._dirty.clear()
        return taken

    def _entry(self, results: Sequence[Result]) -> _Entry:
        counts = Counter(self._number(result.constraint.key) for result in results)
        return _hash(results), tuple(sorted(counts.items()))

    def _number(self, key: ConstraintKey) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._keys)
            self._keys.append(key)
        return number


def _hash(results: Sequence[Result]) -> int:
    """Returns a hash, equal for equal violations in any order within this process."""
    return hash(
        frozenset((result.constraint.key, result.msg, result.actions) for result in results)
    )
