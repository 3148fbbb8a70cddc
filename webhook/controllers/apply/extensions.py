"""Mutators and ExpansionTemplates of the cluster, and what this replica says of each.

As for constraints, an object costs only itself: one that is refused leaves its last good
generation in force, and says so. Mutators whose schemas conflict all say so, and are applied
again once the conflict is over; so do the templates of a circle of expansions.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from webhook.api import timestamp
from webhook.constraint.expansion import Expansion
from webhook.controllers.apply.extension_strategies import (
    ExpansionStrategy,
    MutatorStrategy,
    applied,
)
from webhook.controllers.kinds import EXPANSION, EXTENSIONS
from webhook.controllers.object_faults import ObjectFaults, described
from webhook.controllers.revisions.extension_state import (
    ExtensionState,
    extension_status,
    subject_key,
    uid_of,
)
from webhook.controllers.revisions.revisions import NoRevisions, rollback_of
from webhook.controllers.status.published import PublishedPolicies
from webhook.metrics.mutation import INGESTION_DURATION, INGESTIONS
from webhook.mutation.snapshot import MutationSnapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webhook.api.gvk import GroupVersionKind
    from webhook.api.pod_status import Pod
    from webhook.api.shapes import Json
    from webhook.controllers.apply.extension_strategies import ExtensionStrategy
    from webhook.controllers.revisions.extension_state import ExtensionKey
    from webhook.controllers.revisions.revisions import InForce, Revisions
    from webhook.metrics.registry import Registry
    from webhook.mutation.fights import Fight
    from webhook.mutation.mutator import MutatorId
    from webhook.readiness import Tracker


TogetherT = TypeVar("TogetherT")


class ExtensionController:
    """Applies mutators and ExpansionTemplates, and knows the statuses that follow."""

    def __init__(
        self,
        tracker: Tracker,
        pod: Pod,
        *,
        wait_for_broken: bool = False,
        object_faults: ObjectFaults | None = None,
        registry: Registry | None = None,
        revisions: Revisions | None = None,
        now: Callable[[], str] = timestamp.now,
    ) -> None:
        """With ``wait_for_broken`` a broken object holds readiness back.

        ``revisions`` has those kept; ``now`` gives the time for statuses, in RFC 3339.
        """
        self._registry = registry
        self._revisions = revisions or NoRevisions()
        self._now = now
        self._tracker = tracker
        self._pod = pod
        self._wait_for_broken = wait_for_broken
        self._object_faults = object_faults or ObjectFaults()
        self._of_mutators = MutatorStrategy()
        self._of_expansions = ExpansionStrategy()
        self._states: dict[ExtensionKey, ExtensionState] = {}
        self._touched: set[ExtensionKey] = set()
        self._shared: dict[ExtensionKey, str] = {}
        """What the conflicts and circles were when statuses were made."""
        self._told = PublishedPolicies()
        self._last: dict[str, Any] = {}
        """What objects came to together when that could be found out last."""

    def begin(self) -> None:
        """Say what is awaited."""
        for gvk in EXTENSIONS:
            self._tracker.track(gvk.kind)

    # --- what the cluster holds ----------------------------------------------------------------

    def take(self, kind: str, name: str, document: Mapping[str, Any] | None) -> None:
        """Take an object as it is now; None when it is gone."""
        key = kind, name
        self._touched.add(key)
        before = self._states.get(key)
        if before is not None and (document is None or before.uid != uid_of(document)):
            # Gone, or made anew between two looks: nothing of the old one counts.
            self._strategy(kind).remove(key)
            del self._states[key]
            before = None
        if document is None:
            self._object_faults.clear("extension", kind, name)
            return
        known = ExtensionState(document) if before is None else replace(before, document=document)
        began = time.perf_counter()
        state = self._apply(key, known)
        if kind != EXPANSION.kind and self._registry is not None:
            status = "error" if state.error else "active"
            self._registry.count(INGESTIONS, status)
            seconds = self._registry.histogram(INGESTION_DURATION, status)
            seconds.observe(time.perf_counter() - began)

    def spoil(self, kind: str, name: str, document: Mapping[str, Any], error: Exception) -> None:
        """Taking an object raised what nobody foresaw: what was in force stays, its status says so."""
        known = self._states.get((kind, name))
        is_same = known is not None and known.uid == uid_of(document)
        state = replace(known, document=document) if known and is_same else ExtensionState(document)
        self._states[kind, name] = replace(state, error=described(error))
        self._touched.add((kind, name))

    def _strategy(self, kind: str) -> ExtensionStrategy:
        return self._of_expansions if kind == EXPANSION.kind else self._of_mutators

    def _apply(self, key: ExtensionKey, known: ExtensionState) -> ExtensionState:
        """Put an object in force, or else what was or is kept of it, and note what is wrong."""
        state = applied(key, known, self._strategy(key[0]), self._revisions, self._object_faults)
        self._states[key] = state
        return state

    def revised(self, subjects: Iterable[tuple[str, str]]) -> None:
        """Revisions of these objects came or went: see whether one was waited for."""
        for group, name in subjects:
            kind, _, of_group = group.partition(".")
            state = self._states.get((kind, name))
            if not of_group or state is None:
                continue
            if rollback_of(state.document) or state.in_force is None:
                self._apply((kind, name), state)
                self._touched.add((kind, name))

    def take_good(self) -> dict[tuple[str, str], InForce | None]:
        """What is in force of each object that changed since the last call; None for none."""
        return self._told.take_news()

    def take_fights(self, fights: Mapping[MutatorId, Fight]) -> None:
        """Note which mutators fight with somebody now."""
        now = {
            (item.kind, item.name): fight.object
            for item, fight in fights.items()
            if item in self._of_mutators
        }
        for key, state in self._states.items():
            fighting = now.get(key, "")
            if state.fighting != fighting:
                self._states[key] = replace(state, fighting=fighting)
                self._touched.add(key)

    def listed(self, gvk: GroupVersionKind) -> None:
        """Every object of a kind that there was has been taken."""
        names = [name for kind, name in self._states if kind == gvk.kind]
        self._tracker.expect(gvk.kind, names)

    # --- what is in force ----------------------------------------------------------------------

    @property
    def mutations(self) -> MutationSnapshot:
        """The mutators in force."""
        return self._together("mutators", lambda: self._of_mutators.snapshot, MutationSnapshot())

    @property
    def expansion(self) -> Expansion:
        """The ExpansionTemplates in force."""
        return self._together("expansions", lambda: self._of_expansions.expansion, Expansion())

    def _together(self, what: str, make: Callable[[], TogetherT], nothing: TogetherT) -> TogetherT:
        """What objects come to together; what they came to before, where that cannot be found out.

        What they raise together is no single object's fault, and ends no following of the others.
        """
        made = self._object_faults.attempt("extension", (what,), make)
        if isinstance(made, Exception):
            kept: TogetherT = self._last.get(what, nothing)
            return kept
        self._object_faults.clear("extension", what)
        self._last[what] = made
        return made

    def broken(self, *, of_mutators: bool) -> int:
        """How many mutators, or ExpansionTemplates, cannot be used as they are now."""
        faulty = {key for key, state in self._states.items() if state.error}
        faulty |= self._shared_faults().keys()
        return sum((kind != EXPANSION.kind) is of_mutators for kind, _ in faulty)

    def faults(self) -> dict[str, bool]:
        """What is wrong, each with whether something of it stays in force."""
        shared = self._shared_faults()
        texts = {f"{kind} {name}: {text}": False for (kind, name), text in shared.items()}
        for (kind, name), state in self._states.items():
            if state.error:
                is_applied = self._strategy(kind).is_applied((kind, name))
                texts[f"{kind} {name}: {state.error}"] = is_applied
        return texts

    def _shared_faults(self) -> dict[ExtensionKey, str]:
        """What is wrong with objects because of others."""
        return {
            **self._together("conflicts", self._of_mutators.shared_faults, {}),
            **self._together("circles", self._of_expansions.shared_faults, {}),
        }

    # --- saying so -----------------------------------------------------------------------------

    def published(self) -> bool:
        """What was taken so far answers admissions now; whether that may change a status."""
        if not self._touched:
            return False
        before, self._shared = self._shared, self._shared_faults()
        self._touched |= {
            key for key in {*before, *self._shared} if before.get(key) != self._shared.get(key)
        }
        for key in self._touched:
            state = self._states.get(key)
            self._tell_readiness(key, state)
            subject = subject_key(*key)
            with self._object_faults.object("status", *key):
                self._told.tell(subject, partial(self._status, key, state))
            self._told.enforced(subject, None if state is None else state.in_force)
        self._touched.clear()
        return True

    def _tell_readiness(self, key: ExtensionKey, state: ExtensionState | None) -> None:
        kind, name = key
        if state is None:
            self._tracker.cancel(kind, name)
        elif not state.error or state.in_force is not None:
            self._tracker.observe(kind, name)
        else:
            self._tracker.fail(kind, name, state.error)
            if not self._wait_for_broken:
                self._tracker.cancel(kind, name)

    @property
    def statuses(self) -> Mapping[str, Json]:
        """The status objects that this replica should have, by name, as of the last publication."""
        return self._told.statuses

    def _status(self, key: ExtensionKey, state: ExtensionState | None) -> Json | None:
        if state is None:
            return None
        shared = self._shared.get(key, "")
        standing = self._strategy(key[0]).standing(key, state.document, shared)
        return extension_status(self._pod, state, standing, self._now())
