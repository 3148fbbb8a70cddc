"""Mutators and ExpansionTemplates of the cluster, and their statuses at this replica.

An object that is refused affects no other one: its last good generation stays in force, and its
status reports the error. Mutators with conflicting schemas all report the conflict, and are applied
again once it is over. The templates of a circle of expansions are treated in the same way.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from webhook.api import timestamp
from webhook.api.encoding import is_same_json
from webhook.controllers.object_faults import ObjectFaults, described
from webhook.controllers.revisions.extension_state import (
    ExtensionState,
    extension_status,
    subject_key,
    uid_of,
)
from webhook.controllers.revisions.revisions import InForce, NoRevisions, attempts, rollback_of
from webhook.controllers.status.published import PublishedPolicies
from webhook.metrics.mutation import INGESTION_DURATION, INGESTIONS
from webhook.metrics.providers import PROVIDER_ERRORS
from webhook.policies.provider_calls import NOT_ENABLED, provider_of_mutator
from webhook.policy_kinds.kind import REFUSALS
from webhook.policy_kinds.known import EXTENSIONS, PARTS, extension_named, kind_of_document
from webhook.policy_kinds.parts import policy_set
from webhook.policy_kinds.table import KYVERNO_KINDS, MUTATIONS, PROVIDERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webhook.api.pod_status import Pod
    from webhook.api.shapes import Json
    from webhook.constraint.snapshot import Snapshot
    from webhook.controllers.revisions.revisions import Revisions
    from webhook.metrics.registry import Registry
    from webhook.mutation.fights import Fight
    from webhook.mutation.mutator import MutatorId
    from webhook.policy_kinds.kind import ExtensionKey, Part, PolicyKind, PolicyPart
    from webhook.readiness import Tracker
    from webhook.review.policy_set import Exclusions, PolicySet


TogetherT = TypeVar("TogetherT")

_OFF: Final = "it gets no requests: external data is turned off (--enable-external-data=false)"


class ExtensionController:
    """Applies mutators and ExpansionTemplates, and makes their statuses."""

    def __init__(  # noqa: PLR0913  # the parts it joins
        self,
        tracker: Tracker,
        pod: Pod,
        *,
        wait_for_broken: bool = False,
        object_faults: ObjectFaults | None = None,
        registry: Registry | None = None,
        revisions: Revisions | None = None,
        external_data: bool = True,
        foreign: Mapping[Part, PolicyPart] | None = None,
        now: Callable[[], str] = timestamp.now,
    ) -> None:
        """With ``wait_for_broken`` a broken object holds readiness back.

        Without ``external_data`` no provider is called, and the status of each reports that. A
        mutator that asks one is refused, as in Gatekeeper.
        ``foreign`` are parts for Kyverno's policies, which are reviewed, too. ``revisions`` are the
        kept revisions; ``now`` gives the time for statuses, in RFC 3339.
        """
        self._registry = registry
        self._revisions = revisions or NoRevisions()
        self._disabled = frozenset() if external_data else frozenset({PROVIDERS})
        self._now = now
        self._tracker = tracker
        self._pod = pod
        self._wait_for_broken = wait_for_broken
        self._object_faults = object_faults or ObjectFaults()
        self._parts = {part: part.make() for part in PARTS} | dict(foreign or {})
        self._states: dict[ExtensionKey, ExtensionState] = {}
        self._changed: set[ExtensionKey] = set()
        self._shared: dict[ExtensionKey, str] = {}
        """The conflicts and circles of objects, by key, when statuses were last made."""
        self._published = PublishedPolicies()
        self._last: dict[str, Any] = {}
        """The last value of each part, by its name, that all its objects together gave."""

    # --- objects of the cluster ----------------------------------------------------------------

    def take(self, kind: str, name: str, document: Mapping[str, Any] | None) -> None:
        """Takes the current version of an object; None if it was deleted."""
        key = kind, name
        self._changed.add(key)
        before = self._states.get(key)
        if before is not None and (document is None or before.uid != uid_of(document)):
            # Deleted, or deleted and created again: the state of the old object no longer counts.
            self._part_of(kind).remove(key)
            del self._states[key]
            before = None
        if document is None:
            self._object_faults.clear("extension", kind, name)
            return
        known = ExtensionState(document) if before is None else replace(before, document=document)
        began = time.perf_counter()
        state = self._apply(key, known)
        if before is None or not is_same_json(before.document.get("spec"), document.get("spec")):
            self._count_taken(kind, state, time.perf_counter() - began)

    def _count_taken(self, kind: str, state: ExtensionState, seconds: float) -> None:
        """Counts a new version of an object; a write of its status does not count."""
        part, registry = extension_named(kind).part, self._registry
        if registry is None:
            return
        if part is MUTATIONS:
            status = "error" if state.error else "active"
            registry.count(INGESTIONS, status)
            registry.histogram(INGESTION_DURATION, status).observe(seconds)
        elif part is PROVIDERS and state.error:
            registry.count(PROVIDER_ERRORS)

    def take_fault(
        self, kind: str, name: str, document: Mapping[str, Any], error: Exception
    ) -> None:
        """Reports an unforeseen error of an object in its status; the version in force stays."""
        known = self._states.get((kind, name))
        is_same = known is not None and known.uid == uid_of(document)
        state = replace(known, document=document) if known and is_same else ExtensionState(document)
        self._states[kind, name] = state.with_error(described(error), self._now())
        self._changed.add((kind, name))

    def _part_of(self, kind: str) -> PolicyPart:
        part = extension_named(kind).part
        assert part is not None
        return self._parts[part]

    def _apply(self, key: ExtensionKey, known: ExtensionState) -> ExtensionState:
        """Puts an object in force, or its kept revision if it is refused, and records the error."""
        outcome = self._object_faults.attempt("extension", key, lambda: self._attempted(key, known))
        if isinstance(outcome, Exception):
            outcome = known.with_error(described(outcome), self._now())
        self._states[key] = outcome
        return outcome

    def _attempted(self, key: ExtensionKey, state: ExtensionState) -> ExtensionState:
        fault, is_foreseen = "", True
        for attempt in attempts(state.document, state.in_force, self._revisions):
            if not isinstance(attempt, InForce):
                fault = fault or str(attempt)
                continue
            put = self._object_faults.attempt("extension", key, partial(self._put, attempt, state))
            refusal = put if isinstance(put, str) else described(put)
            is_foreseen = is_foreseen and isinstance(put, str)
            if not refusal:
                state = state.with_in_force(attempt, self._now())
                break
            fault = fault or refusal
        if is_foreseen:
            self._object_faults.clear("extension", *key)
        return state.with_error(fault, self._now())

    def _put(self, attempt: InForce, state: ExtensionState) -> str:
        """Puts a generation in force; returns the refusal, or an empty text."""
        kind = kind_of_document(state.document)
        assert kind is not None
        calls = kind.part is MUTATIONS and provider_of_mutator(attempt.document)
        if calls and PROVIDERS in self._disabled:
            return NOT_ENABLED
        try:
            # The stage is that of the status in the cluster, even for an older generation.
            staged = kind.staged(attempt.document, state.document.get("status"))
            self._part_of(kind.name).put(staged)
        except REFUSALS as refusal:
            return str(refusal)
        return ""

    def revised(self, subjects: Iterable[tuple[str, str]]) -> None:
        """Applies the objects of these changed revisions again, if they need one.

        An object needs one if it is rolled back by annotation, or if nothing of it is in force.
        """
        for group, name in subjects:
            kind, _, of_group = group.partition(".")
            state = self._states.get((kind, name))
            if not of_group or state is None:
                continue
            if rollback_of(state.document) or state.in_force is None:
                self._apply((kind, name), state)
                self._changed.add((kind, name))

    def take_good(self) -> dict[tuple[str, str], InForce | None]:
        """Returns the objects that came into force since the last call.

        None for a withdrawn one.
        """
        return self._published.take_changes()

    def take_fights(self, fights: Mapping[MutatorId, Fight]) -> None:
        """Records which mutators make a change that is undone again and again."""
        known = self._parts[MUTATIONS].keys
        now = {tuple(item): fight.object for item, fight in fights.items() if item in known}
        for key, state in self._states.items():
            fighting = now.get(key, "")
            if state.fighting != fighting:
                self._states[key] = replace(state, fighting=fighting)
                self._changed.add(key)

    def listed(self, kind: str) -> None:
        """Every object of a kind that there was has been taken."""
        self._tracker.expect(kind, [name for of_kind, name in self._states if of_kind == kind])

    # --- objects in force ----------------------------------------------------------------------

    def policy_set(self, snapshot: Snapshot, exclusions: Exclusions) -> PolicySet:
        """Returns all that decides, with the objects in force."""
        return policy_set(snapshot, exclusions, {part: self.value(part) for part in self._parts})

    def value(self, part: Part) -> Any:
        """Returns the value that the objects of a part form together."""
        return self._together(part.name, lambda: self._parts[part].value, lambda: part.make().value)

    def _together(
        self, noun: str, make: Callable[[], TogetherT], nothing: Callable[[], TogetherT]
    ) -> TogetherT:
        """Combines objects; returns the previous value if they cannot be combined.

        An error of the combination is no single object's fault, and must not stop the watch of the
        others.
        """
        value = self._object_faults.attempt("extension", (noun,), make)
        if isinstance(value, Exception):
            kept: TogetherT = self._last[noun] if noun in self._last else nothing()
            return kept
        self._object_faults.clear("extension", noun)
        self._last[noun] = value
        return value

    @property
    def rows(self) -> list[PolicyKind]:
        """The kinds to watch."""
        return [row for row in (*EXTENSIONS, *KYVERNO_KINDS) if row.part in self._parts]

    def error_of(self, key: ExtensionKey) -> str:
        """Returns why the newest generation of an object cannot be used; empty if it can."""
        state = self._states.get(key)
        return "" if state is None else state.error

    def counts(self, part: Part) -> tuple[int, int]:
        """Counts the objects of a part that are usable as they are now, and the others."""
        if part in self._disabled:
            return 0, 0
        faulty = {key for key, state in self._states.items() if state.error}
        faulty |= self._shared_faults().keys()
        if part not in self._parts:
            return 0, 0
        broken = sum(extension_named(kind).part is part for kind, _ in faulty)
        return self._parts[part].count, broken

    def faults(self) -> dict[str, bool]:
        """Returns the faults, each with whether something of the object stays in force."""
        shared = self._shared_faults()
        texts = {f"{kind} {name}: {text}": False for (kind, name), text in shared.items()}
        for (kind, name), state in self._states.items():
            if state.error:
                is_applied = self._part_of(kind).is_applied((kind, name))
                texts[f"{kind} {name}: {state.error}"] = is_applied
        return texts

    def _shared_faults(self) -> dict[ExtensionKey, str]:
        """Returns the faults of objects that other objects cause."""
        faults: dict[ExtensionKey, str] = {}
        for part, part_value in self._parts.items():
            faults |= self._together(f"faults of {part.name}", part_value.shared_faults, dict)
        return faults

    # --- saying so -----------------------------------------------------------------------------

    def published(self) -> bool:
        """Notes that all taken changes are in force; returns whether that may change a status."""
        if not self._changed:
            return False
        before, self._shared = self._shared, self._shared_faults()
        self._changed |= {
            key for key in {*before, *self._shared} if before.get(key) != self._shared.get(key)
        }
        for key in self._changed:
            state = self._states.get(key)
            self._observe_readiness(key, state)
            subject = subject_key(*key)
            with self._object_faults.object("status", *key):
                self._published.publish(subject, partial(self._status, key, state))
            if (
                extension_named(key[0]).status is not None
            ):  # kinds without statuses have no kept revisions
                self._published.enforced(subject, None if state is None else state.in_force)
        self._changed.clear()
        return True

    def _observe_readiness(self, key: ExtensionKey, state: ExtensionState | None) -> None:
        error = "" if state is None or state.in_force is not None else state.error
        self._tracker.take(*key, error, waits=self._wait_for_broken)

    @property
    def statuses(self) -> Mapping[str, Json]:
        """The status objects that this replica should have, by name, as of the last publication."""
        return self._published.statuses

    def _status(self, key: ExtensionKey, state: ExtensionState | None) -> Json | None:
        if state is None:
            return None
        if extension_named(key[0]).part in self._disabled:
            since = state.error_at or state.in_force_at
            state = ExtensionState(state.document, error=_OFF, error_at=since)
        shared = self._shared.get(key, "")
        standing = self._part_of(key[0]).standing(key, shared)
        return extension_status(self._pod, state, standing, self._now())
