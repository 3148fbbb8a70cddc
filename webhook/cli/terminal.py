"""What goes to the terminal: styled only where it is one, and never a policy's control codes."""

from __future__ import annotations

import re
import sys
from typing import Final

import click

# Messages come from policies and from the objects they see: an escape sequence among
# them could rewrite what the terminal shows.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """The text with control characters, but for newlines and tabs, written out."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def styled(text: str, **style: bool | str) -> str:
    """The text in a style, where standard output is a terminal."""
    return click.style(text, **style) if sys.stdout.isatty() else text  # type: ignore[arg-type]


def write(text: str) -> None:
    """Write a line to standard output."""
    click.echo(text, color=None)


def complain(text: str) -> None:
    """Write a line to standard error."""
    click.echo(printable(text), err=True)
