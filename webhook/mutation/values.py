"""JSON values compared as JSON, and named as Go's messages name their types."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from webhook.api.encoding import encode
from webhook.mutation.pace import LOOK_ITEMS, UNBOUNDED, Pace


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


def are_same(a: Any, b: Any, pace: Pace = UNBOUNDED) -> bool:
    """Whether two values are the same JSON: 1 is 1.0, and true is not 1.

    Identical Python objects are not compared further, so parts unchanged by a mutation cost no
    time. Raises :class:`~webhook.mutation.errors.OutOfTime`.
    """
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return {kind, type(b)} == {int, float} and bool(a == b)
    if kind is dict:
        return len(a) == len(b) and _are_same_fields(a, b, pace)
    if kind is list:
        return len(a) == len(b) and _are_same_items(a, b, pace)
    return bool(a == b)


def _are_same_fields(a: dict[str, Any], b: dict[str, Any], pace: Pace) -> bool:
    for place, (name, value) in enumerate(a.items()):
        if place & LOOK_ITEMS == LOOK_ITEMS:
            pace.look()
        if (other := b.get(name, MISSING)) is not value and not are_same(value, other, pace):
            return False
    return True


def _are_same_items(a: list[Any], b: list[Any], pace: Pace) -> bool:
    for place, value in enumerate(a):
        if place & LOOK_ITEMS == LOOK_ITEMS:
            pace.look()
        if value is not b[place] and not are_same(value, b[place], pace):
            return False
    return True


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
