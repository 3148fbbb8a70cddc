"""List functions: Kubernetes' own, and cel-go's extensions (ext/lists.go, ext/sets.go)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from webhook.cel.errors import EvaluationError
from webhook.cel.library.ordering import SHORT, go_sorted
from webhook.cel.library.registry import form
from webhook.cel.run.arithmetic import add
from webhook.cel.run.equality import NO_OVERLOAD, ORDERED, compared, is_equal
from webhook.cel.run.meter import Meter
from webhook.cel.run.values import NONE, Duration, Lost, Optional, Uint, Value, there


def _order(first: Value, other: Value) -> int:
    """Compares two items; items without an order count as equal, so they keep their places."""
    try:
        return compared("", first, other)
    except EvaluationError:
        return 0


_ADDED: Final = frozenset({int, Uint, float, Duration})


def _check_first(name: str, items: list[Value], types: frozenset[type]) -> None:
    """Raises unless the first item has one of the types; the other items select no overload."""
    if items and type(items[0]) not in types:
        raise EvaluationError(f"{NO_OVERLOAD}: {name}(list)")


@form("isSorted", list, charges=True)
def is_sorted(meter: Meter, items: list[Value]) -> bool:
    """Returns whether no item is less than the one before; different types count as equal."""
    _check_first("isSorted", items, ORDERED)
    meter.charge(len(items))
    for at, item in enumerate(items):
        if type(item) not in ORDERED:
            raise EvaluationError(item.text if type(item) is Lost else NO_OVERLOAD)
        try:
            if at and compared("", items[at - 1], item) > 0:
                return False
        except EvaluationError:
            continue
    return True


@form("sum", list, charges=True)
def total(meter: Meter, items: list[Value]) -> Value:
    """Returns the sum; 0 for an empty list."""
    _check_first("sum", items, _ADDED)
    meter.charge(len(items))
    if not items:
        return 0
    total = items[0] + 0.0 if type(items[0]) is float else items[0]  # turns -0.0 into 0.0
    for item in items[1:]:
        total = add(total, there(item))
    return total


@form("min", list, charges=True)
def least(meter: Meter, items: list[Value]) -> Value:
    """Returns the least item."""
    return _extreme(meter, items, "min", 1)


@form("max", list, charges=True)
def greatest(meter: Meter, items: list[Value]) -> Value:
    """Returns the greatest item."""
    return _extreme(meter, items, "max", -1)


def _extreme(meter: Meter, items: list[Value], name: str, order: int) -> Value:
    if not items:
        raise EvaluationError(f"{name} called on empty list")
    _check_first(name, items, ORDERED)
    meter.charge(len(items))
    extreme = items[0]
    for item in items[1:]:
        if type(item) not in ORDERED:
            raise EvaluationError(item.text if type(item) is Lost else NO_OVERLOAD)
        if _order(extreme, item) == order:
            extreme = item
    return extreme


@form("indexOf", list, None, charges=True)
def index_of(meter: Meter, items: list[Value], item: Value) -> int:
    """Returns the index of the first equal item; -1 if missing."""
    meter.charge(len(items))
    return next((at for at, member in enumerate(items) if is_equal(member, item)), -1)


@form("lastIndexOf", list, None, charges=True)
def last_index_of(meter: Meter, items: list[Value], item: Value) -> int:
    """Returns the index of the last equal item; -1 if missing."""
    meter.charge(len(items))
    return next((at for at in range(len(items) - 1, -1, -1) if is_equal(items[at], item)), -1)


@form("includes", None, None, charges=True)
def includes(meter: Meter, target: Value, item: Value) -> bool:
    """Returns whether a list has an item, or another value equals it (Kubernetes 1.37)."""
    if type(target) is not list:
        return is_equal(target, item)
    meter.charge(len(target))
    return any(is_equal(member, item) for member in target)


@form("first", list)
def first(items: list[Value]) -> Optional:
    """Returns the first item as an optional."""
    return Optional(items[0]) if items else NONE


@form("last", list)
def last(items: list[Value]) -> Optional:
    """Returns the last item as an optional."""
    return Optional(items[-1]) if items else NONE


@form("reverse", list)
def reverse(items: list[Value]) -> list[Value]:
    """Returns the items in reverse order."""
    return items[::-1]


@form("slice", list, int, int)
def slice_(items: list[Value], start: int, end: int) -> list[Value]:
    """Returns the items from ``start`` to before ``end``."""
    message = f"cannot slice({start}, {end})"
    if start < 0 or end < 0:
        raise EvaluationError(f"{message}, negative indexes not supported")
    if start > end:
        raise EvaluationError(f"{message}, start index must be less than or equal to end index")
    if len(items) < end:
        raise EvaluationError(f"{message}, list is length {len(items)}")
    return items[start:end]


@form("flatten", list, charges=True)
@form("flatten", list, int, charges=True)
def flatten(meter: Meter, items: list[Value], depth: int = 1) -> list[Value]:
    """Returns the items with nested lists replaced by their items, down to ``depth`` levels."""
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    meter.charge(len(items))
    flat: list[Value] = []
    for item in items:
        if type(item) is list and depth:
            flat += flatten(meter, item, depth - 1)
        else:
            flat.append(item)
    return flat


@form("distinct", list, charges=True)
def distinct(meter: Meter, items: list[Value]) -> list[Value]:
    """Returns the items without duplicates."""
    distinct_items: list[Value] = []
    for item in items:
        meter.charge(len(distinct_items) + 1)
        if not any(is_equal(item, earlier) for earlier in distinct_items):
            distinct_items.append(item)
    return distinct_items


@form("lists.range", int, charges=True)
def range_(meter: Meter, count: int) -> list[int]:
    """Returns the numbers from 0 to before ``count``."""
    meter.charge(max(count, 0))
    return list(range(count))


@form("sort", list, charges=True)
def sort(meter: Meter, items: list[Value]) -> list[Value]:
    """Returns the items in ascending order."""
    return sort_by(meter, items, items)


@form("@sortByAssociatedKeys", list, list, charges=True)
def sort_by(meter: Meter, items: list[Value], keys: Sequence[Value]) -> list[Value]:
    """Returns the items in the order of their keys; equal keys as Go's ``sort.Slice`` leaves them."""
    if not items:
        return items
    meter.charge(len(items) * 2)
    of = type(keys[0])
    if of not in ORDERED:
        raise EvaluationError("list elements must be comparable")
    if len(keys) > 1 and any(type(key) is not of for key in keys):
        raise EvaluationError("list elements must have the same type")
    places = list(range(len(items)))
    has_order = of is not float or not any(map(math.isnan, keys))
    if has_order and (len(items) <= SHORT or len(set(keys)) == len(items)):
        places.sort(key=keys.__getitem__)
    else:
        places = go_sorted(places, lambda first, other: keys[first] < keys[other], meter.charge)
    return [items[place] for place in places]


def _has_all(items: list[Value], members: list[Value]) -> bool:
    return all(any(is_equal(member, item) for item in items) for member in members)


@form("sets.contains", list, list, charges=True)
def sets_contains(meter: Meter, items: list[Value], members: list[Value]) -> bool:
    """Returns whether a list has all items of another."""
    meter.charge(len(items) * len(members))
    return _has_all(items, members)


@form("sets.equivalent", list, list, charges=True)
def sets_equivalent(meter: Meter, first: list[Value], other: list[Value]) -> bool:
    """Returns whether two lists have the same items."""
    meter.charge(2 * len(first) * len(other))
    return _has_all(first, other) and _has_all(other, first)


@form("sets.intersects", list, list, charges=True)
def sets_intersects(meter: Meter, first: list[Value], other: list[Value]) -> bool:
    """Returns whether two lists have a common item."""
    meter.charge(len(first) * len(other))
    return any(is_equal(a, b) for a in first for b in other)
