"""``waddle cel``: checks and evaluates CEL expressions as Kubernetes' admission does."""

from __future__ import annotations

from typing import Final

import click

from webhook.cli.subcommands import Subcommands

_COMMANDS: Final = {
    "check": ("webhook.cli.cel.check", "Check expressions and print their types."),
    "eval": ("webhook.cli.cel.eval", "Evaluate an expression."),
}


@click.command(name="cel", cls=Subcommands, listed=_COMMANDS)
def command() -> None:
    """Expressions in CEL, with what Kubernetes' admission policies may use."""
