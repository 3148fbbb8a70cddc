"""Writes to the terminal: styled on terminals only, and without control codes of policies."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Final

import click

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
