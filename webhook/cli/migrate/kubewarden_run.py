"""Runs ``waddle migrate kubewarden``: reads groups and writes ConstraintGroups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.cli import exit_codes
from webhook.cli.clients import new_client
from webhook.cli.formats.document import as_yaml as yaml_of
from webhook.cli.migrate.kubewarden_groups import Migrated, NoEquivalent, is_group, migrated
from webhook.cli.migrate.run import from_files
from webhook.cli.terminal import complain, write
from webhook.constraint.errors import ConstraintFrameworkError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.api.shapes import Json


def run(filenames: Sequence[str], kinds: Mapping[str, str]) -> int:
    """Translates every group of the files; returns the exit code."""
    manifests, all_read = from_files(filenames)
    groups = [item for item in manifests if is_group(item.document)]
    if not groups:
        complain("the files have no policy group of Kubewarden")
        return exit_codes.UNKNOWN
    written: list[Json] = []
    missing = False
    for item in groups:
        try:
            migration = migrated(item.document, kinds)
            _try_templates(migration)
        except NoEquivalent as error:
            complain(f"{item.title}: not written: {error}")
            missing = True
            continue
        for note in migration.notes:
            complain(f"{item.title}: {note}")
        written += [*migration.templates, migration.group]
    if written:
        write("\n---\n".join(map(yaml_of, written)))
    if not all_read:
        return exit_codes.UNKNOWN
    return exit_codes.NO if missing else exit_codes.OK


def _try_templates(migration: Migrated) -> None:
    """Raises for expressions with features that only Kubewarden has."""
    client = new_client()
    for template in migration.templates:
        try:
            client.add_template(template)
        except ConstraintFrameworkError as error:
            raise NoEquivalent(f"its expressions are invalid here: {error}") from None
