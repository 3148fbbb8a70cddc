"""Mutators and ExpansionTemplates of the cluster, and what this replica says of each.

As for constraints, an object costs only itself: one that is refused leaves its last good
generation in force, and says so. Mutators whose schemas conflict all say so, and are applied
again once the conflict is over; so do the templates of a circle of expansions.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from webhook.api import pod_status
from webhook.api.gvk import GroupVersionKind
from webhook.constraint import expansion as expansions
from webhook.constraint.expansion import ExpansionSet, InvalidExpansion, read_expansion_template
from webhook.controllers.spoiled import Spoiled, described
from webhook.metrics.mutation import INGESTION_DURATION, INGESTIONS
from webhook.mutation import mutator as mutators
from webhook.mutation.errors import InvalidMutator
from webhook.mutation.mutator import MutatorId
from webhook.mutation.reading import VERSIONS, with_defaults
from webhook.mutation.registry import Mutators
from webhook.mutation.schema import message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.api.pod_status import Pod
    from webhook.api.shapes import Json
    from webhook.constraint.expansion import Expansion
    from webhook.metrics.registry import Registry
    from webhook.mutation.snapshot import MutationSnapshot
    from webhook.readiness import Tracker

MUTATORS: Final = tuple(
    GroupVersionKind(mutators.GROUP, versions[0], kind) for kind, versions in VERSIONS.items()
)
"""The kinds of mutators, at the version that is stored."""

EXPANSION: Final = GroupVersionKind(expansions.GROUP, "v1alpha1", expansions.KIND)

KINDS: Final = (*MUTATORS, EXPANSION)

CONFLICT: Final = "ErrConflictingSchema"
"""The type of a conflict in a status."""

_Key = tuple[str, str]
"""Kind and name."""


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
    ) -> None:
        """With ``wait_for_broken`` a broken object holds readiness back."""
        self._registry = registry
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
        if document is None:
            self._documents.pop(key, None)
            self._errors.pop(key, None)
            self._spoiled.clear("extension", kind, name)
            if kind == EXPANSION.kind:
                self._expansions.remove(name)
            else:
                self._mutators.remove(MutatorId(kind, name))
            return
        self._documents[key] = document
        began = time.perf_counter()
        try:
            if kind == EXPANSION.kind:
                self._expansions.add(read_expansion_template(document))
            else:
                self._mutators.add(with_defaults(document))
        except (InvalidMutator, InvalidExpansion) as error:
            self._errors[key] = str(error)
        except Exception as error:  # noqa: BLE001  # the object's boundary: it ends in its status
            self._spoiled.take("extension", kind, name, error=error)
            self._errors[key] = described(error)
            return
        else:
            self._errors.pop(key, None)
        finally:
            if kind != EXPANSION.kind and self._registry is not None:
                status = "error" if key in self._errors else "active"
                self._registry.count(INGESTIONS, status)
                seconds = self._registry.histogram(INGESTION_DURATION, status)
                seconds.observe(time.perf_counter() - began)
        self._spoiled.clear("extension", kind, name)

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
        found = {*self._errors, *self._shared_faults()}
        return sum((kind != EXPANSION.kind) is of_mutators for kind, _ in found)

    def faults(self) -> dict[str, bool]:
        """What is wrong, each with whether something of it stays in force."""
        shared = self._shared_faults()
        found = {f"{kind} {name}: {text}": False for (kind, name), text in shared.items()}
        for (kind, name), text in self._errors.items():
            found[f"{kind} {name}: {text}"] = self._is_in_force((kind, name))
        return found

    def _is_in_force(self, key: _Key) -> bool:
        kind, name = key
        if kind == EXPANSION.kind:
            return name in self._expansions.names - self._expansions.cyclic
        return MutatorId(*key) in self._mutators and MutatorId(*key) not in self.mutations.conflicts

    def _shared_faults(self) -> dict[_Key, str]:
        """What is wrong with objects because of others."""
        found: dict[_Key, str] = {
            (item.kind, item.name): message(parties)
            for item, parties in self.mutations.conflicts.items()
        }
        found |= {(EXPANSION.kind, name): expansions.CYCLE for name in self._expansions.cyclic}
        return found

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
        self._touched.clear()
        return True

    def _tell(self, key: _Key) -> None:
        kind, name = key
        if key not in self._documents:
            self._tracker.cancel(kind, name)
        elif key not in self._errors:
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
        if name is not None:
            self._statuses.pop(name, None)
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
        try:
            status = pod_status.pod_status(
                self._pod,
                subject,
                enforced=None if is_template else not errors,
                additions={"errors": errors} if errors else {},
            )
        except pod_status.InvalidName:
            return
        self._names[key] = status["metadata"]["name"]
        self._statuses[status["metadata"]["name"]] = status
