"""The known mutators, one generation of each, from which snapshots are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.encoding import is_same_json
from webhook.mutation.reading import read_mutator
from webhook.mutation.schema import MutationSchema
from webhook.mutation.snapshot import MutationSnapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from webhook.mutation.mutator import Binding, Mutator, MutatorId


ORDERED_MAX: Final = 64
"""The most sets of conflicting mutators whose order is cached."""


class Mutators:
    """Takes mutators and makes snapshots.

    One writer; any thread may read a snapshot.
    """

    def __init__(self) -> None:
        self._mutators: dict[MutatorId, Mutator] = {}
        self._previews: dict[MutatorId, Mutator] = {}
        self._previews_by_binding: dict[Binding, dict[MutatorId, Mutator]] = {}
        self._by_binding: dict[Binding, dict[MutatorId, Mutator]] = {}
        self._schemas: dict[Binding, tuple[MutationSchema, frozenset[MutatorId]]] = {}
        # With the previews of each binding, too: made once for all of them.
        self._with_previews: dict[Binding, MutationSchema] = {}
        self._ordered: dict[frozenset[frozenset[MutatorId]], tuple[MutatorId, ...]] = {}
        self._snapshot: MutationSnapshot | None = MutationSnapshot()

    @property
    def snapshot(self) -> MutationSnapshot:
        """The mutators as they are now."""
        if self._snapshot is None:
            conflicts = {item: self.conflicts_of(item) for item in sorted(self._conflicting())}
            would = {item: self.conflicts_of(item) for item in sorted(self._previews)}
            would = {item: parties for item, parties in would.items() if parties}
            preview = None
            if self._previews:
                both = (*self._enforced(), *self._previews.values())
                preview = MutationSnapshot(both, conflicts | would)
            self._snapshot = MutationSnapshot(
                tuple(self._enforced()), conflicts, preview=preview, would_conflict=would
            )
        return self._snapshot

    def _enforced(self) -> Iterator[Mutator]:
        return (item for item in self._mutators.values() if not item.is_preview)

    @property
    def ids(self) -> frozenset[MutatorId]:
        """Every known mutator, including mutators in a conflict."""
        return frozenset(self._mutators)

    @property
    def previews(self) -> frozenset[MutatorId]:
        """The identities of mutators in preview."""
        return frozenset(self._previews)

    def __contains__(self, mutator: object) -> bool:
        return mutator in self._mutators

    def warnings_of(self, mutator: MutatorId) -> tuple[str, ...]:
        """Returns warnings about a mutator that can be applied, but is probably wrong."""
        known = self._mutators.get(mutator)
        return () if known is None else known.warnings

    def add(self, document: Mapping[str, Any]) -> Mutator:
        """Adds or replaces a mutator; raises :class:`~webhook.mutation.errors.InvalidMutator`.

        If the new generation is refused, the previous generation stays.
        """
        mutator = read_mutator(document)
        old = self._mutators.get(mutator.id)
        if old is not None:
            if _is_same(old, mutator):
                return old
            self._unbind(old)
        self._mutators[mutator.id] = mutator
        self._forget_previews_of(mutator)
        if mutator.is_preview:
            self._previews[mutator.id] = mutator
            for binding in mutator.bindings:
                self._previews_by_binding.setdefault(binding, {})[mutator.id] = mutator
        for binding in () if mutator.is_preview else mutator.bindings:
            self._by_binding.setdefault(binding, {})[mutator.id] = mutator
            self._schemas.pop(binding, None)
        self._snapshot = None
        return mutator

    def remove(self, mutator: MutatorId) -> bool:
        """Removes a mutator; False if it was not there."""
        old = self._mutators.pop(mutator, None)
        if old is None:
            return False
        self._unbind(old)
        self._snapshot = None
        return True

    def conflicts_of(self, mutator: MutatorId) -> tuple[MutatorId, ...]:
        """Returns the mutators whose schemas conflict along this one's location, in their order."""
        known = self._mutators.get(mutator)
        if known is None:
            return ()
        if known.is_preview:
            return self._would_conflict(known)
        places: set[frozenset[MutatorId]] = set()
        for binding in known.bindings:
            schema, conflicting = self._schema(binding)
            if conflicting:
                places.update(schema.conflicts_of(known))
        return self._in_order(places)

    def _in_order(self, places: Iterable[frozenset[MutatorId]]) -> tuple[MutatorId, ...]:
        """Returns the mutators of a conflict in order, from the sets at each place of the conflict.

        Thousands of mutators may conflict at the same places, so each set is sorted once. A
        frozenset keeps its hash, so that looking it up costs the same however large it is.
        """
        key = frozenset(places)
        known = self._ordered.get(key)
        if known is None:
            if len(self._ordered) >= ORDERED_MAX:
                self._ordered.clear()
            known = self._ordered[key] = tuple(sorted(frozenset().union(*key)))
        return known

    def _would_conflict(self, preview: Mutator) -> tuple[MutatorId, ...]:
        """Returns the mutators that would conflict with this one; changes none in force."""
        opponents: set[frozenset[MutatorId]] = set()
        for binding in preview.bindings:
            schema = self._with_previews.get(binding)
            if schema is None:
                others = self._previews_by_binding[binding].values()
                schema = MutationSchema([*self._by_binding.get(binding, {}).values(), *others])
                self._with_previews[binding] = schema
            places = schema.conflicts_of(preview)
            if any(preview.id in parties for parties in places):
                opponents.update(places)
        return self._in_order(opponents)

    def _conflicting(self) -> set[MutatorId]:
        parties: set[MutatorId] = set()
        for binding in self._by_binding:
            parties |= self._schema(binding)[1]
        return parties

    def _schema(self, binding: Binding) -> tuple[MutationSchema, frozenset[MutatorId]]:
        known = self._schemas.get(binding)
        if known is None:
            schema = MutationSchema(self._by_binding[binding].values())
            known = self._schemas[binding] = schema, frozenset(schema.conflicting())
        return known

    def _forget_previews_of(self, mutator: Mutator) -> None:
        for binding in mutator.bindings:
            self._with_previews.pop(binding, None)

    def _unbind(self, mutator: Mutator) -> None:
        self._forget_previews_of(mutator)
        if mutator.is_preview:
            del self._previews[mutator.id]
            for binding in mutator.bindings:
                bound = self._previews_by_binding[binding]
                del bound[mutator.id]
                if not bound:
                    del self._previews_by_binding[binding]
            return
        for binding in mutator.bindings:
            bound = self._by_binding[binding]
            del bound[mutator.id]
            self._schemas.pop(binding, None)
            if not bound:
                del self._by_binding[binding]


def _is_same(old: Mutator, new: Mutator) -> bool:
    return (old.generation, old.is_preview) == (
        new.generation,
        new.is_preview,
    ) and is_same_json(old.document.get("spec"), new.document.get("spec"))
