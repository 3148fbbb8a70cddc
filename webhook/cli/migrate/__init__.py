"""``waddle migrate``: finds the parts of another product's installation that run here."""

from __future__ import annotations

from typing import Final

import click

from webhook.cli.subcommands import Subcommands

_COMMANDS: Final = {
    "gatekeeper": (
        "webhook.cli.migrate.gatekeeper",
        "Report which objects of Gatekeeper run unchanged.",
    ),
    "kubewarden": ("webhook.cli.migrate.kubewarden", "Convert Kubewarden's policy groups."),
    "kyverno": (
        "webhook.cli.migrate.kyverno",
        "Report which Kyverno policies run, and convert others.",
    ),
}


@click.command(name="migrate", cls=Subcommands, listed=_COMMANDS)
def command() -> None:
    """Say what of another product's installation runs here, and what does not."""
