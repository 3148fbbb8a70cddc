"""The words of ``-o``: they mean the same in every subcommand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from webhook.cli import exit_codes
from webhook.cli.terminal import write
from webhook.values import dataclass

MEANINGS: Final = {
    "table": "for people",
    "json": "all fields, for programs",
    "yaml": "the same fields as YAML",
    "sarif": "SARIF 2.1.0, for code scanning",
    "junit": "JUnit's XML",
    "github": "annotations of GitHub's workflows",
    "text": "gator's own lines",
    "patch": "JSON Patches of what changes",
}
"""All words with their meanings."""

SHORT: Final = ("table", "json")
"""The words of commands for interactive use."""

FINDINGS: Final = ("table", "json", "yaml", "sarif", "junit", "github")
"""The words of commands that report findings in files or objects."""


@dataclass(frozen=True, slots=True)
class Output:
    """An output format, and its file; None for standard output."""

    word: str
    file: Path | None = None


def emit(output: Output, text: str) -> None:
    """Prints a text, or writes its file; raises click's error on failure."""
    if output.file is None:
        write(text)
        return
    try:
        output.file.write_text(click.unstyle(text) + "\n", encoding="utf-8")
    except OSError as error:
        raise CannotWrite(f"{output.file}: {error.strerror}") from None


class CannotWrite(click.ClickException):
    """A report could not be written: its reader would find none, or an older one."""

    exit_code = exit_codes.IO_ERROR


class OutputType(click.Choice[str]):
    """A word, or ``WORD=FILE``."""

    name = "output"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns an :class:`Output`; raises click's error for another word."""
        if isinstance(value, Output):
            return value
        word, separator, file = value.partition("=")
        if separator and not file:
            self.fail(f"{value!r} has no file name after the =", param, ctx)
        return Output(super().convert(word, param, ctx), Path(file) if file else None)


def outputs_option(*words: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns the option ``-o`` for several outputs; the default is the first word."""

    def checked(
        ctx: click.Context, param: click.Parameter, value: tuple[Output, ...]
    ) -> tuple[Output, ...]:
        if sum(output.file is None for output in value) > 1:
            raise click.BadParameter(
                "only one format goes to standard output: give the others as FORMAT=FILE",
                ctx,
                param,
            )
        return value or (Output(words[0]),)

    meanings = ", ".join(f"{word} ({MEANINGS[word]})" for word in words)
    return click.option(
        "-o",
        "--output",
        "outputs",
        type=OutputType(words),
        multiple=True,
        callback=checked,
        help=(
            f"The format; the default is {words[0]}. FORMAT=FILE writes a file. Repeatable: "
            f"{meanings}."
        ),
    )


def output_option(
    *words: str, also: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns the option ``-o`` with these words, the first of which is the default.

    ``also`` is another name of it.
    """
    meanings = ", ".join(f"{word} ({MEANINGS[word]})" for word in words)
    names = ("-o", "--output", *filter(None, (also,)))
    return click.option(
        *names,
        "output",
        type=click.Choice(words),
        default=words[0],
        show_default=True,
        help=f"The format: {meanings}.",
    )
