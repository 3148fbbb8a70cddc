"""``waddle rego``: plain Rego without templates, with the options and output of ``opa``."""

from __future__ import annotations

from typing import Final

import click

from webhook.cli.subcommands import Subcommands

_COMMANDS: Final = {
    "check": ("webhook.cli.rego.check", "Check sources for errors."),
    "eval": ("webhook.cli.rego.eval", "Evaluate a query."),
    "fmt": ("webhook.cli.rego.fmt", "Format files, as opa fmt does."),
    "parse": ("webhook.cli.rego.parse", "Print the syntax tree of a source."),
    "test": ("webhook.cli.rego.test", "Run unit tests written in Rego."),
}


@click.command(name="rego", cls=Subcommands, listed=_COMMANDS)
def command() -> None:
    """Plain Rego: unit tests, queries and checks, with OPA's options and formats."""
