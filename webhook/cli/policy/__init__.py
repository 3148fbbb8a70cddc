"""``waddle policy``: policies pushed to registries, pulled, installed in a cluster and upgraded."""

from __future__ import annotations

from typing import Final

import click

from webhook.cli.subcommands import Subcommands

_COMMANDS: Final = {
    "install": ("webhook.cli.policy.install", "Install policies in a cluster, at dryrun."),
    "list": ("webhook.cli.policy.list", "Show the sources of a catalogue."),
    "pull": ("webhook.cli.policy.pull", "Download policies from a registry."),
    "push": ("webhook.cli.policy.push", "Push policies to a registry."),
    "upgrade": ("webhook.cli.policy.upgrade", "Upgrade installed policies to another version."),
}


@click.command(name="policy", cls=Subcommands, listed=_COMMANDS)
def command() -> None:
    """Keep policies in registries, beside images."""
