"""``waddle conftest parse``: shows files as the documents that policies see."""

from __future__ import annotations

import sys
from typing import Any

import click

from webhook.cli import exit_codes
from webhook.cli.conftest.options import CONFIG_FILE, ConftestExit, Flags
from webhook.cli.terminal import complain

_HELP = """Show what policies see of configuration files, as JSON.

\b
  waddle conftest parse Dockerfile
  waddle conftest parse --parser hcl2 - < main.tf
"""


def as_json(value: Any, indent: str) -> str:
    """Returns the value as indented JSON; numbers as Go's JSON writes a ``float64``."""
    from webhook.parsers import numbers  # noqa: PLC0415  # --help needs none of it
    from webhook.rego.run.text import laid_out  # noqa: PLC0415

    return laid_out(numbers.plain(value), "", indent)


@click.command(name="parse", cls=Flags, help=_HELP + exit_codes.paragraph("conftest parse"))
@click.argument("files", metavar="FILE...", nargs=-1)
@click.option("--combine", is_flag=True, help="Print all files as one array.")
@click.option("--parser", default="", help="The parser for all files, whatever their names are.")
@CONFIG_FILE
def command(files: tuple[str, ...], *, combine: bool, parser: str, config_file: str) -> int:
    """Read and print."""
    del config_file
    if not files:
        raise ConftestExit("must supply path to at least one file")
    from webhook.conftest.configurations import (  # noqa: PLC0415  # --help needs none of it
        FileError,
        combined,
        read,
    )

    faults: list[FileError] = []
    read_files = list(read(list(dict.fromkeys(files)), parser, faults))
    for fault in faults:
        complain(f"Error: parse configurations: {fault}")
    # As conftest: a part of the files would look like all of them.
    if read_files and not faults:
        if combine:
            text = as_json(combined(read_files), "\t") + "\n"
        elif len(read_files) == 1 and len(files) == 1:
            text = as_json(read_files[0].value, "  ")
        else:
            text = as_json({file.path: file.value for file in read_files}, "  ")
        sys.stdout.write(text + "\n")
    return exit_codes.NO if faults else 0
