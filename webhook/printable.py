"""Text for terminals and pipeline logs: without control codes and pipeline commands."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from types import NoneType
from typing import Final

# Messages contain text of policies and reviewed objects. An escape sequence could rewrite the
# terminal, a direction control could reorder text, and a line break could forge a line. No
# encoding accepts a lone surrogate.
_TURNS_OR_BREAKS: Final = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f"
_UNSAFE: Final = re.compile(f"[\x00-\x08\x0b-\x1f{_TURNS_OR_BREAKS}\ud800-\udfff]")
_UNSAFE_IN_JSON: Final = re.compile(f"[{_TURNS_OR_BREAKS}]")


_UNSAFE_IN_XML: Final = re.compile(f"[\r{_TURNS_OR_BREAKS}]")
_COMMAND: Final = re.compile(r"^[^\S\n]*(:(?=:)|#(?=#(?:vso)?\[))", re.MULTILINE)
"""The start of a pipeline command in the output: of GitHub, of Azure DevOps."""


def printable(text: str) -> str:
    """Returns the text with terminal controls escaped, except newlines and tabs.

    No line of it begins as a pipeline command.
    """
    return _COMMAND.sub(
        lambda match: f"{match[0][:-1]}{_written_out(match, 1)}", without_controls(text)
    )


def without_controls(text: str) -> str:
    """Returns the text with terminal controls escaped, except newlines and tabs."""
    return _UNSAFE.sub(_written_out, text)


def printable_name(text: str) -> str:
    """Returns a name or a place on a single line."""
    return printable(text.replace("\n", "\\n").replace("\t", "\\t"))


def one_line(text: str) -> str:
    """Returns the text as one line of words."""
    return printable(" ".join(text.split()))


def printable_json(text: str) -> str:
    """Returns JSON with characters that break or reorder lines escaped: the same values."""
    return _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def printable_xml(text: str) -> str:
    """Returns XML with characters that break or reorder lines as references: the same values."""
    shown = _UNSAFE_IN_XML.sub(lambda match: f"&#{ord(match[0])};", text)
    return _COMMAND.sub(lambda match: f"{match[0][:-1]}&#{ord(match[1])};", shown)


def is_printable(text: str) -> bool:
    """Returns whether the text has no such characters and no pipeline command."""
    return _UNSAFE_IN_JSON.search(text) is None and _COMMAND.search(text) is None


def _written_out(match: re.Match[str], group: int = 0) -> str:
    code = ord(match[group])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


_ADDRESSES: Final = re.compile(r"\('|\[Errno")
"""asyncio's message lists the addresses that it tried instead of the fault."""

_OF_OPENSSL: Final = re.compile(r"^\[[A-Z0-9_: ]+\] | \(_ssl\.c:\d+\)$")


def reason_of(error: Exception) -> str:
    """Returns the reason why a file cannot be read, without Python's wording."""
    if isinstance(error, OSError) and error.strerror:
        reason = error.strerror
        if (error.errno or 0) > 0 and _ADDRESSES.search(reason):
            return os.strerror(error.errno)  # type: ignore[arg-type]
        return _OF_OPENSSL.sub("", reason)
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 at byte {error.start}: save the file as UTF-8"
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


_TYPES: Final = {
    NoneType: "null",
    bool: "a boolean",
    str: "a text",
    list: "a list",
    dict: "an object",
}


def type_of(value: object) -> str:
    """Returns the type of a JSON value in words."""
    return _TYPES.get(type(value), "a number")


def nearest_name(name: str, names: Iterable[str], similarity: float = 0.6) -> str:
    """Returns the name that a misspelt one most probably means; empty if none is similar.

    ``similarity`` is the least ratio of difflib that counts, from 0 to 1.
    """
    from difflib import get_close_matches  # noqa: PLC0415  # for mistakes alone

    return next(iter(get_close_matches(name, list(names), 1, similarity)), "")


def quantity(number: int, singular: str, plural: str = "") -> str:
    """Returns a number with its noun: ``1 policy``, ``2 policies``.

    ``plural`` defaults to ``singular`` with an s.
    """
    return f"{number} {singular if number == 1 else plural or f'{singular}s'}"
