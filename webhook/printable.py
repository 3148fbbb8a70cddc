"""Text for terminals and logs of pipelines: no control code and no command of a policy's gets there."""

from __future__ import annotations

import os
import re
from types import NoneType
from typing import Final

# Messages come from policies and from the objects they see: an escape sequence among them
# could rewrite what the terminal shows, so could what turns the direction of writing, and
# what breaks a line could forge another. No encoding takes a lone surrogate.
_TURNS_OR_BREAKS: Final = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f"
_UNSAFE: Final = re.compile(f"[\x00-\x08\x0b-\x1f{_TURNS_OR_BREAKS}\ud800-\udfff]")
_UNSAFE_IN_JSON: Final = re.compile(f"[{_TURNS_OR_BREAKS}]")


_UNSAFE_IN_XML: Final = re.compile(f"[\r{_TURNS_OR_BREAKS}]")
_COMMAND: Final = re.compile(r"^[^\S\n]*(:(?=:)|#(?=#(?:vso)?\[))", re.MULTILINE)
"""The beginning of a command of a pipeline that reads the output: of GitHub, of Azure DevOps."""


def printable(text: str) -> str:
    """The text with what controls a terminal, but for newlines and tabs, written out.

    Nor does any line of it begin as a command to a pipeline.
    """
    return _COMMAND.sub(
        lambda match: f"{match[0][:-1]}{_written_out(match, 1)}", without_controls(text)
    )


def without_controls(text: str) -> str:
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
    shown = _UNSAFE_IN_XML.sub(lambda match: f"&#{ord(match[0])};", text)
    return _COMMAND.sub(lambda match: f"{match[0][:-1]}&#{ord(match[1])};", shown)


def is_printable(text: str) -> bool:
    """Whether nothing in it turns or breaks lines, and no line is a pipeline's command."""
    return _UNSAFE_IN_JSON.search(text) is None and _COMMAND.search(text) is None


def _written_out(match: re.Match[str], group: int = 0) -> str:
    code = ord(match[group])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


_ADDRESSES: Final = re.compile(r"\('|\[Errno")
"""asyncio lists what it tried in place of what is wrong."""

_OF_OPENSSL: Final = re.compile(r"^\[[A-Z0-9_: ]+\] | \(_ssl\.c:\d+\)$")


def reason_of(error: Exception) -> str:
    """Why something cannot be read, without Python's words for it."""
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
    """Return the type of a JSON value in words."""
    return _TYPES.get(type(value), "a number")


def quantity(number: int, one: str, many: str = "") -> str:
    """So many of something: ``1 policy``, ``2 policies``; ``many`` is else ``one`` and an s."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"
