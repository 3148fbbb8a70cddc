"""``waddle conftest reformat``: results that were written as JSON, in another format."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from webhook import __version__
from webhook.cli import exit_codes
from webhook.cli.conftest.options import CONFIG_FILE, ConftestExit, Flags
from webhook.cli.conftest.test import write_results
from webhook.cli.policy_options import STANDARD_INPUT
from webhook.printable import reason_of

_HELP = """Write results of conftest's JSON in another format.

\b
  waddle conftest test -o json pod.yaml > results.json
  waddle conftest reformat -o junit results.json
"""


@click.command(name="reformat", cls=Flags, help=_HELP + exit_codes.paragraph("conftest reformat"))
@click.argument("files", metavar="[FILE]", nargs=-1)
@click.option(
    "-o",
    "--output",
    default="stdout",
    show_default=True,
    help="stdout, json, tap, table, junit, github, azuredevops or sarif.",
)
@CONFIG_FILE
def command(files: tuple[str, ...], *, output: str, config_file: str) -> None:
    """Read and write."""
    del config_file
    from webhook.conftest.output import OutputOptions  # noqa: PLC0415  # --help needs none of it
    from webhook.conftest.results_file import UnreadableResults, read_results  # noqa: PLC0415

    try:
        if files and files[0] not in {"-", STANDARD_INPUT}:
            text = Path(files[0]).read_text("utf-8")
        else:
            text = sys.stdin.read()
        results = read_results(text)
    except OSError as error:
        raise ConftestExit(f"failed to open input file: {files[0]}: {error.strerror}") from None
    except (UnreadableResults, UnicodeDecodeError) as error:
        raise ConftestExit(f"failed to parse JSON input: {reason_of(error)}") from None
    write_results(results, output, OutputOptions(version=__version__), trace=False)
