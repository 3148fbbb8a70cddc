"""JSON values compared as JSON, and named as Go's messages name their types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.encoding import encode

if TYPE_CHECKING:
    from collections.abc import Hashable


class Missing:
    """What stands where there is no field."""

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
    """A value's type as Go prints it."""
    return _GO_TYPES.get(type(value), "*unversioned.ExternalDataPlaceholder")


def shown(value: object) -> str:
    """A value in a message: as JSON, shortened."""
    kind = type(value)
    text = encode(value).decode() if kind in (dict, list, bool, type(None)) else str(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def are_same(a: Any, b: Any) -> bool:
    """Whether two values are the same JSON: 1 is 1.0, and true is not 1.

    Values that are one object are not looked into: what a mutation left alone costs nothing.
    """
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return {kind, type(b)} == {int, float} and bool(a == b)
    if kind is dict:
        return len(a) == len(b) and all(
            (other := b.get(name, MISSING)) is value or are_same(value, other)
            for name, value in a.items()
        )
    if kind is list:
        return len(a) == len(b) and all(
            one is other or are_same(one, other) for one, other in zip(a, b, strict=True)
        )
    return bool(a == b)


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
