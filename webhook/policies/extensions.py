"""Policies beside templates and constraints, kept in step with files.

One that is refused keeps its last good revision, as templates and constraints do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.admission_policies.kinds import is_answer
from webhook.api.gvk import name_of
from webhook.constraint import kind_schemas
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.constraint.inventory import Inventory
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.policies.field_lines import FilesFieldLines
from webhook.policies.manifests import Manifest, PolicyFault
from webhook.policy_kinds.kind import REFUSALS
from webhook.policy_kinds.known import (
    PARTS_OF_FILES,
    effectless,
    is_foreign_policy,
    key_of_extension,
    kind_of,
)
from webhook.policy_kinds.parts import policy_set
from webhook.policy_kinds.table import ANSWERS, EXCEPTIONS, EXPANSIONS, MUTATIONS
from webhook.review.admission_requests import title_of
from webhook.review.policy_set import Exclusions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from webhook.constraint.expansion import Expansion
    from webhook.constraint.snapshot import Snapshot
    from webhook.exceptions.exception import PolicyException
    from webhook.exceptions.stage import Excusing
    from webhook.mutation.mutator import MutatorId
    from webhook.mutation.snapshot import MutationSnapshot
    from webhook.policy_kinds.kind import ExtensionKey, Part, PolicyKind, PolicyPart
    from webhook.review.policy_set import PolicySet


IN_FORCE: Final = ""
"""The file of what comes from a cluster: none."""


class Extensions:
    """Collects the policies of manifests beside templates and constraints. Used by one task."""

    def __init__(self, parts: Mapping[Part, PolicyPart] | None = None) -> None:
        """``parts`` are parts in place of those that would be made here."""
        self._parts = {part: part.make() for part in PARTS_OF_FILES} | dict(parts or {})

    @property
    def mutations(self) -> MutationSnapshot:
        """The mutators as of the last load."""
        snapshot: MutationSnapshot = self._parts[MUTATIONS].value
        return snapshot

    @property
    def expansion(self) -> Expansion:
        """The ExpansionTemplates as of the last load."""
        expansion: Expansion = self._parts[EXPANSIONS].value
        return expansion

    @property
    def excusing(self) -> Excusing | None:
        """The stage that excuses as of the last load; None without exceptions."""
        excusing: Excusing | None = self._parts[EXCEPTIONS].value
        return excusing

    @property
    def exceptions(self) -> tuple[PolicyException, ...]:
        """The exceptions that can be used as of the last load, whenever they hold."""
        return () if self.excusing is None else self.excusing.exceptions

    def policy_set(self, snapshot: Snapshot, exclusions: Exclusions | None = None) -> PolicySet:
        """All that decides: a snapshot, and what was loaded here."""
        values = {part: part_.value for part, part_ in self._parts.items()}
        return policy_set(snapshot, exclusions or Exclusions(), values)

    def warnings_of(self, mutator: MutatorId) -> tuple[str, ...]:
        """Return the probable mistakes of a mutator that can be applied."""
        return self._parts[MUTATIONS].standing(mutator, "").warnings

    def load(self, manifests: Iterable[Manifest]) -> list[PolicyFault]:
        """Take exactly these manifests' extensions; what is wrong with them."""
        of_parts: dict[Any, dict[ExtensionKey, Manifest]] = {part: {} for part in PARTS_OF_FILES}
        faults = []
        for item in manifests:
            row = kind_of(item.gvk)
            if row is ANSWERS and not is_answer(item.document):
                continue
            if row is None or row.role == "configuration":
                stays = row is not None
                faults += [_fault(item, text, stays=stays) for text in effectless(item.document)]
            elif row.part is not None:
                of_parts[row.part][key_of_extension(item.document)] = item
        for part, of_part in of_parts.items():
            faults += self._load_part(self._parts[part], of_part)
        return faults

    def _load_part(
        self, part: PolicyPart, manifests: dict[ExtensionKey, Manifest]
    ) -> Iterator[PolicyFault]:
        for gone in set(part.keys) - manifests.keys():
            part.remove(gone)
        for key, manifest in manifests.items():
            row = kind_of(manifest.gvk)
            assert row is not None
            yield from _put(part, row, key, manifest)
        for key, why in part.shared_faults().items():
            if not part.standing(key, why).is_preview:
                yield _fault(manifests[key], why)


def _put(
    part: PolicyPart, row: PolicyKind, key: ExtensionKey, manifest: Manifest
) -> Iterator[PolicyFault]:
    """Put an object in force, and say what is wrong with it."""
    assert row.read is not None
    try:
        part.put(manifest.document)
    except REFUSALS as error:
        yield _fault(manifest, str(error), stays=key in part.keys)
        return
    except Exception as bug:  # noqa: BLE001  # of ours: one object's, and all others load
        why = f"it cannot be used for a fault of Waddle: {type(bug).__name__}"
        yield _fault(manifest, why, stays=key in part.keys)
        return
    if row.schema is not None:
        for text in kind_schemas.spec_faults(manifest.document, row.schema):
            yield _fault(manifest, text, stays=True)
    try:
        row.read(manifest.document)
    except REFUSALS as error:
        # What a cluster takes as it is, and nobody means.
        part.remove(key)
        yield _fault(manifest, str(error))


def foreign_warnings(policies: PolicySet, manifests: Iterable[Manifest]) -> Iterator[str]:
    """Warn of policies of others that have no effect, or probably not the one that is meant.

    Each text begins with file and line of what it is about, where that is among the manifests.
    """
    places = {
        (item.gvk.kind, title_of(item.document)): f"{item.file}:{item.line}: " for item in manifests
    }
    for kind, name, text in policies.foreign.warnings(policies.snapshot.inventory):
        yield f"{places.get((kind, name), '')}{kind}/{name}: {text}"


def inventory_of(manifests: Iterable[Manifest]) -> Mapping[str, Any]:
    """The data of reviews: all objects that have a name, and are no policies.

    Raises :class:`~webhook.constraint.errors.ConstraintFrameworkError`, with file and line, for one
    that cannot be data.
    """
    inventory, target = Inventory(), AdmissionTarget()
    for item in manifests:
        if is_foreign_policy(item.gvk) or not name_of(item.document):
            continue
        try:
            path = target.process_data(item.document)
        except ConstraintFrameworkError as error:
            raise ConstraintFrameworkError(str(_fault(item, str(error)))) from None
        if path is not None:
            inventory.put(path, item.document)
    return inventory.publish()


def on_top(manifests: Sequence[Manifest], in_force: Iterable[dict[str, Any]]) -> list[Manifest]:
    """Manifests of files, and what is in force beside them and is not among them."""
    known = {item.identity for item in manifests}
    others = (Manifest(document, IN_FORCE, 0) for document in in_force)
    return [*manifests, *(item for item in others if item.identity not in known)]


def _fault(manifest: Manifest, text: str, *, stays: bool = False) -> PolicyFault:
    line = manifest.line
    if is_foreign_policy(manifest.gvk):  # whose texts begin with the field
        line = FilesFieldLines().line(manifest.file, line, manifest.document, text, None)
    # Admission says nothing before it: then kind and name are in the text.
    text = text.removeprefix(f"{manifest.gvk.kind} {name_of(manifest.document)}: ")
    return PolicyFault(manifest.file, line, manifest.title, text, stays=stays)
