"""Groups of subcommands; a subcommand is imported on use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.printable import nearest_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from click.shell_completion import CompletionItem


_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})
"""The texts that Go's strconv.ParseBool reads as false."""


def spelled(arguments: Sequence[str], command: click.Command) -> list[str]:
    """Returns a command's arguments in click's spelling; arguments to be refused stay unchanged.

    gator, opa, conftest and kubectl parse their flags with pflag, so scripts for them contain
    ``-o=yaml`` and ``--verbose=true``.
    """
    options = {
        name: option
        for option in command.params
        if isinstance(option, click.Option)
        for name in option.opts
    }
    words: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            return [*words, argument, *rest]
        name, equals, value = argument.partition("=")
        option = options.get(name)
        if option is None or not equals:
            words.append(argument)
            words += _value_of(options.get(argument), rest)
        elif option.is_flag:
            words += _switch(name, value)
        elif name.startswith("--"):
            words.append(argument)
        else:
            words += [name, value]
    return words


def _value_of(option: click.Option | None, rest: Iterator[str]) -> list[str]:
    """Returns the value after an option, even if it looks like an option."""
    if option is None or option.is_flag:
        return []
    value = next(rest, None)
    return [] if value is None else [value]


def _switch(name: str, value: str) -> list[str]:
    if value in _FALSE:
        return []
    return [name] if value in _TRUE else [f"{name}={value}"]


COMPLETE: Final = "_WADDLE_COMPLETE"
"""The environment variable that shells set to request completions."""


class Subcommands(click.Group):
    """Lists the subcommands without importing them: ``--help`` stays fast.

    ``listed`` has for each name the module whose ``command`` it is, and its line of help.
    """

    def __init__(self, *args: Any, listed: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.listed = listed

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns all names, in the order of the table."""
        del ctx
        return list(self.listed)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns the command of a name, imported now."""
        del ctx
        if cmd_name not in self.listed:
            return None
        module, _ = self.listed[cmd_name]
        command: click.Command = import_module(module).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the command and its arguments in click's spelling."""
        if args and args[0] not in self.listed and not args[0].startswith("-"):
            near = nearest_name(args[0], self.listed)
            if near:
                ctx.fail(f"No such command {args[0]!r}. Did you mean {near!r}?")
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not isinstance(command, click.Group):
            rest = spelled(rest, command)
        return name, command, rest

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Returns the completions; click itself would import every subcommand for its help line."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415  # for this alone

        names = [
            CompletionItem(name, help=text)
            for name, (_, text) in self.listed.items()
            if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the table as help."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.listed.items()])
