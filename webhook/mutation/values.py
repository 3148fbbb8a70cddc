"""JSON values as keys of look-ups, and as Go's messages show them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from webhook.api.encoding import encode


class Missing:
    """The value of a field that is missing."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing()

_GO_TYPES: Final = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    int: "int64",
    float: "float64",
    bool: "bool",
    type(None): "<nil>",
}


def go_type(value: object) -> str:
    """Returns a value's type as Go prints it."""
    return _GO_TYPES.get(type(value), "*unversioned.ExternalDataPlaceholder")


def shown(value: object) -> str:
    """Returns a value in a message: as JSON, shortened."""
    kind = type(value)
    text = encode(value).decode() if kind in (dict, list, bool, type(None)) else str(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def key_of(value: Any) -> Hashable:
    """Something to look a value up by: equal for values that are the same JSON."""
    kind = type(value)
    if kind is dict:
        return ("object", frozenset((name, key_of(item)) for name, item in value.items()))
    if kind is list:
        return ("list", tuple(key_of(item) for item in value))
    if kind is bool:
        return ("bool", value)
    key: Hashable = value
    return key
