"""``waddle policy list``: the sources of a catalogue."""

from __future__ import annotations

from pathlib import Path

import click

from webhook.cli import exit_codes
from webhook.cli.formats.words import output_option
from webhook.cli.policy_options import InputPath
from webhook.cli.terminal import complain, write

_HELP = """Show the sources of a catalogue: their names, references, and whether they have to be signed.

\b
  waddle policy list catalogue.yaml
"""


@click.command(name="list", help=_HELP + exit_codes.paragraph("policy list"))
@click.argument("catalogue", metavar="FILE", type=InputPath())
@output_option("table", "json")
def command(catalogue: Path, output: str) -> int:
    """Read and show; no registry is asked."""
    from webhook.cli.formats.document import as_json  # noqa: PLC0415  # --help needs none of it
    from webhook.cli.table import table  # noqa: PLC0415
    from webhook.policies.catalogue import InvalidCatalogue, read_catalogue  # noqa: PLC0415

    try:
        sources = read_catalogue(catalogue)
    except InvalidCatalogue as error:
        complain(str(error))
        return exit_codes.NO
    if output == "json":
        write(
            as_json(
                [
                    {
                        "name": source.name,
                        "image": source.image,
                        "description": source.description,
                        "verification": list(map(str, source.verification)),
                    }
                    for source in sources
                ]
            )
        )
        return exit_codes.OK
    rows = [
        (source.name, source.image, "yes" if source.verification else "no", source.description)
        for source in sources
    ]
    for line in table([("NAME", "IMAGE", "SIGNED", "DESCRIPTION"), *rows]):
        write(line)
    return exit_codes.OK
