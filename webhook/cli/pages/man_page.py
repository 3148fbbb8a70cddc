"""Generates manual pages in roff from the commands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import click

from webhook import __version__

_WIDTH: Final = 78
"""Columns of preformatted text: a terminal of 80 minus man's margin."""


class UnknownCommand(Exception):
    """The command does not exist."""


def all_pages(root: click.Context) -> Iterator[tuple[str, str]]:
    """Yields the name and page of the program and of each command below it."""
    yield "waddle", page_of(root, ())
    yield from _below(root, ())


def page_of(root: click.Context, words: Sequence[str]) -> str:
    """Returns the page of a command by its words; the program's page without words.

    Raises :class:`UnknownCommand`.
    """
    context = root
    for word in words:
        command = context.command
        below = command.get_command(context, word) if isinstance(command, click.Group) else None
        if below is None:
            raise UnknownCommand(f"no such command: {' '.join(('waddle', *words))}")
        context = click.Context(below, parent=context, info_name=word)
    return _page(context, "-".join(("waddle", *words)))


def _below(context: click.Context, words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    group = context.command
    assert isinstance(group, click.Group)
    for word in group.list_commands(context):
        path = (*words, word)
        command = group.get_command(context, word)
        assert command is not None, "it is listed"
        below = click.Context(command, parent=context, info_name=word)
        yield "-".join(("waddle", *path)), _page(below, "-".join(("waddle", *path)))
        if isinstance(command, click.Group):
            yield from _below(below, path)


def _page(context: click.Context, name: str) -> str:
    command = context.command
    context.terminal_width = context.max_content_width = _WIDTH
    lines = [
        f'.TH "{_escaped(name.upper())}" 1 "" "Waddle {__version__}" "Waddle"',
        ".SH NAME",
        f"{_escaped(name)} \\- {_escaped(_summary(command))}",
    ]
    lines += [".SH DESCRIPTION", ".nf", *_literal(command.get_help(context)), ".fi"]
    if context.parent is not None:
        lines += [".SH SEE ALSO", f".BR {_escaped('-'.join(_above(context)))} (1)"]
    return "\n".join(lines) + "\n"


def _summary(command: click.Command) -> str:
    """Returns the first sentence of its help."""
    return command.get_short_help_str(limit=200).rstrip(".")


def _above(context: click.Context) -> list[str]:
    names: list[str] = []
    parent = context.parent
    while parent is not None:
        names.insert(0, "waddle" if parent.parent is None else str(parent.info_name))
        parent = parent.parent
    return names


def _literal(text: str) -> list[str]:
    """Escapes lines that begin with a point or a quote, which would be instructions."""
    return [
        f"\\&{line}" if line.startswith((".", "'")) else line
        for line in _escaped(text).splitlines()
    ]


def _escaped(text: str) -> str:
    """Escapes backslashes, and characters that roff would replace."""
    for sign, name in (("\\", "\\e"), ("-", "\\-"), ("'", "\\(aq"), ("`", "\\(ga"), ("^", "\\(ha")):
        text = text.replace(sign, name)
    return text.replace("~", "\\(ti")
