"""Values as text: JSON as OPA marshals it, and the forms that ``sprintf`` and ``print`` show.

A Rego string may hold bytes that are no UTF-8 (``base64.decode`` makes them).
Each such byte is a lone surrogate here, as Python's ``surrogateescape`` makes
it (:mod:`webhook.golang.strings`); JSON shows U+FFFD, as Go does.
"""

from __future__ import annotations

import json.encoder
import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from webhook.api.names import LONE_SURROGATE
from webhook.golang.strings import quote
from webhook.rego.errors import EvaluationError
from webhook.rego.run.numbers import Numeral, number_text, numeral_argument
from webhook.rego.run.values import (
    RegoObject,
    RegoSet,
    Value,
    ordered_affordable,
    sort_key_of_affordable,
)
from webhook.rego.run.weight import FREE_STEPS, SHORT, afford_text, charge, text_steps
from webhook.slices import sorted_in_slices

MAX_CHARACTERS: Final = 1 << 24
"""Longest string that may be made: ten times the largest object that an API server stores."""


_FEW_CHARACTERS: Final = 2000
"""The length of texts that cost nothing."""


def text_too_large() -> EvaluationError:
    """Returns the error that ends an evaluation with a string beyond :data:`MAX_CHARACTERS`."""
    return EvaluationError(
        "eval_cancel_error", f"evaluation made a string of over {MAX_CHARACTERS} characters"
    )


# --- as a policy shows it --------------------------------------------------------------------


def display(value: Value) -> str:
    """Returns the value as Rego source, as OPA prints it: ``{"a": {1, 2}}``.

    Raises ``eval_cancel_error`` if the text would be too large, as all functions below.
    """
    if type(value) is list and value and type(value[0]) is str and (shown := _short_strings(value)):
        return f"[{shown}]"
    steps = text_steps(value)
    if steps > FREE_STEPS:
        charge(steps)
    return display_of_affordable(value)


def display_of_affordable(value: Value) -> str:
    """Returns the display of a value that has been weighed."""
    kind = type(value)
    if (kind is dict or kind is list) and (shown := _as_json(value)):
        return shown
    return _walked(value)


def _walked(value: Value) -> str:
    """Does :func:`display` part by part, for values that :func:`_as_json` refused."""
    show = _DISPLAYS.get(type(value))
    return show(value) if show is not None else number_text(value)


def printed_text(value: Value) -> str:
    """Returns the text for ``print`` and template strings: a string, or :func:`display`."""
    return value if type(value) is str else display(value)


def argument_text(value: Value) -> str:
    """Returns the text of ``sprintf`` for ``%v``: as ``print``, but a number as Go writes it."""
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return]  # just tested
    if kind is int and -SHORT < value < SHORT:
        return str(value)
    return numeral_argument(value) if kind is Numeral else display(value)


def _refuse(*_: Value) -> Value:
    """Refuses values without a JSON form; :func:`display` writes them."""
    raise TypeError


# CPython's own encoder in C, with the separators of Rego's source and sorted keys: five times as
# fast as a walk here. Absent from another Python, which walks.
_make: Final[Any] = getattr(json.encoder, "c_make_encoder", None)
_encode: Final = (
    _refuse
    if _make is None
    else _make(None, _refuse, json.encoder.encode_basestring, None, ": ", ", ", True, False, True)
)

_FLOAT: Final = re.compile(r"[\[ ]-?(?:[0-9]+[.e]|I)")
"""A text that may be a float in JSON: its text is not always OPA's. A string may look so, too."""


def _as_json(value: Value) -> str:
    """Returns an array or object that Rego's source and JSON write alike; empty for others."""
    try:
        shown = "".join(_encode(value, 0))
    except (TypeError, ValueError):
        return ""
    # JSON has other escapes, and only Rego's source escapes characters that are not printable.
    if "\\" in shown or not shown.isprintable():
        return ""
    # Each float has one of these, and finding them is faster than the expression.
    marked = "." in shown or "e-" in shown or "e+" in shown or "Infinity" in shown
    return "" if marked and _FLOAT.search(shown) else shown


def _display_array(value: list[Value]) -> str:
    return f"[{', '.join(map(_walked, value))}]"


def _plain_strings(values: list[Value]) -> str:
    """Returns strings that need no escapes, quoted and joined; empty for other values."""
    try:
        joined = '", "'.join(values)
    except TypeError:
        return ""
    marks = 2 * (len(values) - 1)
    if values and joined.isprintable() and "\\" not in joined and joined.count('"') == marks:
        return f'"{joined}"'
    return ""


def _short_strings(values: list[Value]) -> str:
    """Returns a few short strings, as messages mostly show; empty for others."""
    try:
        return _plain_strings(values) if sum(map(len, values)) < _FEW_CHARACTERS else ""
    except TypeError:
        return ""


def _sorted_items(value: Any) -> list[tuple[Value, Value]]:
    return sorted(value.items(), key=lambda item: sort_key_of_affordable(item[0]))


def _display_dict(value: dict[str, Value]) -> str:
    names = sorted_in_slices(value)
    return f"{{{', '.join([f'{quote(name)}: {_walked(value[name])}' for name in names])}}}"


def _display_object(value: RegoObject) -> str:
    shown = [f"{_walked(name)}: {_walked(item)}" for name, item in _sorted_items(value)]
    return f"{{{', '.join(shown)}}}"


def _display_set(value: RegoSet) -> str:
    if not len(value):
        return "set()"
    members = ordered_affordable(value)
    return f"{{{_plain_strings(members) or ', '.join(map(_walked, members))}}}"


_DISPLAYS: Final[dict[type, Callable[[Any], str]]] = {
    type(None): lambda _: "null",
    bool: lambda value: "true" if value else "false",
    str: quote,
    list: _display_array,
    dict: _display_dict,
    RegoObject: _display_object,
    RegoSet: _display_set,
}


# --- as JSON ---------------------------------------------------------------------------------

# The characters that Go's encoding/json escapes in strings: control characters, and those that are
# syntax in HTML or JavaScript. Bytes that are no UTF-8 become U+FFFD.
_JSON_ESCAPES: Final = re.compile('[\x00-\x1f"\\\\<>&\u2028\u2029\ud800-\udfff]')
_JSON_NAMED: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}


def _json_escape(match: re.Match[str]) -> str:
    character = match[0]
    if "\ud800" <= character <= "\udfff":
        return "\\ufffd"
    return _JSON_NAMED.get(character) or f"\\u{ord(character):04x}"


def json_string(text: str) -> str:
    """Returns the string in JSON, as Go writes it."""
    return f'"{_JSON_ESCAPES.sub(_json_escape, text)}"'


def json_text(value: Value) -> str:
    """Returns the value as OPA's JSON: keys sorted, sets as sorted arrays."""
    afford_text(value)
    return json_of_affordable(value)


def json_of_affordable(value: Value) -> str:
    """Returns the JSON of a value that has been weighed."""
    parts: list[str] = []
    _write_json(value, parts.append)
    return "".join(parts)


def json_items(value: Value) -> list[tuple[str, Value]]:
    """Returns an object's properties as JSON has them: keys as text, sorted."""
    if type(value) is dict:
        return sorted_in_slices(value.items(), _name)
    named = {k if type(k) is str else json_of_affordable(k): v for k, v in _sorted_items(value)}
    return sorted_in_slices(named.items(), _name)


def _name(item: tuple[str, Value]) -> str:
    return item[0]


def _write_json(value: Value, write: Callable[[str], Any]) -> None:
    kind = type(value)
    if kind is str:
        write(json_string(value))
    elif kind is list:
        _write_array(value, write)
    elif kind is dict or kind is RegoObject:
        separator = "{"
        for name, item in json_items(value):
            write(f"{separator}{json_string(name)}:")
            _write_json(item, write)
            separator = ","
        write("}" if separator == "," else "{}")
    elif kind is RegoSet:
        _write_array(ordered_affordable(value), write)
    elif value is None:
        write("null")
    elif kind is bool:
        write("true" if value else "false")
    else:
        write(number_text(value))


def _write_array(values: Iterable[Value], write: Callable[[str], Any]) -> None:
    separator = "["
    for item in values:
        write(separator)
        _write_json(item, write)
        separator = ","
    write("]" if separator == "," else "[]")


def json_indented(value: Value, prefix: str, indent: str) -> str:
    """The value as Go's ``json.MarshalIndent`` lays it out; the first line has no prefix."""
    afford_text(value)
    return laid_out(value, prefix, indent)


def laid_out(value: Value, prefix: str, indent: str) -> str:
    """Does :func:`json_indented` without a charge, for a command's own results."""
    return _indented(value, prefix, indent, 0)


def _indented(value: Value, prefix: str, indent: str, depth: int) -> str:
    kind = type(value)
    if kind is RegoSet:
        value, kind = ordered_affordable(value), list
    if kind is list and value:
        lines = [_indented(item, prefix, indent, depth + 1) for item in value]
        opening, closing = "[", "]"
    elif kind in (dict, RegoObject) and len(value):
        lines = [
            f"{json_string(name)}: {_indented(item, prefix, indent, depth + 1)}"
            for name, item in json_items(value)
        ]
        opening, closing = "{", "}"
    else:
        return json_of_affordable(value)
    line = f"\n{prefix}{indent * (depth + 1)}"
    return f"{opening}{line}{f',{line}'.join(lines)}\n{prefix}{indent * depth}{closing}"


class OrderedFields(dict[str, Any]):
    """An object whose fields are written in the order of insertion."""


def indented(value: Any, prefix: str = "") -> str:
    """Returns a command's own result, indented as by Go's encoder.

    Fields of :class:`OrderedFields` keep their order; fields of objects within are sorted by key.
    """
    inner = f"{prefix}  "
    if isinstance(value, OrderedFields) and value:
        lines = [
            f"{json_string(name)}: {indented(member, inner)}" for name, member in value.items()
        ]
        opening, closing = "{", "}"
    elif isinstance(value, list) and any(isinstance(item, OrderedFields | list) for item in value):
        lines = [indented(item, inner) for item in value]
        opening, closing = "[", "]"
    elif isinstance(value, OrderedFields):
        return "{}"
    else:
        return laid_out(value, prefix, "  ")
    line = f"\n{inner}"
    return f"{opening}{line}{f',{line}'.join(lines)}\n{prefix}{closing}"


def to_json(value: Value) -> Any:
    """Returns the value in JSON's terms: sets as sorted arrays, non-string keys as their JSON text.

    Values that an encoder would refuse are replaced: a number that keeps its text by the nearest
    float, bytes that are not UTF-8 by U+FFFD, as in Go.
    """
    if type(value) is not str:
        afford_text(value)
    return _to_json(value)


def _to_json(value: Value) -> Any:
    kind = type(value)
    if kind is str:
        return value if value.isascii() else LONE_SURROGATE.sub("\ufffd", value)
    if kind is list:
        return [_to_json(item) for item in value]
    if kind is dict:
        return {name: _to_json(item) for name, item in value.items()}
    if kind is RegoSet:
        return [_to_json(item) for item in ordered_affordable(value)]
    if kind is RegoObject:
        return {
            name if type(name) is str else json_of_affordable(name): _to_json(item)
            for name, item in value.items()
        }
    if isinstance(value, float) and kind is not float:
        return int(value) if value.is_integer() else float(value)
    return value
