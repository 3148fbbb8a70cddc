"""Groups of subcommands that import a subcommand only when it is asked for."""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.cli.spelling import spelled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from click.shell_completion import CompletionItem

COMPLETE: Final = "_WADDLE_COMPLETE"
"""In the environment where a shell asks what may stand at a place."""


class Subcommands(click.Group):
    """Lists the subcommands without importing them: ``--help`` stays fast.

    ``listed`` has for each name the module whose ``command`` it is, and its line of help.
    """

    def __init__(self, *args: Any, listed: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.listed = listed

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every name, in the order of the table."""
        del ctx
        return list(self.listed)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, imported now."""
        del ctx
        if cmd_name not in self.listed:
            return None
        module, _ = self.listed[cmd_name]
        command: click.Command = import_module(module).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command and its arguments, as click spells them."""
        if args and args[0] not in self.listed and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], self.listed, n=1)
            if near:
                ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not isinstance(command, click.Group):
            rest = spelled(rest, command)
        return name, command, rest

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names; click's way would import every subcommand, for its line of help."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415  # for this alone

        names = [
            CompletionItem(name, help=text)
            for name, (_, text) in self.listed.items()
            if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table itself is the help."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.listed.items()])
