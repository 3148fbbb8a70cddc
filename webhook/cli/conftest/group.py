"""``waddle conftest``: conftest's own commands and flags, for its users' policies as they are."""

from __future__ import annotations

from typing import Final

import click

from webhook import __version__
from webhook.cli.subcommands import Subcommands
from webhook.cli.version import OPA_LEVEL

_COMMANDS: Final = {
    "test": ("webhook.cli.conftest.test", "Test configuration files against policies."),
    "verify": ("webhook.cli.conftest.verify", "Run the unit tests of policies."),
    "parse": ("webhook.cli.conftest.parse", "Show what policies see of a file."),
}


@click.command(name="conftest", cls=Subcommands, listed=_COMMANDS)
@click.option("-c", "--config-file", default="", metavar="FILE", help="A configuration file.")
@click.version_option(
    __version__, message=f"Conftest: waddle %(version)s\nOPA: {OPA_LEVEL}", prog_name="conftest"
)
def command(config_file: str) -> None:
    """Test configuration files of many formats, as conftest does."""
    del config_file
