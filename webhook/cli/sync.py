"""``waddle sync test``: whether the synced data covers the requirements of templates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.cli import exit_codes
from webhook.cli.formats import words
from webhook.cli.formats.words import output_option
from webhook.cli.policy_options import FILENAMES
from webhook.cli.terminal import NoResult, complain, write

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.api.gvk import GroupVersionKind
    from webhook.controllers.requirements import Requirements
    from webhook.policies.manifests import Manifest

MANIFEST: Final = ("gvkmanifest.gatekeeper.sh", "GVKManifest")
"""Gatekeeper's list of the kinds that a cluster serves: a file, no object of the cluster."""

_HELP = """Test that what templates need is synced.

SyncSets and Config sync it, as gator sync test has it.

A template names it in its annotation metadata.gatekeeper.sh/requires-sync-data. With a GVKManifest
among the files only kinds that it lists count.

\b
  waddle sync test -f policies/ -f syncset.yaml -f gvkmanifest.yaml
  waddle sync test -f policies/ -f syncset.yaml --force-omit-gvk-manifest
"""


@click.group("sync")
def command() -> None:
    """Check the data that is synced for policies."""


@command.command("test", help=_HELP + exit_codes.paragraph("sync test"))
@FILENAMES
@click.option(
    "--force-omit-gvk-manifest",
    "omit",
    is_flag=True,
    help="Assume that the cluster serves every kind, without a GVKManifest.",
)
@output_option(*words.SHORT)
def test(filenames: tuple[str, ...], *, omit: bool, output: str) -> int:
    """Read, compare and print."""
    # Imported here: --help and a mistyped option do not need it.
    from webhook.cli.sources import read_sources  # noqa: PLC0415

    sources = read_sources([Path(name) for name in filenames], any_value=False)
    for warning in sources.warnings:
        complain(warning)
    needs, missing = compare(sources.manifests, omit=omit)
    if output == "json":
        from webhook.cli.formats.document import as_json  # noqa: PLC0415  # as above

        write(as_json({"templates": sorted(needs), "missing": _document(missing)}))
    else:
        write(_table(needs, missing))
    return exit_codes.NO if missing else exit_codes.OK


def compare(
    manifests: Sequence[Manifest], *, omit: bool
) -> tuple[dict[str, Requirements], dict[str, Requirements]]:
    """Returns the requirements of each template, and those not synced.

    Raises :class:`~webhook.cli.terminal.NoResult`.
    """
    from webhook.api.config import CONFIG, SYNC_SET, synced_kinds  # noqa: PLC0415  # as above
    from webhook.api.gvk import name_of  # noqa: PLC0415
    from webhook.constraint import template  # noqa: PLC0415
    from webhook.constraint.errors import ConstraintFrameworkError  # noqa: PLC0415
    from webhook.controllers.requirements import missing, read_requirements  # noqa: PLC0415

    needs: dict[str, Requirements] = {}
    synced: set[GroupVersionKind] = set()
    served: list[frozenset[GroupVersionKind]] = []
    for item in manifests:
        of_group = item.gvk.group_kind
        try:
            if of_group == (template.GROUP, template.KIND):
                needs[name_of(item.document)] = read_requirements(item.document)
            elif of_group in {CONFIG.group_kind, SYNC_SET.group_kind}:
                synced |= synced_kinds(item.document)
            elif of_group == MANIFEST:
                served.append(_served(item.document))
        except (ConstraintFrameworkError, TypeError, AttributeError) as error:
            raise NoResult(f"{item.file}:{item.line}: {item.title}: {error}") from None
    if not needs:
        raise NoResult("nothing was compared: the files have no ConstraintTemplate")
    if len(served) > 1:
        raise NoResult("the files have several GVKManifests: give one, with every kind")
    if not omit:
        if not served:
            raise NoResult(
                "the files have no GVKManifest, with the kinds that the cluster serves: add one, or "
                "--force-omit-gvk-manifest"
            )
        synced &= served[0]
    absent = {name: missing(required, synced) for name, required in needs.items()}
    return needs, {name: kinds for name, kinds in absent.items() if kinds}


def _served(document: Mapping[str, Any]) -> frozenset[GroupVersionKind]:
    from webhook.api.gvk import GroupVersionKind  # noqa: PLC0415  # as above

    groups = (document.get("spec") or {}).get("groups") or {}
    return frozenset(
        GroupVersionKind(group, version, kind)
        for group, versions in groups.items()
        for version, kinds in versions.items()
        for kind in kinds
    )


def _document(missing: Mapping[str, Requirements]) -> dict[str, list[list[dict[str, str]]]]:
    return {
        name: [[gvk._asdict() for gvk in sorted(kinds)] for kinds in absent]
        for name, absent in sorted(missing.items())
    }


def _table(needs: Mapping[str, Requirements], missing: Mapping[str, Requirements]) -> str:
    """Returns unmet requirements in gator's form, and the counts of templates."""
    from webhook.printable import printable, quantity  # noqa: PLC0415  # as above

    lines = []
    for name, absent in sorted(missing.items()):
        lines.append(f"{printable(name)}: not synced:")
        lines += [
            "- " + " OR ".join(f"{gvk.group}/{gvk.version}:{gvk.kind}" for gvk in sorted(kinds))
            for kinds in absent
        ]
    asking = sum(map(bool, needs.values()))
    lines.append(
        f"{quantity(len(needs), 'template')}: {asking} with requirements, "
        f"{len(missing)} without data that they need"
    )
    return "\n".join(lines)
