"""``waddle policy pull``: the files of an artifact, into a folder."""

from __future__ import annotations

from pathlib import Path

import click

from webhook.cli import exit_codes
from webhook.cli.registry_access import ArtifactSource, source_options
from webhook.cli.terminal import complain, write
from webhook.printable import reason_of

_HELP = """Download policies from a registry into a folder.

Artifacts of waddle policy push, conftest push, oras and opa are read. Every file is checked
against the digest by which the manifest names it. The digest of all is printed: with it in place
of the tag the same files come again.

\b
  waddle policy pull registry.example/team/policies:v1 -d policies
  waddle policy pull registry.example/team/policies@sha256:…
"""


@click.command(name="pull", help=_HELP + exit_codes.paragraph("policy pull"))
@click.argument("image", metavar="REF")
@click.option(
    "-d",
    "--folder",
    metavar="FOLDER",
    default="policies",
    show_default=True,
    type=click.Path(path_type=Path),
    help="The folder to write files to.",
)
@click.option("--overwrite", is_flag=True, help="Replace files that differ.")
@source_options
def command(image: str, *, folder: Path, overwrite: bool, source: ArtifactSource) -> int:
    """Pull and write."""
    from webhook.registry.errors import RegistryError  # noqa: PLC0415  # they bring aiohttp
    from webhook.registry.package import write_files  # noqa: PLC0415

    try:
        pulled = source.pull(image)
        if not overwrite:
            for name, content in pulled.files.items():
                place = folder / name
                if place.exists() and (not place.is_file() or place.read_bytes() != content):
                    complain(f"{place} exists and differs: --overwrite replaces it")
                    return exit_codes.NO
        write_files(pulled.files, folder)
    except (OSError, RegistryError) as error:
        where = f"{error.filename}: " if isinstance(error, OSError) else ""
        complain(f"{where}{reason_of(error)}")
        return exit_codes.NO
    write(str(pulled.reference))
    return exit_codes.OK
