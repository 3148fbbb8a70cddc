"""``in``: the membership test of lists and maps in cel-go (common/types/map.go, decorators.go)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.cel.errors import EvaluationError, InternalError, Unsure
from webhook.cel.run import access
from webhook.cel.run.equality import KEYS, NO_OVERLOAD, is_equal
from webhook.cel.run.inputs import given_of
from webhook.cel.run.values import NOTHING, DoubleKey, Opaque, Uint, entry_of, equals_of, key_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.cel.run.meter import Meter
    from webhook.cel.run.values import Value

_UNHASHABLE: Final = frozenset({"kubernetes.NamedFormat", "kubernetes.Semver"})
"""Values of libraries that are no keys to Go either: they hold slices or functions."""


def is_unhashable(value: Value) -> bool:
    """Returns whether it is a panic of Go's to look for a value in a map."""
    return type(value) is bytes or (type(value) is Opaque and value.type_name in _UNHASHABLE)


def checked_hash(value: Value) -> None:
    """Raises the panic of Go for a value that it cannot hash."""
    if is_unhashable(value):
        raise InternalError(f"runtime error: hash of unhashable type {access.go_type(value)}")


def is_in(item: Value, of: Value) -> bool:
    """Evaluates ``item in of``; raises Unsure for an unhashable item and a non-empty map."""
    if type(of) is list:
        return any(is_equal(item, member) for member in of)
    if type(of) is dict:
        if is_unhashable(item):
            if of:
                raise Unsure
            return False
        return entry_of(of, key_of(item)) is not NOTHING
    raise EvaluationError(NO_OVERLOAD)


def is_member(item: Value, of: Value, variables: dict[Any, Value], meter: Meter) -> bool:
    """Evaluates ``item in of``; raises Go's panic for a map that is not decoded JSON of a variable.

    Such maps have texts as keys and accept no other keys.
    """
    if type(of) is dict and of and is_unhashable(item) and id(of) not in given_of(variables, meter):
        checked_hash(item)
        return False
    try:
        return is_in(item, of)
    except Unsure:
        return False


def constants(values: Iterable[Value]) -> frozenset[Value] | None:
    """Returns constants as a set for look-ups; None if cel-go compares them in turn.

    Each constant is in the set as every number to which it converts without loss. An integer is
    there as its nearest double, too; a double only as an integer of equal value.
    """
    keys: set[Value] = set()
    for value in values:
        if type(value) not in KEYS:
            return None
        key = key_of(value)
        keys |= {key, *equals_of(key)}
        if type(value) is int or type(value) is Uint:
            keys.add(DoubleKey(float(value)))
    return frozenset(keys)


def is_among(item: Value, keys: frozenset[Value]) -> bool:
    """``item in`` a list of constants."""
    if type(item) is str:
        return item in keys
    if type(item) in KEYS:
        return key_of(item) in keys
    checked_hash(item)
    return False


def set_entry(members: dict[Value, Value], at: Value, value: Value) -> None:
    """Sets an entry: the last one of a repeated key stays, of zeros with its sign.

    NOTHING as value removes the entry.
    """
    if value is NOTHING and not members and is_unhashable(at):
        raise InternalError(f"hash of unhashable type: {access.go_type(at)}")
    checked_hash(at)
    key = key_of(at)
    members.pop(key, None)
    if value is not NOTHING:
        members[key] = value
