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
    "doc": ("webhook.cli.conftest.doc", "Write pages about policies from their annotations."),
    "fmt": ("webhook.cli.conftest.fmt", "Lay policies out anew."),
    "reformat": ("webhook.cli.conftest.reformat", "Write results in another format."),
    "parse": ("webhook.cli.conftest.parse", "Show what policies see of a file."),
    "pull": ("webhook.cli.conftest.pull", "Download policies."),
    "push": ("webhook.cli.conftest.push", "Push policies to a registry."),
}


_LEFT_OUT: Final = {
    "plugin": "Waddle runs no plugins: call the program directly",
}
"""Refused commands of conftest, with their replacements."""


class _ConftestCommands(Subcommands):
    """The commands of conftest; refused ones explain themselves."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the command and its arguments."""
        if args and args[0] in _LEFT_OUT:
            ctx.fail(f"conftest {args[0]} is not supported: {_LEFT_OUT[args[0]]}.")
        return super().resolve_command(ctx, args)


@click.command(name="conftest", cls=_ConftestCommands, listed=_COMMANDS)
@click.option("-c", "--config-file", default="", metavar="FILE", help="A configuration file.")
@click.version_option(
    __version__, message=f"Conftest: waddle %(version)s\nOPA: {OPA_LEVEL}", prog_name="conftest"
)
def command(config_file: str) -> None:
    """Test configuration files of many formats, as conftest does."""
    del config_file
