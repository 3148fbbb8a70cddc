"""Chooses the target of ``waddle test``, and reads declared targets and libraries."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from webhook.cli.sources import CannotTest, Sources
from webhook.constraint import template
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.constraint.targets.declared import DeclaredTarget, read_target
from webhook.constraint.targets.known import DOCUMENT_TARGETS
from webhook.policies.config_validator import modernised
from webhook.policies.manifests import Manifest, UnreadableFile, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from webhook.constraint.targets.documents import DocumentTarget

ADMISSION_TARGET: Final = "admission"


def declared_targets(sources: Sources) -> dict[str, DeclaredTarget]:
    """Returns the targets that files declare, by their names; raises :class:`CannotTest`."""
    taken = {target.name for target in DOCUMENT_TARGETS.values()}
    targets: dict[str, DeclaredTarget] = {}
    for manifest in sources.targets:
        try:
            target = read_target(manifest.document)
        except ConstraintFrameworkError as error:
            raise CannotTest(f"adding target: {error} ({manifest.file}:{manifest.line})") from None
        if target.name in taken:
            raise CannotTest(
                f"adding target: {target.name} is declared twice, or is built in ({manifest.file}:{manifest.line})"
            )
        taken.add(target.name)
        targets[target.name] = target
    return targets


def chosen_target(name: str, declared: Mapping[str, DocumentTarget]) -> DocumentTarget | None:
    """Returns the target of a short or full name.

    None for admission. Raises :class:`CannotTest`.
    """
    if name == ADMISSION_TARGET:
        return None
    known: dict[str, DocumentTarget] = {**DOCUMENT_TARGETS, **declared}
    known |= {target.name: target for target in DOCUMENT_TARGETS.values()}
    if name not in known:
        listed = ", ".join([ADMISSION_TARGET, *DOCUMENT_TARGETS, *declared])
        raise CannotTest(f'there is no target "{name}": the targets are {listed}')
    return known[name]


def read_libraries(paths: Sequence[Path]) -> list[str]:
    """Reads the modules below some folders, without tests; raises :class:`CannotTest`."""
    texts: list[str] = []
    for path in paths:
        try:
            files = [path] if path.is_file() else sorted(path.rglob("*.rego"))
            if not path.exists():
                raise CannotTest(f'reading: path "{path}": No such file or directory')
            texts += [
                text_of(file.read_bytes(), str(file))
                for file in files
                if not file.name.endswith("_test.rego")
            ]
        except UnreadableFile as error:
            raise CannotTest(f"reading: {error}") from None
        except OSError as error:
            raise CannotTest(f'reading: path "{path}": {error.strerror}') from None
    return texts


def modernise(manifests: list[Manifest], libraries: Sequence[str]) -> list[Manifest]:
    """Returns the policies; those in config-validator's old form are converted."""
    old = {
        template.kind_of(item.document)
        for item in manifests
        if item.gvk.group_kind == (template.GROUP, template.KIND) and _is_old(item)
    }
    if not old:
        return manifests
    return [
        replace(item, document=modernised(item.document, libraries))
        if item.gvk.kind in old or _is_old(item)
        else item
        for item in manifests
    ]


def _is_old(manifest: Manifest) -> bool:
    spec = manifest.document.get("spec")
    return isinstance(spec, dict) and isinstance(spec.get("targets"), dict)
