"""What the fast form of an expression calls: exact whenever it returns, and paid for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.cel.errors import EvaluationError, UnsureError
from webhook.cel.run import access, equality
from webhook.cel.run.arithmetic import add
from webhook.cel.run.values import NOTHING, Optional, from_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webhook.cel.run.meter import Meter
    from webhook.cel.run.values import Value
    from webhook.rego.run.patterns import Pattern

AT_ONCE: Final = 500
"""Turns of a loop that are paid for together; more are paid for one by one, with a clock looked at."""

_SIZED: Final = frozenset({str, bytes, list, dict})


def plain_item(of: Value, key: Value) -> Value:
    """``of[key]`` of what is no optional."""
    if type(of) is Optional:
        raise UnsureError
    return access.item(of, key)


def plain_optional_item(of: Value, key: Value) -> Optional:
    """``of[?key]`` of what is no optional."""
    if type(of) is Optional:
        raise UnsureError
    return access.optional_item(of, key)


def items(meter: Meter, of: Value, cost: int) -> Iterable[Value]:
    """What a macro of one variable goes through, each turn at a cost."""
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
    """What a macro of two variables goes through, likewise."""
    return _paid(meter, [(from_key(key), value) for key, value in access.pairs_of(of)], cost)


def _paid(meter: Meter, of: list[Any], cost: int) -> Iterable[Any]:
    if len(of) > AT_ONCE:
        return _one_by_one(meter, of, cost)
    meter.charge(len(of) * cost)
    return of


def _one_by_one(meter: Meter, of: list[Any], cost: int) -> Iterator[Any]:
    for one in of:
        meter.charge(cost)
        yield one


def equals(meter: Meter, a: Value, b: Value) -> bool:
    """``a == b`` of anything."""
    if type(a) in _SIZED:
        meter.charge(len(a) // 10)
    try:
        return equality.equal(a, b)
    except EvaluationError:
        raise UnsureError from None  # an inequality is none


def member(meter: Meter, item: Value, of: Value) -> bool:
    """``item in of``."""
    if type(of) is list:
        meter.charge(len(of))
    return equality.is_in(item, of)


def added(meter: Meter, a: Value, b: Value) -> Value:
    """``a + b``."""
    found = add(a, b)
    return meter.made(found) if type(found) in _SIZED else found


def or_value(of: Value, other: Value) -> Value:
    """``of.orValue(other)``, for another that is known."""
    if type(of) is not Optional:
        raise UnsureError
    return other if of.value is NOTHING else of.value


def found_in(meter: Meter, pattern: Pattern, text: Value) -> bool:
    """Whether some part of a text matches; raises whatever comes for what is no text."""
    meter.charge(1 + len(text) // 10)
    return pattern.found_in(text)
