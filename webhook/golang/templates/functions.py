"""The values of Go's text/template, and its functions.

Numbers of the data are Go's ``json.Number``, a string type: they print as written, have a length,
and compare with strings only.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote_from_bytes

from webhook.golang.format import BigInt, format_text, shown
from webhook.golang.strings import from_utf8, utf8

PRINTED_MAX: Final = 1 << 24
"""The longest result of a ``printf``, in characters: larger widths would fill the memory."""


class JsonNumber(str):
    """A number of the data, as its text."""

    __slots__ = ()
    go_type = "json.Number"


class _Nothing:
    """An absent value: a missing key, or the result of nil."""

    __slots__ = ()


NOTHING: Final = _Nothing()


def go_type(value: Any) -> str:
    """Returns the name of the value's type in Go."""
    if value is None or value is NOTHING:
        return "<nil>"
    if isinstance(value, JsonNumber):
        return "json.Number"
    names = {bool: "bool", int: "int", float: "float64", str: "string", list: "[]interface {}"}
    return names.get(type(value), "map[string]interface {}")


def show(value: Any) -> str:
    """Returns the text of Go's ``%v``."""
    return "<no value>" if value is NOTHING else shown(value)


def true(value: Any) -> bool:
    """Returns whether ``if`` takes the value as true: it is not empty, zero or nil."""
    if value is None or value is NOTHING:
        return False
    return len(value) > 0 if isinstance(value, str | list | dict) else bool(value)


# --- functions -------------------------------------------------------------------------------


class CallError(Exception):
    """The error of a function."""


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    return {int: "int", float: "float"}.get(type(value), "")


def _incompatible(a: Any, b: Any) -> CallError:
    return CallError(f"incompatible types for comparison: {go_type(a)} and {go_type(b)}")


def _equal(a: Any, *others: Any) -> bool:
    if not others:
        raise CallError("missing argument for comparison")
    for b in others:
        nil = [x is None or x is NOTHING for x in (a, b)]
        if _kind(a) != _kind(b):
            if not any(nil):
                raise _incompatible(a, b)
        elif any(nil):
            if all(nil):
                return True
        elif not _kind(a):
            raise CallError(f"non-comparable type {show(a)}: {go_type(a)}")
        elif a == b:
            return True
    return False


def _less(a: Any, b: Any) -> bool:
    if not _kind(a) or not _kind(b):
        raise CallError("invalid type for comparison")
    if _kind(a) != _kind(b):
        raise _incompatible(a, b)
    if _kind(a) == "bool":
        raise CallError("invalid type for comparison")
    return bool(a < b)


def _length(value: Any) -> int:
    if isinstance(value, str):
        return len(utf8(value))
    if isinstance(value, list | dict):
        return len(value)
    if value is None or value is NOTHING:
        raise CallError("len of nil pointer")
    raise CallError(f"len of type {go_type(value)}")


def _position(index: Any, size: int) -> int:
    if index is None or index is NOTHING:
        raise CallError("cannot index slice/array with nil")
    if _kind(index) != "int":
        raise CallError(f"cannot index slice/array with type {go_type(index)}")
    if not 0 <= index <= size:
        raise CallError(f"index out of range: {index}")
    return int(index)


def _index(value: Any, *indexes: Any) -> Any:
    if value is None or value is NOTHING:
        raise CallError("index of untyped nil")
    for index in indexes:
        if isinstance(value, list | str):
            items = utf8(value) if isinstance(value, str) else value
            at = _position(index, len(items))
            if at == len(items):
                raise CallError(f"index out of range: {index}")
            value = items[at]
        elif isinstance(value, dict):
            if not isinstance(index, str) or isinstance(index, JsonNumber):
                raise CallError(f"value has type {go_type(index)}; should be string")
            value = value.get(index)
        elif value is None:
            raise CallError("index of nil pointer")
        else:
            raise CallError(f"can't index item of type {go_type(value)}")
    return value


def _slice(value: Any, *indexes: Any) -> Any:
    if value is None or value is NOTHING:
        raise CallError("slice of untyped nil")
    if not isinstance(value, list | str):
        raise CallError(f"can't slice item of type {go_type(value)}")
    if len(indexes) > 3:
        raise CallError(f"too many slice indexes: {len(indexes)}")
    if isinstance(value, str) and len(indexes) == 3:
        raise CallError("cannot 3-index slice a string")
    items = utf8(value) if isinstance(value, str) else value
    places = [_position(index, len(items)) for index in indexes]
    start, stop = [*places, *(0, len(items))[len(places) :]][:2]
    if start > stop:
        raise CallError(f"invalid slice index: {start} > {stop}")
    part = items[start:stop]
    return from_utf8(part) if isinstance(part, bytes) else part


def _joined(*values: Any) -> str:
    """Returns Go's ``Sprint``: a space between two values if neither is a string."""
    shown = ""
    for at, value in enumerate(values):
        both = at and type(value) is not str and type(values[at - 1]) is not str
        shown += (" " if both else "") + show(value)
    return shown


def _printf(template: str, *values: Any) -> str:
    if not isinstance(template, str):
        raise CallError(f"wrong type for value; expected string; got {go_type(template)}")
    return format_text(template, [_printed(value) for value in values], PRINTED_MAX)


def _printed(value: Any) -> str | int | float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return show(value)
    return BigInt(value) if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63 else value


def _escape_html(*values: Any) -> str:
    text = html.escape(_joined(*values), quote=False)
    return text.replace('"', "&#34;").replace("'", "&#39;").replace("\0", "\ufffd")


_JS: Final = {
    "\\": "\\\\",
    "'": "\\'",
    '"': '\\"',
    "<": "\\u003C",
    ">": "\\u003E",
    "&": "\\u0026",
    "=": "\\u003D",
}


def _escape_js(*values: Any) -> str:
    shown = []
    for character in _joined(*values):
        if character in _JS:
            shown.append(_JS[character])
        elif character.isprintable():
            shown.append(character)
        else:
            shown.append(f"\\u{ord(character):04X}")
    return "".join(shown)


def _escape_query(*values: Any) -> str:
    return quote_from_bytes(utf8(_joined(*values)), safe=" ").replace(" ", "+")


def _call(function: Any, *_: Any) -> Any:
    raise CallError(
        "call of nil"
        if function is None
        else f"non-function {show(function)} of type {go_type(function)}"
    )


FUNCTIONS: Final[dict[str, tuple[int, int | None, Callable[..., Any]]]] = {
    "not": (1, 1, lambda x: not true(x)),
    "len": (1, 1, _length),
    "index": (1, None, _index),
    "slice": (1, None, _slice),
    "print": (0, None, _joined),
    "println": (0, None, lambda *values: " ".join(map(show, values)) + "\n"),
    "printf": (1, None, _printf),
    "html": (0, None, _escape_html),
    "js": (0, None, _escape_js),
    "urlquery": (0, None, _escape_query),
    "eq": (1, None, _equal),
    "ne": (2, 2, lambda a, b: not _equal(a, b)),
    "lt": (2, 2, _less),
    "le": (2, 2, lambda a, b: _less(a, b) or _equal(a, b)),
    "gt": (2, 2, lambda a, b: not (_less(a, b) or _equal(a, b))),
    "ge": (2, 2, lambda a, b: not _less(a, b)),
    "call": (1, None, _call),
}
