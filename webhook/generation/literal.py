"""Writes JSON values as CEL literals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

_ESCAPED: Final = {'"': '\\"', "\\": "\\\\"}
_PRINTABLE: Final = 0x20
_DELETE: Final = 0x7F
_INT_END: Final = 1 << 63
"""Integers of CEL have 64 bits."""


def string(text: str) -> str:
    """Returns a text as a literal; no character of it can end the literal or begin an escape."""
    return '"' + "".join(map(_character, text)) + '"'


def _character(character: str) -> str:
    code = ord(character)
    if code < _PRINTABLE or code == _DELETE:
        return f"\\u{code:04x}"
    return _ESCAPED.get(character, character)


def strings(texts: Sequence[str]) -> str:
    """Returns a list of texts as a literal."""
    return f"[{', '.join(map(string, texts))}]"


def literal(value: Any) -> str:
    """Returns any value as a literal of type dyn, as lists and maps may mix types.

    A whole number beyond 64 bits is a double, as the API server decodes it.
    """
    return f"dyn({_bare(value)})"


def _bare(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value) if -_INT_END <= value < _INT_END else repr(float(value))
        case float():
            return repr(value)
        case str():
            return string(value)
        case list():
            return f"[{', '.join(map(literal, value))}]"
        case dict():
            entries = (f"{string(name)}: {literal(item)}" for name, item in value.items())
            return f"{{{', '.join(entries)}}}"
    raise TypeError(f"no JSON value: {type(value).__name__}")
