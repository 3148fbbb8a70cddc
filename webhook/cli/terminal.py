"""What goes to the terminal: styled only where it is one, and never a policy's control codes."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAMED_MAX: Final = 3
"""Files that a line about many of them names."""

# Messages come from policies and from the objects they see: an escape sequence among
# them could rewrite what the terminal shows.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """The text with control characters, but for newlines and tabs, written out."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def listed(names: Sequence[str]) -> str:
    """The first few of some names, and how many more there are."""
    more = len(names) - _NAMED_MAX
    return ", ".join(names[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def styled(text: str, **style: bool | str) -> str:
    """The text in a style, where standard output is a terminal."""
    return click.style(text, **style) if sys.stdout.isatty() else text  # type: ignore[arg-type]


def write(text: str) -> None:
    """Write a line to standard output."""
    click.echo(text, color=None)


def complain(text: str) -> None:
    """Write a line to standard error."""
    click.echo(printable(text), err=True)
