"""Mutators and ExpansionTemplates of directories, kept in step with the files.

One that is refused keeps its last good revision, as templates and constraints do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.config import CONFIG, CONFIG_NAME, PROCESSES, SYNC_SET, unknown_processes
from webhook.api.gvk import gvk_of, name_of
from webhook.constraint import expansion as expansions
from webhook.constraint import kind_schemas
from webhook.constraint.expansion import ExpansionSet, InvalidExpansion, read_expansion_template
from webhook.mutation import mutator
from webhook.mutation.errors import InvalidMutator
from webhook.mutation.reading import empty_location_fault, id_of, with_defaults
from webhook.mutation.registry import Mutators
from webhook.mutation.schema import message
from webhook.policies.manifests import Manifest, PolicyFault

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from webhook.constraint.expansion import Expansion
    from webhook.mutation.mutator import MutatorId
    from webhook.mutation.snapshot import MutationSnapshot


_SCHEMAS: Final = {
    CONFIG.group_kind: kind_schemas.CONFIG,
    SYNC_SET.group_kind: kind_schemas.SYNC_SET,
}
GROUPS: Final = frozenset(group for group, _ in _SCHEMAS)


def configuration_faults(document: Mapping[str, Any]) -> list[str]:
    """What is wrong with an object of these groups; nothing is said of others."""
    gvk = gvk_of(document)
    if gvk.group not in GROUPS:
        return []
    schema = _SCHEMAS.get(gvk.group_kind)
    if schema is None:
        return [f"{gvk} is no kind of {gvk.group}"]
    faults = kind_schemas.spec_faults(document, schema)
    if gvk.group_kind == CONFIG.group_kind:
        if name_of(document) != CONFIG_NAME:
            faults.append(f"config resource must have name '{CONFIG_NAME}'")
        faults += [
            f'spec.match: unknown process "{name}": there are {", ".join(PROCESSES)}; '
            "nothing is excluded from it"
            for name in unknown_processes(document)
        ]
    return faults


IN_FORCE: Final = ""
"""The file of what comes from a cluster: none."""


def is_extension(document: Mapping[str, Any]) -> bool:
    """Whether this is a mutator or an ExpansionTemplate, or is meant to be one."""
    return gvk_of(document).group in (mutator.GROUP, expansions.GROUP)


class Extensions:
    """What manifests say beside templates and constraints. Used by one task."""

    def __init__(self) -> None:
        self._mutators = Mutators()
        self._expansions = ExpansionSet()

    @property
    def mutations(self) -> MutationSnapshot:
        """The mutators as of the last load."""
        return self._mutators.snapshot

    @property
    def expansion(self) -> Expansion:
        """The ExpansionTemplates as of the last load."""
        return self._expansions.expansion

    def warnings_of(self, mutator: MutatorId) -> tuple[str, ...]:
        """What is likely to be wrong with a mutator, though it can be applied."""
        return self._mutators.warnings_of(mutator)

    def load(self, manifests: Iterable[Manifest]) -> list[PolicyFault]:
        """Take exactly these manifests' mutators and ExpansionTemplates; what is wrong with them."""
        all_manifests = list(manifests)
        # A misspelt kind is one that an API server does not know: nobody would miss what it says.
        mutators = {
            id_of(item.document): item for item in all_manifests if item.gvk.group == mutator.GROUP
        }
        templates = {
            item.identity[3]: item
            for item in all_manifests
            if item.gvk.group_kind == (expansions.GROUP, expansions.KIND)
        }
        for gone in self._mutators.ids - mutators.keys():
            self._mutators.remove(gone)
        for name in self._expansions.names - templates.keys():
            self._expansions.remove(name)
        faults = [
            _fault(item, fault, stays=True)
            for item in all_manifests
            for fault in configuration_faults(item.document)
        ]
        faults += [
            _fault(item, f"{item.gvk} is no kind of expansion")
            for item in all_manifests
            if item.gvk.group == expansions.GROUP and item.gvk.kind != expansions.KIND
        ]
        for key, manifest in mutators.items():
            try:
                added = self._mutators.add(with_defaults(manifest.document))
            except InvalidMutator as error:
                faults.append(_fault(manifest, str(error), stays=key in self._mutators))
            except Exception as bug:  # noqa: BLE001  # of ours: one object's, and all others load
                faults.append(_fault(manifest, _of_ours(bug), stays=key in self._mutators))
            else:
                faults += [
                    _fault(manifest, fault, stays=True)
                    for fault in kind_schemas.spec_faults(manifest.document, kind_schemas.MUTATOR)
                ]
                if fault := empty_location_fault(added):
                    self._mutators.remove(key)
                    faults.append(_fault(manifest, fault))
        faults += [
            _fault(mutators[key], message(parties))
            for key, parties in self._mutators.snapshot.conflicts.items()
        ]
        for name, manifest in templates.items():
            try:
                self._expansions.add(read_expansion_template(manifest.document))
            except InvalidExpansion as error:
                stays = name in self._expansions.names
                faults.append(_fault(manifest, str(error), stays=stays))
            except Exception as bug:  # noqa: BLE001  # likewise
                stays = name in self._expansions.names
                faults.append(_fault(manifest, _of_ours(bug), stays=stays))
        faults += [
            _fault(templates[name], why) for name, why in sorted(self._expansions.faults.items())
        ]
        return faults


def on_top(own: Sequence[Manifest], in_force: Iterable[dict[str, Any]]) -> list[Manifest]:
    """Manifests of files, and what is in force beside them and is not among them."""
    known = {item.identity for item in own}
    others = (Manifest(document, IN_FORCE, 0) for document in in_force)
    return [*own, *(item for item in others if item.identity not in known)]


def _of_ours(bug: Exception) -> str:
    return f"it cannot be used for a fault of Waddle: {type(bug).__name__}"


def _fault(manifest: Manifest, text: str, *, stays: bool = False) -> PolicyFault:
    return PolicyFault(manifest.file, manifest.line, manifest.title, text, stays=stays)
