"""What goes to the terminal: styled only where it is one, and never a policy's control codes."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAMED_MAX: Final = 3
"""Files that a line about many of them names."""

# Messages come from policies and from the objects they see: an escape sequence among them
# could rewrite what the terminal shows, so could what turns the direction of writing, and
# what breaks a line could forge another. No encoding takes a lone surrogate.
_TURNS_OR_BREAKS: Final = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f"
_UNSAFE: Final = re.compile(f"[\x00-\x08\x0b-\x1f{_TURNS_OR_BREAKS}\ud800-\udfff]")
_UNSAFE_IN_JSON: Final = re.compile(f"[{_TURNS_OR_BREAKS}]")


def printable(text: str) -> str:
    """The text with what controls a terminal, but for newlines and tabs, written out."""
    return _UNSAFE.sub(_written_out, text)


def printable_name(text: str) -> str:
    """A name, or a place, in a line of its own: no name makes a second line."""
    return printable(text.replace("\n", "\\n").replace("\t", "\\t"))


def one_line(text: str) -> str:
    """The text as one line of words."""
    return printable(" ".join(text.split()))


def printable_json(text: str) -> str:
    """JSON with what turns or breaks lines escaped: the same values."""
    return _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def printable_xml(text: str) -> str:
    """XML with what turns or breaks lines as references: the same values."""
    return _UNSAFE_IN_JSON.sub(lambda match: f"&#{ord(match[0])};", text)


def is_printable(text: str) -> bool:
    """Whether nothing in it turns or breaks lines."""
    return _UNSAFE_IN_JSON.search(text) is None


def _written_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def listed(names: Sequence[str]) -> str:
    """The first few of some names, and how many more there are."""
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
    """The text in a style, where standard output is coloured."""
    return click.style(text, **style) if has_colours() else text  # type: ignore[arg-type]


def write(text: str) -> None:
    """Write a line to standard output."""
    click.echo(text, color=has_colours() or None)


def complain(text: str) -> None:
    """Write a line to standard error."""
    click.echo(printable(text), err=True)
