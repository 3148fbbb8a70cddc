"""Writes to the terminal: styled on terminals only, and without control codes of policies."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, Final, Self

import click

from webhook.cli import exit_codes
from webhook.printable import printable

_NAMED_MAX: Final = 3
"""The most files named in one line."""


def listed(names: Sequence[str]) -> str:
    """Returns the first names, and how many more there are."""
    more = len(names) - _NAMED_MAX
    return ", ".join(names[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def has_colours() -> bool:
    """Whether standard output is coloured.

    NO_COLOR turns colours off and FORCE_COLOR on, as for Python itself; else a terminal has them.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "") not in ("", "0"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def styled(text: str, **style: bool | str) -> str:
    """Returns the styled text, if standard output is coloured."""
    return click.style(text, **style) if has_colours() else text  # type: ignore[arg-type]


def write(text: str) -> None:
    """Writes a line to standard output."""
    click.echo(text, color=has_colours() or None)


def complain(text: str) -> None:
    """Writes a line to standard error."""
    click.echo(printable(text), err=True)


class NoResult(click.ClickException):
    """The reasons why a command has no result, one a line: it prints them and exits by its code."""

    exit_code = exit_codes.UNKNOWN

    def __init__(self, *lines: str) -> None:
        super().__init__("; ".join(lines))
        self.lines = lines

    def exiting(self, code: int) -> Self:
        """Returns this error with another exit code."""
        self.exit_code = code  # type: ignore[misc]  # click declares it for whole classes
        return self

    def show(self, file: Any = None) -> None:
        """Writes the reasons to standard error."""
        del file
        for line in self.lines:
            complain(line)
