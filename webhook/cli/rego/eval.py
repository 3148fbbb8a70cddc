"""``waddle rego eval``: a query evaluated, with what ``opa eval`` prints."""

from __future__ import annotations

from typing import Any

import click

from webhook.cli import exit_codes
from webhook.cli.rego.options import IGNORE, V0, V1, Duration

_HELP = """Evaluate a query over Rego files and data.

\b
  waddle rego eval '1 + 1'
  waddle rego eval -d policy/ -i input.json 'data.k8s.violation'
  waddle rego eval -d policy/ -f raw 'data.k8s.allow'
"""


@click.command(name="eval", help=_HELP + exit_codes.paragraph("rego eval"))
@click.argument("query")
@click.option(
    "-d", "--data", "paths", metavar="PATH", multiple=True, help="Policies and data. Repeatable."
)
@click.option("-i", "--input", "input_path", metavar="FILE", help="The input document.")
@click.option("-I", "--stdin-input", is_flag=True, help="Read the input from standard input.")
@click.option(
    "-f",
    "--format",
    "output",
    type=click.Choice(["json", "values", "bindings", "pretty", "raw", "discard"]),
    default="json",
    show_default=True,
    help="The format of the result.",
)
@click.option("--package", metavar="PATH", default="", help="The package to evaluate in.")
@click.option("--import", "imported", metavar="PATH", multiple=True, help="An import. Repeatable.")
@click.option("--fail", is_flag=True, help="Exit with 1 where the result is undefined.")
@click.option("--fail-defined", is_flag=True, help="Exit with 1 where there is a result.")
@click.option("-S", "--strict", is_flag=True, help="Refuse what OPA's strict mode refuses.")
@click.option(
    "--strict-builtin-errors", is_flag=True, help="End at the first complaint of a built-in."
)
@click.option(
    "--timeout",
    type=Duration(),
    default="0",
    help="The longest that the evaluation may take; 0 for no bound.",
)
@click.option(
    "-b",
    "--bundle",
    "bundles",
    metavar="PATH",
    multiple=True,
    help="A bundle's folder: of data files only data.json and data.yaml are read. Repeatable.",
)
@IGNORE
@V0
@V1
def command(**options: Any) -> int:
    """Load, evaluate and print."""
    # The engine is half of what there is to import: help and errors of usage do without it.
    from webhook.cli.rego.eval_run import run  # noqa: PLC0415

    return run(**options)
