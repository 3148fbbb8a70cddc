"""How a mutator is put in force one way, and an ExpansionTemplate another."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from webhook.api import pod_status
from webhook.constraint.expansion import ExpansionSet, InvalidExpansion, read_expansion_template
from webhook.controllers.kinds import EXPANSION
from webhook.controllers.object_faults import described
from webhook.controllers.revisions.extension_state import ExtensionStanding
from webhook.controllers.revisions.revisions import InForce, attempts
from webhook.mutation.errors import InvalidMutator
from webhook.mutation.mutator import MutatorId, staged
from webhook.mutation.reading import with_defaults
from webhook.mutation.registry import Mutators
from webhook.mutation.schema import message

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from webhook.constraint.expansion import Expansion
    from webhook.controllers.object_faults import ObjectFaults
    from webhook.controllers.revisions.extension_state import ExtensionKey, ExtensionState
    from webhook.controllers.revisions.revisions import Revisions
    from webhook.mutation.snapshot import MutationSnapshot

CONFLICT: Final = "ErrConflictingSchema"
"""The type of a conflict in a status."""


class ExtensionStrategy(Protocol):
    """What is done with mutators, or with ExpansionTemplates."""

    def put(self, document: Mapping[str, Any], status: Mapping[str, Any] | None) -> str:
        """Put a generation in force; why that cannot be, empty where it is done.

        ``status`` is the one that stands in the cluster, whichever generation this is.
        """

    def remove(self, key: ExtensionKey) -> None:
        """Take an object out of force, if it is."""

    def is_applied(self, key: ExtensionKey) -> bool:
        """Whether something of an object is in force, and no other keeps it from being applied."""

    def shared_faults(self) -> dict[ExtensionKey, str]:
        """What is wrong with objects because of others."""

    def standing(
        self, key: ExtensionKey, document: Mapping[str, Any], shared: str
    ) -> ExtensionStanding:
        """What an object is among the others; ``shared`` is its shared fault, empty for none."""


class MutatorStrategy:
    """Mutators: applied at the stage of their roll-out, unless their schemas conflict."""

    def __init__(self) -> None:
        self._mutators = Mutators()

    @property
    def snapshot(self) -> MutationSnapshot:
        """Those in force."""
        return self._mutators.snapshot

    def __contains__(self, mutator: object) -> bool:
        return mutator in self._mutators

    def put(self, document: Mapping[str, Any], status: Mapping[str, Any] | None) -> str:
        """Apply this generation."""
        try:
            self._mutators.add(with_defaults(staged(document, status)))
        except InvalidMutator as refusal:
            return str(refusal)
        return ""

    def remove(self, key: ExtensionKey) -> None:
        """Apply it no more."""
        self._mutators.remove(MutatorId(*key))

    def is_applied(self, key: ExtensionKey) -> bool:
        """Whether no conflict keeps it back."""
        mutator = MutatorId(*key)
        return mutator in self._mutators and mutator not in self.snapshot.conflicts

    def shared_faults(self) -> dict[ExtensionKey, str]:
        """The conflicts, and those that there would be with what is only previewed."""
        snapshot = self.snapshot
        return {
            (item.kind, item.name): message(parties)
            for faults in (snapshot.conflicts, snapshot.would_conflict)
            for item, parties in faults.items()
        }

    def standing(
        self, key: ExtensionKey, document: Mapping[str, Any], shared: str
    ) -> ExtensionStanding:
        """With the type that Gatekeeper has for a conflict."""
        return ExtensionStanding(
            pod_status.mutator_subject(document),
            {"message": shared, "type": CONFLICT} if shared else None,
            self._mutators.warnings_of(MutatorId(*key)),
            is_preview=MutatorId(*key) in self._mutators.previews,
            says_enforced=True,
        )


class ExpansionStrategy:
    """ExpansionTemplates: in force unless they expand in a circle."""

    def __init__(self) -> None:
        self._expansions = ExpansionSet()

    @property
    def expansion(self) -> Expansion:
        """Those in force."""
        return self._expansions.expansion

    def put(self, document: Mapping[str, Any], status: Mapping[str, Any] | None) -> str:
        """Expand by this generation."""
        del status
        try:
            self._expansions.add(read_expansion_template(document))
        except InvalidExpansion as refusal:
            return str(refusal)
        return ""

    def remove(self, key: ExtensionKey) -> None:
        """Expand by it no more."""
        self._expansions.remove(key[1])

    def is_applied(self, key: ExtensionKey) -> bool:
        """Whether it is in no circle."""
        return key[1] in self._expansions.names - self._expansions.faults.keys()

    def shared_faults(self) -> dict[ExtensionKey, str]:
        """The circles."""
        return {(EXPANSION.kind, name): why for name, why in self._expansions.faults.items()}

    def standing(
        self, key: ExtensionKey, document: Mapping[str, Any], shared: str
    ) -> ExtensionStanding:
        """An ExpansionTemplate's status has no types of errors."""
        del key
        subject = pod_status.expansion_subject(document)
        return ExtensionStanding(subject, {"message": shared} if shared else None)


def applied(
    key: ExtensionKey,
    state: ExtensionState,
    strategy: ExtensionStrategy,
    revisions: Revisions,
    object_faults: ObjectFaults,
) -> ExtensionState:
    """The object with what of it can be in force, and what is wrong with its newest generation."""
    outcome = object_faults.attempt(
        "extension", key, lambda: _attempted(key, state, strategy, revisions, object_faults)
    )
    return replace(state, error=described(outcome)) if isinstance(outcome, Exception) else outcome


def _attempted(
    key: ExtensionKey,
    state: ExtensionState,
    strategy: ExtensionStrategy,
    revisions: Revisions,
    object_faults: ObjectFaults,
) -> ExtensionState:
    fault, is_foreseen = "", True
    for attempt in attempts(state.document, state.in_force, revisions):
        if not isinstance(attempt, InForce):
            fault = fault or str(attempt)
            continue
        status = state.document.get("status")
        put = object_faults.attempt(
            "extension", key, partial(strategy.put, attempt.document, status)
        )
        refusal = put if isinstance(put, str) else described(put)
        is_foreseen = is_foreseen and isinstance(put, str)
        if not refusal:
            state = replace(state, in_force=attempt)
            break
        fault = fault or refusal
    if is_foreseen:
        object_faults.clear("extension", *key)
    return replace(state, error=fault)
