"""Keeps policies besides templates and constraints in step with files.

A refused policy keeps its last good revision, as templates and constraints do.
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
from webhook.policies.provider_calls import NOT_ENABLED, provider_of_mutator
from webhook.policy_kinds.kind import REFUSALS, ExtensionKey, Part, PolicyKind, PolicyPart
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
from webhook.review.policy_set import Exclusions, PolicySet

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from webhook.constraint.expansion import Expansion
    from webhook.constraint.snapshot import Snapshot
    from webhook.exceptions.exception import PolicyException
    from webhook.exceptions.stage import Excusing
    from webhook.mutation.mutator import MutatorId
    from webhook.mutation.snapshot import MutationSnapshot

IN_FORCE: Final = ""
"""The file name of objects of a cluster: empty."""


class Extensions:
    """Collects the policies besides templates and constraints. Used by one task."""

    def __init__(
        self, parts: Mapping[Part, PolicyPart] | None = None, *, external_data: bool = True
    ) -> None:
        """``parts`` replace the default parts.

        Without ``external_data`` a mutator that asks a provider is refused, as in Gatekeeper.
        """
        self._external_data = external_data
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
        """Returns the exceptions' stage as of the last load; None without exceptions."""
        excusing: Excusing | None = self._parts[EXCEPTIONS].value
        return excusing

    @property
    def exceptions(self) -> tuple[PolicyException, ...]:
        """Returns the usable exceptions as of the last load, regardless of their period."""
        return () if self.excusing is None else self.excusing.exceptions

    def policy_set(self, snapshot: Snapshot, exclusions: Exclusions | None = None) -> PolicySet:
        """Returns all deciding policies: a snapshot, and the policies loaded here."""
        values = {part: part_.value for part, part_ in self._parts.items()}
        return policy_set(snapshot, exclusions or Exclusions(), values)

    def warnings_of(self, mutator: MutatorId) -> tuple[str, ...]:
        """Returns the probable mistakes of a mutator that can be applied."""
        return self._parts[MUTATIONS].standing(mutator, "").warnings

    def load(self, manifests: Iterable[Manifest]) -> list[PolicyFault]:
        """Loads exactly these manifests' extensions; returns their faults."""
        of_parts: dict[Any, dict[ExtensionKey, Manifest]] = {part: {} for part in PARTS_OF_FILES}
        faults = []
        for item in manifests:
            row = kind_of(item.gvk)
            if row is ANSWERS and not is_answer(item.document):
                continue
            if row is None or row.role == "configuration":
                stays = row is not None
                faults += [_fault(item, text, stays=stays) for text in effectless(item.document)]
            elif row.part is MUTATIONS and not self._may_ask(item.document):
                faults.append(_fault(item, NOT_ENABLED))
            elif row.part is not None:
                of_parts[row.part][key_of_extension(item.document)] = item
        for part, of_part in of_parts.items():
            faults += self._load_part(self._parts[part], of_part)
        return faults

    def _may_ask(self, mutator: Mapping[str, Any]) -> bool:
        return self._external_data or not provider_of_mutator(mutator)

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
    """Puts an object in force; returns its faults."""
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
    if (schema := row.schema) is not None:
        if (version := manifest.gvk.version) not in row.versions:
            known = ", ".join(row.versions)
            yield _fault(manifest, f"unsupported version {version}, supported: {known}", stays=True)
        faults = kind_schemas.spec_faults(manifest.document, schema)
        for text in (*faults, *kind_schemas.unknown_fields(manifest.document, schema)):
            yield _fault(manifest, text, stays=True)
    try:
        row.read(manifest.document)
    except REFUSALS as error:
        # Valid in a cluster, but probably not intended.
        part.remove(key)
        yield _fault(manifest, str(error))


def foreign_warnings(
    policies: PolicySet, manifests: Iterable[Manifest], kinds: Container[str] | None = None
) -> Iterator[str]:
    """Warns of API server and Kyverno policies with no effect, or a probably unintended effect.

    Each text begins with file and line of the policy, if it is among the manifests. With
    ``kinds``, only of policies of these kinds.
    """
    places = {(item.gvk.kind, title_of(item.document)): f"{item.place}: " for item in manifests}
    for kind, name, text in policies.foreign.warnings(policies.snapshot.inventory):
        if kinds is None or kind in kinds:
            yield f"{places.get((kind, name), '')}{kind}/{name}: {text}"


def inventory_of(manifests: Iterable[Manifest]) -> Mapping[str, Any]:
    """Returns the data of reviews: all named objects that are no policies.

    Raises :class:`~webhook.constraint.errors.ConstraintFrameworkError`, with file and line, for an
    object that cannot be data.
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
    """Returns the manifests of files, and the policies in force that they do not replace."""
    known = {item.identity for item in manifests}
    others = (Manifest(document, IN_FORCE, 0) for document in in_force)
    return [*manifests, *(item for item in others if item.identity not in known)]


def _fault(manifest: Manifest, text: str, *, stays: bool = False) -> PolicyFault:
    line = manifest.line
    if is_foreign_policy(manifest.gvk):  # whose texts begin with the field
        line = FilesFieldLines().line(manifest.file, line, manifest.document, text, None)
    # Admission's messages have no place before them, so that the text begins with kind and name.
    text = text.removeprefix(f"{manifest.gvk.kind} {name_of(manifest.document)}: ")
    return PolicyFault(manifest.file, line, manifest.title, text, stays=stays)
