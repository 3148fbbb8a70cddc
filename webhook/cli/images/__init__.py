"""``waddle provider``: external-data provider processes."""

from __future__ import annotations

from typing import Final

import click

from webhook.cli.subcommands import Subcommands

_COMMANDS: Final = {
    "images": ("webhook.cli.images.provider", "Answer for policies whether images are signed."),
}


@click.command(name="provider", cls=Subcommands, listed=_COMMANDS)
def command() -> None:
    """Providers of external data: processes that policies of Waddle and Gatekeeper ask."""
