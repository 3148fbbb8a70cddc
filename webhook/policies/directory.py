"""Keeps a client in step with policy directories.

Each load reads the files again and updates the client. A fault affects only its own object: an
unreadable file keeps the objects of its last good reading, and a refused template or constraint
keeps its last good revision in force. Every fault is reported.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook.api.encoding import encode
from webhook.api.targets import declares_target
from webhook.constraint import constraint, enforcement, template
from webhook.constraint.errors import ConstraintFrameworkError, MemberFault, MissingEngine
from webhook.constraint.targets.declared import InvalidTarget, read_target
from webhook.constraint.targets.known import TARGETS
from webhook.policies.definitions import last_definitions, repeated
from webhook.policies.lists import expand_lists
from webhook.policies.manifests import (
    Manifest,
    PolicyFault,
    UnreadableFile,
    find_files,
    is_object,
    read_found,
)
from webhook.policies.supporting_files import IGNORED_GROUPS, is_input, suite_inputs
from webhook.policy_kinds.known import BESIDE_POLICIES
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from webhook.constraint.client import Client

CONFIGURATION_GROUPS: Final = BESIDE_POLICIES | {
    f"{name}.gatekeeper.sh" for name in ("connection", "externaldata", "status")
}
"""Groups of configuration objects, of Waddle or Gatekeeper, that are no data."""


Announce: TypeAlias = "Callable[[Iterable[Mapping[str, Any]]], None]"


@dataclass(frozen=True, slots=True)
class PolicyReport:
    """The result of a load: the number of policies in force, and the faults of the files.

    ``configuration`` are Gatekeeper's own objects besides templates and constraints; the caller
    uses or refuses them. ``skipped`` names files with a document that is no Kubernetes object.
    """

    templates: int
    constraints: int
    data: int
    faults: tuple[PolicyFault, ...]
    changed: bool
    configuration: tuple[Manifest, ...] = ()
    skipped: tuple[str, ...] = ()
    read: tuple[Manifest, ...] = ()
    """Every object that was read and is not ignored, each identity once."""
    repeated: tuple[str, ...] = ()
    """Warnings about objects with several definitions."""

    @property
    def may_lack_constraints(self) -> bool:
        """Returns whether a fault may concern constraints, so that too few are in force."""
        return any(fault.of_constraints for fault in self.faults)


class PolicyDirectory:
    """The policies of some directories or files. Used by one task."""

    def __init__(
        self,
        client: Client,
        paths: Sequence[Path],
        given: Sequence[Manifest] = (),
        *,
        announce: Announce | None = None,
    ) -> None:
        """``given`` are objects outside the files, each with a name in place of a file.

        ``announce`` takes the templates that a load is about to add, in their order.
        """
        self._announce = announce
        self._client = client
        self._paths = tuple(paths)
        self._given = tuple(given)
        self._files: dict[str, list[Manifest]] = {}
        self._skipped: tuple[str, ...] = ()
        # The objects added to the client, by identity.
        self._known: dict[tuple[str, ...], Manifest] = {}

    def load(self) -> PolicyReport:
        """Reads the files and updates the client to them."""
        faults: list[PolicyFault] = []
        self._read(faults)
        listed = [
            manifest
            for manifests in self._files.values()
            for manifest in manifests
            if _kind(manifest) != "ignored"
        ]
        by_identity = last_definitions(listed)
        before = self._client.snapshot
        self._remove_missing(by_identity)
        configuration = []
        steps: dict[str, list[Manifest]] = {
            "target": [],
            "template": [],
            "constraint": [],
            "data": [],
        }
        for manifest in by_identity.values():
            if (kind := _kind(manifest)) in steps:
                steps[kind].append(manifest)
            elif kind == "configuration":
                configuration.append(manifest)
        changes: dict[str, Callable[[Any], bool]] = {
            "target": self._add_target,
            "template": self._client.add_template,
            "constraint": self._client.add_constraint,
            "data": self._add_data,
        }
        if self._announce is not None:
            self._announce(manifest.document for manifest in steps["template"])
        steps["constraint"].sort(key=lambda item: constraint.rank(item.gvk))
        # A constraint needs its template, and a template its target: this order by kind works.
        for kind, manifests in steps.items():
            for manifest in manifests:
                self._apply(manifest, changes[kind], faults)
        snapshot = self._client.snapshot
        return PolicyReport(
            templates=len(snapshot.entries),
            constraints=len(snapshot.constraints),
            data=sum(_kind(manifest) == "data" for manifest in self._known.values()),
            faults=tuple(faults),
            changed=snapshot is not before,
            configuration=tuple(configuration),
            skipped=self._skipped,
            read=tuple(by_identity.values()),
            repeated=tuple(repeated(listed, reviewed=False)),
        )

    def _read(self, faults: list[PolicyFault]) -> None:
        by_file: dict[str, list[Manifest]] = {}
        for given in self._given:
            try:
                by_file.setdefault(given.file, []).extend(expand_lists([given]))
            except UnreadableFile as error:
                faults.append(error.fault)
        for path in self._paths:
            try:
                files = find_files(path, left_out=[])
            except OSError as error:
                # The content of the path is unknown, so its former objects stay.
                kept = {
                    file: manifests
                    for file, manifests in self._files.items()
                    if file == str(path) or file.startswith(f"{path}/")
                }
                by_file.update(kept)
                message = error.strerror or str(error)
                faults.append(PolicyFault(str(path), 0, "", message, True, any(kept.values())))
                continue
            for file in files:
                try:
                    by_file[str(file)] = list(expand_lists(read_found(file, path)))
                except UnreadableFile as error:
                    by_file[str(file)] = self._files.get(str(file), [])
                    faults.append(replace(error.fault, stays=bool(by_file[str(file)])))
        inputs = suite_inputs(
            (file, manifest.document) for file, listed in by_file.items() for manifest in listed
        )
        self._files = {
            file: [manifest for manifest in listed if is_object(manifest.document)]
            for file, listed in by_file.items()
            if not is_input(file, inputs)
        }
        self._skipped = tuple(
            file for file, listed in self._files.items() if len(listed) < len(by_file[file])
        )

    def _remove_missing(self, identities: Iterable[tuple[str, ...]]) -> None:
        for identity in self._known.keys() - set(identities):
            manifest = self._known.pop(identity)
            match _kind(manifest):
                case "template":
                    self._client.remove_template(identity[3])
                case "constraint":
                    self._client.remove_constraint(identity[1], identity[3])
                case "target":
                    self._client.remove_target(identity[3])
                case _:
                    self._client.remove_data(manifest.document)

    def _add_target(self, document: dict[str, Any]) -> bool:
        target = read_target(document)
        if any(target.name == known.name for known in TARGETS):
            raise InvalidTarget(f"invalid Target: {target.name} comes with Waddle")
        self._client.set_target(target)
        return True

    def _add_data(self, document: dict[str, Any]) -> bool:
        return self._client.add_data(document)

    def _apply(
        self,
        manifest: Manifest,
        change: Callable[[Any], bool],
        faults: list[PolicyFault],
    ) -> None:
        known, kind = self._known.get(manifest.identity), _kind(manifest)
        if known is not None and kind in ("data", "target"):
            if encode(known.document) == encode(manifest.document):
                return
            if kind == "data":
                self._client.remove_data(known.document)
        try:
            change(manifest.document)
        except MissingEngine as error:
            # The template is recorded: its constraints warn until it is removed.
            self._known[manifest.identity] = manifest
            faults.append(replace(_fault(manifest, str(error)), switched_off=True))
        except ConstraintFrameworkError as error:
            stays = known is not None and kind != "data"
            if isinstance(
                error, MemberFault
            ):  # policies that depend on a broken member are not in force
                view = self._client.fault_of(manifest.gvk.kind, manifest.identity[3])
                stays = view is not None and view.answer == "lastGood"
            faults.append(replace(_fault(manifest, str(error)), stays=stays))
        except Exception as bug:  # noqa: BLE001  # of ours: one object's, and all others load
            why = f"it cannot be used for a fault of Waddle: {type(bug).__name__}"
            faults.append(replace(_fault(manifest, why), stays=known is not None))
        else:
            self._known[manifest.identity] = manifest
            if kind == "constraint" and (why := enforcement.fault_of(manifest.document)):
                faults.append(replace(_fault(manifest, why), stays=True))


def _fault(manifest: Manifest, message: str) -> PolicyFault:
    of_constraints = constraint.is_constraint(manifest.gvk)
    return PolicyFault(manifest.file, manifest.line, manifest.title, message, of_constraints)


def _kind(manifest: Manifest) -> str:
    group, kind = manifest.gvk.group_kind
    if group == template.GROUP:
        return "template"
    if constraint.is_constraint(manifest.gvk):
        return "constraint"
    if declares_target(manifest.document):
        return "target"
    if group in IGNORED_GROUPS or (group == "apiextensions.k8s.io" and _is_ours(manifest)):
        return "ignored"
    return "configuration" if group in CONFIGURATION_GROUPS and kind else "data"


def _is_ours(manifest: Manifest) -> bool:
    """Returns whether this is the CRD of a constraint or of Gatekeeper itself."""
    return manifest.identity[3].endswith(".gatekeeper.sh")
