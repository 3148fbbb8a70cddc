"""Mutators and ExpansionTemplates of the cluster, and what this replica says of each.

As for constraints, an object costs only itself: one that is refused leaves its last good
generation in force, and says so. Mutators whose schemas conflict all say so, and are applied
again once the conflict is over; so do the templates of a circle of expansions.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from webhook.api import pod_status, timestamp
from webhook.constraint import expansion as expansions
from webhook.constraint.expansion import ExpansionSet, InvalidExpansion, read_expansion_template
from webhook.controllers.extension_kinds import EXPANSION, KINDS
from webhook.controllers.revisions import (
    InForce,
    NoRevisions,
    attempts,
    origin_fields,
    rollback_of,
)
from webhook.controllers.spoiled import Spoiled, described
from webhook.controllers.statuses import keep_since
from webhook.metrics.mutation import INGESTION_DURATION, INGESTIONS
from webhook.mutation import mutator as mutators
from webhook.mutation.errors import InvalidMutator
from webhook.mutation.mutator import MutatorId
from webhook.mutation.reading import with_defaults
from webhook.mutation.registry import Mutators
from webhook.mutation.schema import message
from webhook.mutation.staging import staged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webhook.api.gvk import GroupVersionKind
    from webhook.api.pod_status import Pod
    from webhook.api.shapes import Json
    from webhook.constraint.expansion import Expansion
    from webhook.controllers.revisions import Revisions
    from webhook.metrics.registry import Registry
    from webhook.mutation.fights import Fight
    from webhook.mutation.snapshot import MutationSnapshot
    from webhook.readiness import Tracker

CONFLICT: Final = "ErrConflictingSchema"
"""The type of a conflict in a status."""

_Key = tuple[str, str]
"""Kind and name."""


def subject_key(kind: str, name: str) -> tuple[str, str]:
    """What the kept revisions call an object: its kind with its group, that of a constraint has none."""
    group = expansions.GROUP if kind == EXPANSION.kind else mutators.GROUP
    return f"{kind}.{group}", name


def _uid(document: Mapping[str, Any]) -> str:
    uid: str = document["metadata"].get("uid", "")
    return uid


class ExtensionController:
    """Applies mutators and ExpansionTemplates, and knows the statuses that follow."""

    def __init__(
        self,
        tracker: Tracker,
        pod: Pod,
        *,
        wait_for_broken: bool = False,
        spoiled: Spoiled | None = None,
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
        self._in_force: dict[_Key, InForce] = {}
        self._good: dict[tuple[str, str], InForce | None] = {}
        self._fights: dict[_Key, str] = {}
        self._tracker = tracker
        self._pod = pod
        self._wait_for_broken = wait_for_broken
        self._spoiled = spoiled or Spoiled()
        self._mutators = Mutators()
        self._expansions = ExpansionSet()
        self._documents: dict[_Key, Mapping[str, Any]] = {}
        self._errors: dict[_Key, str] = {}
        self._touched: set[_Key] = set()
        self._told: dict[_Key, str] = {}
        """What the conflicts and circles were when statuses were made."""
        self._statuses: dict[str, Json] = {}
        self._names: dict[_Key, str] = {}

    def begin(self) -> None:
        """Say what is awaited."""
        for gvk in KINDS:
            self._tracker.track(gvk.kind)

    def take(self, kind: str, name: str, document: Mapping[str, Any] | None) -> None:
        """Take an object as it is now; None when it is gone."""
        key = kind, name
        self._touched.add(key)
        before = self._documents.get(key)
        if document is None or (before is not None and _uid(before) != _uid(document)):
            self._remove(key)
        if document is None:
            self._spoiled.clear("extension", kind, name)
            return
        self._documents[key] = document
        began = time.perf_counter()
        self._apply(key, document)
        if kind != EXPANSION.kind and self._registry is not None:
            status = "error" if key in self._errors else "active"
            self._registry.count(INGESTIONS, status)
            seconds = self._registry.histogram(INGESTION_DURATION, status)
            seconds.observe(time.perf_counter() - began)

    def _remove(self, key: _Key) -> None:
        """Take an object out of force."""
        kind, name = key
        for held in (self._documents, self._errors, self._in_force):
            held.pop(key, None)
        if kind == EXPANSION.kind:
            self._expansions.remove(name)
        else:
            self._mutators.remove(MutatorId(kind, name))

    def _apply(self, key: _Key, document: Mapping[str, Any]) -> None:
        """Put an object in force, or else what was or is kept of it, and note what is wrong."""
        fault, unforeseen = "", False
        for attempt in attempts(document, self._in_force.get(key), self._revisions):
            if not isinstance(attempt, InForce):
                fault = fault or str(attempt)
                continue
            try:
                if key[0] == EXPANSION.kind:
                    self._expansions.add(read_expansion_template(attempt.document))
                else:
                    current = staged(attempt.document, document.get("status"))
                    self._mutators.add(with_defaults(current))
            except (InvalidMutator, InvalidExpansion) as error:
                fault = fault or str(error)
            except Exception as error:  # noqa: BLE001  # the object's boundary: it ends in its status
                self._spoiled.take("extension", *key, error=error)
                fault, unforeseen = fault or described(error), True
            else:
                self._in_force[key] = attempt
                break
        if not unforeseen:
            self._spoiled.clear("extension", *key)
        if fault:
            self._errors[key] = fault
        else:
            self._errors.pop(key, None)

    def revised(self, subjects: Iterable[tuple[str, str]]) -> None:
        """Revisions of these objects came or went: see whether one was waited for."""
        for group, name in subjects:
            kind, _, of_group = group.partition(".")
            document = self._documents.get((kind, name))
            if not of_group or document is None:
                continue
            if rollback_of(document) or (kind, name) not in self._in_force:
                self._apply((kind, name), document)
                self._touched.add((kind, name))

    def take_good(self) -> dict[tuple[str, str], InForce | None]:
        """What is in force of each object that changed since the last call; None for none."""
        taken, self._good = self._good, {}
        return taken

    def take_fights(self, fights: Mapping[MutatorId, Fight]) -> None:
        """Note which mutators fight with somebody now."""
        now = {
            (item.kind, item.name): fight.object
            for item, fight in fights.items()
            if item in self._mutators
        }
        before, self._fights = self._fights, now
        self._touched |= {key for key in {*before, *now} if before.get(key) != now.get(key)}

    def listed(self, gvk: GroupVersionKind) -> None:
        """Every object of a kind that there was has been taken."""
        names = [name for kind, name in self._documents if kind == gvk.kind]
        self._tracker.expect(gvk.kind, names)

    @property
    def mutations(self) -> MutationSnapshot:
        """The mutators in force."""
        return self._mutators.snapshot

    @property
    def expansion(self) -> Expansion:
        """The ExpansionTemplates in force."""
        return self._expansions.expansion

    def broken(self, *, of_mutators: bool) -> int:
        """How many mutators, or ExpansionTemplates, cannot be used as they are now."""
        faulty = {*self._errors, *self._shared_faults()}
        return sum((kind != EXPANSION.kind) is of_mutators for kind, _ in faulty)

    def faults(self) -> dict[str, bool]:
        """What is wrong, each with whether something of it stays in force."""
        shared = self._shared_faults()
        texts = {f"{kind} {name}: {text}": False for (kind, name), text in shared.items()}
        for (kind, name), text in self._errors.items():
            texts[f"{kind} {name}: {text}"] = self._is_in_force((kind, name))
        return texts

    def _is_in_force(self, key: _Key) -> bool:
        kind, name = key
        if kind == EXPANSION.kind:
            return name in self._expansions.names - self._expansions.cyclic
        return MutatorId(*key) in self._mutators and MutatorId(*key) not in self.mutations.conflicts

    def _shared_faults(self) -> dict[_Key, str]:
        """What is wrong with objects because of others."""
        faults: dict[_Key, str] = {
            (item.kind, item.name): message(parties)
            for faults in (self.mutations.conflicts, self.mutations.would_conflict)
            for item, parties in faults.items()
        }
        faults |= {(EXPANSION.kind, name): expansions.CYCLE for name in self._expansions.cyclic}
        return faults

    # --- saying so -----------------------------------------------------------------------------

    def published(self) -> bool:
        """What was taken so far answers admissions now; whether that may change a status."""
        if not self._touched:
            return False
        shared = self._shared_faults()
        before, self._told = self._told, shared
        self._touched |= {key for key in {*before, *shared} if before.get(key) != shared.get(key)}
        for key in self._touched:
            self._tell(key)
            with self._spoiled.object("status", *key):
                self._write(key, shared.get(key, ""))
            self._good[subject_key(*key)] = self._in_force.get(key)
        self._touched.clear()
        return True

    def _tell(self, key: _Key) -> None:
        kind, name = key
        if key not in self._documents:
            self._tracker.cancel(kind, name)
        elif key not in self._errors or key in self._in_force:
            self._tracker.observe(kind, name)
        else:
            self._tracker.fail(kind, name, self._errors[key])
            if not self._wait_for_broken:
                self._tracker.cancel(kind, name)

    @property
    def statuses(self) -> Mapping[str, Json]:
        """The status objects that this replica should have, by name, as of the last publication."""
        return self._statuses

    def _write(self, key: _Key, conflict: str) -> None:
        """Bring the status object of one mutator or template up to date."""
        name = self._names.pop(key, None)
        before = None if name is None else self._statuses.pop(name, None)
        document = self._documents.get(key)
        if document is None:
            return
        is_template = key[0] == EXPANSION.kind
        errors: list[Json] = []
        if key in self._errors:
            errors.append({"message": self._errors[key]})
        if conflict:
            errors.append({"message": conflict} | ({} if is_template else {"type": CONFLICT}))
        subject = (
            pod_status.expansion_subject(document)
            if is_template
            else pod_status.mutator_subject(document)
        )
        in_force = self._in_force.get(key)
        is_preview = not is_template and MutatorId(*key) in self._mutators.previews
        active = 0 if in_force is None or is_preview or conflict else in_force.generation
        additions: Json = {"activeGeneration": active, "since": self._now()}
        additions |= origin_fields(in_force)
        if is_preview:
            additions["preview"] = True
        if key in self._fights:
            additions["fighting"] = self._fights[key]
        if errors:
            additions["errors"] = errors
        try:
            status = pod_status.pod_status(
                self._pod,
                subject,
                enforced=None if is_template else not errors and not is_preview,
                additions=additions,
            )
        except pod_status.InvalidName:
            return
        keep_since(status, before)
        self._names[key] = status["metadata"]["name"]
        self._statuses[status["metadata"]["name"]] = status
