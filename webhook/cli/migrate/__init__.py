"""``waddle migrate``: finds the parts of another product's installation that run here."""

from __future__ import annotations

from typing import Final

import click

from webhook.cli.subcommands import Subcommands

_COMMANDS: Final = {
    "gatekeeper": ("webhook.cli.migrate.gatekeeper", "Say what of Gatekeeper's runs as it is."),
    "kubewarden": ("webhook.cli.migrate.kubewarden", "Write Kubewarden's policy groups anew."),
    "kyverno": ("webhook.cli.migrate.kyverno", "Say what of Kyverno's policies runs here."),
}


@click.command(name="migrate", cls=Subcommands, listed=_COMMANDS)
def command() -> None:
    """Say what of another product's installation runs here, and what does not."""
