"""``waddle rego fmt``: formats Rego files as ``opa fmt`` does."""

from __future__ import annotations

from typing import Any

import click

from webhook.cli import exit_codes
from webhook.cli.policy_options import boolean_option, dash_is_standard_input
from webhook.cli.rego.options import V0, V1, refused

_HELP = """Lay Rego files out anew, byte by byte as opa fmt does.

Without a path, standard input is laid out. Below a folder, files named .rego are.

With -w, a file is not written if the layout would lose a comment or code: OPA's does in rare places.
The line on standard error names what; --check-result=false writes the file nevertheless.

\b
  waddle rego fmt policy/
  waddle rego fmt --list --fail policy/
  waddle rego fmt --write policy/
"""


@click.command(name="fmt", help=_HELP + exit_codes.paragraph("rego fmt"))
@click.argument("paths", metavar="[PATH...]", nargs=-1, callback=dash_is_standard_input)
@click.option("-w", "--write", is_flag=True, help="Overwrite the files.")
@click.option(
    "-l", "--list", "listed", is_flag=True, help="Print only the names of files that would change."
)
@click.option("-d", "--diff", is_flag=True, help="Print only the changes, in colours.")
@click.option("--fail", is_flag=True, help="Exit with 2 if a file would change.")
@click.option(
    "--v0-v1",
    "--rego-v1",
    "both",
    is_flag=True,
    help="Read Rego v0, and write source that is valid in both v0 and v1.",
)
@V0
@V1
@boolean_option(
    "--check-result",
    default=True,
    help_text="Check that the result can be parsed, and with -w that it loses nothing.",
)
@click.option(
    "--drop-v0-imports",
    is_flag=True,
    help="Leave out imports that v1 does not need, such as rego.v1.",
)
@refused("--capabilities", because="capabilities do not change the format of a file.")
def command(**options: Any) -> int:
    """Lay out, and print or write."""
    # The parser takes long to import; help and usage errors do not need it.
    from webhook.cli.rego.fmt_run import run  # noqa: PLC0415

    return run(**options)
