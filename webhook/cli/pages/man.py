"""``waddle man``: manual pages, from the text of ``--help``."""

from __future__ import annotations

from pathlib import Path

import click

from webhook.cli import exit_codes

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
    # Imported here: it imports all commands.
    from webhook.cli.pages.man_page import UnknownCommand, all_pages, page_of  # noqa: PLC0415

    root = click.get_current_context().find_root()
    if directory is None:
        try:
            click.echo(page_of(root, words), nl=False)
        except UnknownCommand as error:
            raise click.UsageError(str(error)) from None
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
