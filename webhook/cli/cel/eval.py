"""``waddle cel eval``: the value of an expression over objects in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from webhook.cli import exit_codes

_HELP = """Evaluate an expression and print its value as JSON.

Files are YAML or JSON and become the variables of a review: an object alone is created, an old
object alone is deleted, both are an update.

\b
  waddle cel eval '1 + 1'
  waddle cel eval --object pod.yaml 'object.spec.containers.map(c, c.image)'
  waddle cel eval --object pod.yaml --params params.yaml 'variables.params.labels'
"""

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(name="eval", help=_HELP + exit_codes.paragraph("cel eval"))
@click.argument("expression", metavar="EXPRESSION")
@click.option("--object", "object_", type=_FILE, help="The object.")
@click.option("--old-object", "old", type=_FILE, help="The object before.")
@click.option("--namespace", type=_FILE, help="The Namespace.")
@click.option("--params", type=_FILE, help="A constraint's spec.parameters.")
def command(**options: Any) -> int:
    """Compile, evaluate, print."""
    # The engine takes long to import: help and errors of usage do without it.
    from webhook.cli.cel.eval_run import run  # noqa: PLC0415

    return run(**options)
