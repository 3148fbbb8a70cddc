"""Runtime of the fast form of expressions: exact whenever it returns, and paid for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.cel.errors import EvaluationError, Unsure
from webhook.cel.run import access, equality
from webhook.cel.run.arithmetic import add
from webhook.cel.run.membership import is_in
from webhook.cel.run.values import NOTHING, Lost, Opaque, Optional, Value, from_key, held

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webhook.cel.run.meter import Meter
    from webhook.rego.run.patterns import Pattern

AT_ONCE: Final = 500
"""Turns of a loop that are paid for together; more are paid for one by one, with a clock looked at."""

CHEAP: Final = 100
"""The characters of a text that are free, apart from the cost of its node."""

_LOOKED_INTO: Final = frozenset({list, Optional, Opaque})
"""Types besides maps that may have items or fields."""

_DECODED: Final = frozenset({dict, list, str, bool, int, float, type(None)})
_SIZED: Final = frozenset({str, bytes, list, dict})


def settled(value: Value) -> Value:
    """Returns a value that is no optional."""
    if type(value) is Optional:
        raise Unsure
    return value


def plain_item(of: Value, key: Value) -> Value:
    """``of[key]`` of a value that is no optional."""
    if type(of) is Optional:
        raise Unsure
    return access.item(of, key)


def plain_optional_item(of: Value, key: Value) -> Optional:
    """``of[?key]`` of a value that is no optional."""
    if type(of) is Optional:
        raise Unsure
    return access.optional_item(of, key)


def items(meter: Meter, of: Value, cost: int) -> Iterable[Value]:
    """Yields the items of a macro of one variable, and charges for each item."""
    if type(of) is list:
        count = len(of)
        if count > AT_ONCE:
            return _one_by_one(meter, of, cost)
        meter.left -= count * cost
        if meter.left < meter.next_look:
            meter.check()
        return of
    return _paid(meter, [from_key(key) for key in access.items_of(of)], cost)


def pairs(meter: Meter, of: Value, cost: int) -> Iterable[tuple[Value, Value]]:
    """Yields the pairs of a macro of two variables, each at a cost."""
    return _paid(meter, [(from_key(key), value) for key, value in access.pairs_of(of)], cost)


def _paid(meter: Meter, of: list[Any], cost: int) -> Iterable[Any]:
    if len(of) > AT_ONCE:
        return _one_by_one(meter, of, cost)
    meter.charge(len(of) * cost)
    return of


def _one_by_one(meter: Meter, of: list[Any], cost: int) -> Iterator[Any]:
    for item in of:
        meter.charge(cost)
        yield item


def equals(meter: Meter, a: Value, b: Value) -> bool:
    """``a == b`` of anything."""
    if type(a) is str and len(a) < CHEAP:
        return type(b) is str and a == b
    if type(a) in _SIZED:
        meter.charge(len(a) // 10)
    try:
        return equality.equal(a, b)
    except EvaluationError:
        raise Unsure from None  # an inequality is none


def member(meter: Meter, item: Value, of: Value) -> bool:
    """``item in of``."""
    if type(item) is str:  # which is equal to nothing but itself, here as there
        if type(of) is dict:
            return item in of
        if type(of) is list:
            if len(of) > 10:
                meter.charge(len(of))
            return item in of
    if type(of) is list:
        meter.charge(len(of))
    return is_in(item, of)


def added(meter: Meter, a: Value, b: Value) -> Value:
    """``a + b``."""
    if type(a) is str and type(b) is str and len(a) + len(b) < CHEAP:
        return a + b
    total = add(a, b)
    return meter.charge_size(total) if type(total) in _SIZED else total


def at_path(of: Value, keys: tuple[str, ...], other: Value) -> Value:
    """``of.?a.?b.orValue(other)``, for another that is known, where no optional is on the way."""
    for key in keys:
        if type(of) is dict:
            of = of.get(key, NOTHING)
            if of is NOTHING:
                return other
        elif type(of) in _LOOKED_INTO:
            raise Unsure
        else:
            return other
    return of


def is_at_path(of: Value, keys: tuple[str, ...]) -> bool:
    """``of.?a.?b.hasValue()``, where no optional is on the way."""
    value = at_path(of, keys, NOTHING)
    if type(value) is Lost:
        raise Unsure
    return value is not NOTHING


def or_value(of: Value, other: Value) -> Value:
    """``of.orValue(other)`` for a known ``other``; a value that is no optional is returned."""
    if type(of) is not Optional:
        if type(of) in _DECODED:
            return of
        raise Unsure
    return other if of.value is NOTHING else held(of)


def found_in(meter: Meter, pattern: Pattern, text: Value) -> bool:
    """Returns whether some part of a text matches; raises an exception for other values."""
    meter.charge(1 + len(text) // 10)
    return pattern.found_in(text)


def summed(meter: Meter, *parts: Value) -> Value:
    """``a + b + c``; raises an exception if they cannot be added."""
    of = type(parts[0])
    if of is str:
        return meter.charge_size("".join(parts))
    if of is list:
        items: list[Value] = []
        for part in parts:
            if type(part) is not list:
                raise Unsure
            items += part
        return meter.charge_size(items)
    total = parts[0]
    for part in parts[1:]:
        total = added(meter, total, part)
    return total
