"""``waddle man``: manual pages in roff, from the text of ``--help``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click

from webhook import __version__
from webhook.cli import exit_codes

_WIDTH: Final = 78
"""Columns of preformatted text: a terminal of 80 minus man's margin."""


def all_pages(root: click.Context) -> Iterator[tuple[str, str]]:
    """Yields the name and page of the program and of each command below it."""
    yield "waddle", page_of(root, ())
    yield from _below(root, ())


def page_of(root: click.Context, words: Sequence[str]) -> str:
    """Returns the page of a command by its words; the program's page without words.

    Raises :class:`click.UsageError` if there is none.
    """
    context = root
    for word in words:
        command = context.command
        below = command.get_command(context, word) if isinstance(command, click.Group) else None
        if below is None:
            raise click.UsageError(f"no such command: {' '.join(('waddle', *words))}")
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


_HELP = """Print a command's manual page, or write those of all commands.

\b
  waddle man test | man -l -
  waddle man --directory ~/.local/share/man/man1

They have the text of --help.
"""


@click.command("man", help=_HELP + exit_codes.paragraph("man"))
@click.argument("words", metavar="[COMMAND]...", nargs=-1)
@click.option(
    "--directory",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder for the pages of all commands; it is created if it does not exist.",
)
def command(words: tuple[str, ...], directory: Path | None) -> int:
    """Print or write."""
    root = click.get_current_context().find_root()
    if directory is None:
        click.echo(page_of(root, words), nl=False)
        return exit_codes.OK
    if words:
        raise click.UsageError("--directory writes the pages of all commands: name no command")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in all_pages(root):
            (directory / f"{name}.1").write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{directory}: {error.strerror}") from error
    return exit_codes.OK
