"""Runs ``waddle migrate gatekeeper``: reads an installation and reports which parts run here."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from webhook.api.targets import declares_target
from webhook.cli import exit_codes
from webhook.cli.clients import new_client
from webhook.cli.cluster_access import list_objects
from webhook.cli.migrate.rules import PAGES, Judged, judge
from webhook.cli.sources import Sources, read_sources
from webhook.cli.target_run import declared_targets
from webhook.cli.terminal import complain, styled, write
from webhook.policies.manifests import Manifest
from webhook.printable import one_line, quantity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.cluster.client import ClusterClient

GROUPS: Final = (
    *(("templates.gatekeeper.sh", "v1"), ("constraints.gatekeeper.sh", "v1beta1")),
    *(("config.gatekeeper.sh", "v1alpha1"), ("syncset.gatekeeper.sh", "v1alpha1")),
    *(("mutations.gatekeeper.sh", "v1"), ("expansion.gatekeeper.sh", "v1alpha1")),
    *(("externaldata.gatekeeper.sh", "v1beta1"), ("connection.gatekeeper.sh", "v1alpha1")),
)
"""Gatekeeper's API groups, each with the version to read."""

_SHOWN: Final = {"same": "as it is", "differs": "differs", "missing": "missing"}
_COLOURS: Final = {"same": "green", "differs": "yellow", "missing": "red"}


NOT_WRITTEN: Final = (
    "nothing is written, because a file cannot be read: correct it, or leave it out"
)


def from_files(filenames: Sequence[str]) -> tuple[list[Manifest], bool]:
    """Reads files, folders and standard input; also returns whether all were readable.

    Unreadable files are reported, and the rest is read. Raises
    :class:`~webhook.cli.sources.CannotTest` if no object is left.
    """
    sources = read_sources([Path(name) for name in filenames], any_value=False, keep_going=True)
    for line in (*sources.faults, *sources.warnings):
        complain(line)
    return [*sources.targets, *sources.manifests], not sources.faults


async def from_cluster(client: ClusterClient, namespace: str) -> list[Manifest]:
    """Reads a cluster's objects of Gatekeeper."""
    # Here and not above: it brings aiohttp.
    from webhook.cluster.discovery import Discovery  # noqa: PLC0415
    from webhook.cluster.kinds import (  # noqa: PLC0415
        DEPLOYMENTS,
        MUTATING_CONFIGURATIONS,
        WEBHOOK_CONFIGURATIONS,
    )

    discovery = Discovery(client)
    items = await list_objects(client, DEPLOYMENTS, namespace)
    for resource in (WEBHOOK_CONFIGURATIONS, MUTATING_CONFIGURATIONS):
        items += await list_objects(client, resource)
    for group, version in GROUPS:
        for resource in await discovery.kinds(group, version):
            items += await list_objects(client, resource)
    return [Manifest(item, "", 0) for item in items]


def notify(manifests: Sequence[Manifest], output: str) -> int:
    """Judges and prints; returns the exit code."""
    targets = [item for item in manifests if declares_target(item.document)]
    declared = declared_targets(Sources(targets=targets)).values()
    others = [item for item in manifests if item not in targets]
    judged = judge(others, new_client(targets=tuple(declared)))
    if not judged:
        complain("there are no policies of Gatekeeper")
        return exit_codes.UNKNOWN
    write(as_json(judged) if output == "json" else as_table(judged))
    return exit_codes.NO if any(item.grade == "missing" for item in judged) else exit_codes.OK


def as_json(judged: Sequence[Judged]) -> str:
    """Returns all results, for programs."""
    return json.dumps(
        [
            {
                "kind": item.kind,
                "name": item.name,
                "place": item.place,
                "grade": item.grade,
                "notes": [
                    {"grade": note.grade, "text": note.text, "row": note.row} for note in item.notes
                ],
            }
            for item in judged
        ]
    )


def as_table(judged: Sequence[Judged]) -> str:
    """Returns a line for each object, and below it one for each difference."""
    lines = []
    for item in judged:
        grade = styled(_SHOWN[item.grade].ljust(8), fg=_COLOURS[item.grade])
        place = f" ({item.place})" if item.place else ""
        lines.append(f"{grade}  {one_line(f'{item.kind}/{item.name}{place}')}")
        for note in item.notes:
            row = f" [{PAGES[note.row]}: {note.row}]" if note.row else ""
            lines.append(f"          {_SHOWN[note.grade]}: {one_line(note.text)}{row}")
    counts = Counter(item.grade for item in judged)
    lines += [
        "",
        f"{quantity(len(judged), 'object')}: {counts['same']} run unchanged, {counts['differs']} ",
    ]
    lines[-1] += f"run with differences, {counts['missing']} have no equivalent"
    return "\n".join(lines)
