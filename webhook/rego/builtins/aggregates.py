"""Built-ins that reduce a collection to one value.

Documented in OPA's reference under "Aggregates"; behaviour from v1/topdown/aggregates.go.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from webhook.golang import bigfloat
from webhook.rego.builtins.registry import Context, builtin, wrong_element, wrong_operand
from webhook.rego.run import numbers
from webhook.rego.run.values import (
    UNDEFINED,
    RegoObject,
    RegoSet,
    Value,
    compare,
    equal,
    key,
    ordered,
    type_name,
)
from webhook.rego.types import (
    ANY,
    ARRAY,
    BOOLEAN,
    NUMBER,
    OBJECT,
    SET,
    STRING,
    any_of,
    array_of,
    set_of,
)

COLLECTION = any_of(ARRAY, SET)
NUMBERS = any_of(array_of(NUMBER), set_of(NUMBER))


@builtin("count", any_of(SET, ARRAY, OBJECT, STRING), result=NUMBER, check=False)
def count(collection: Value) -> int:
    """Returns the number of members, properties or characters."""
    kind = type(collection)
    if kind is list or kind is str or kind is dict or kind is RegoSet or kind is RegoObject:
        return len(collection)
    return wrong_operand(1, collection, "array", "object", "set", "string")


def _members(collection: Value) -> list[Value]:
    if type(collection) is list:
        return collection
    if type(collection) is RegoSet:
        return ordered(collection)
    return wrong_operand(1, collection, "set", "array")


def _reduce(
    collection: Value,
    start: int,
    whole: Callable[[int, int], int],
    part: Callable[[list[Value]], int | float],
) -> int | float:
    """Returns a result that is exact while all members are integers, else in OPA's floating point."""
    members = _members(collection)
    total = start
    integers = [numbers.as_int(x) if type_name(x) == "number" else None for x in members]
    if None not in integers:
        for item in integers:
            total = whole(total, item)  # type: ignore[arg-type]  # no None
        return total
    for item in members:
        if type_name(item) != "number":
            wrong_element(1, collection, item, "number")
    return part(members)


@builtin("sum", NUMBERS, result=NUMBER, check=False)
def sum_(collection: Value) -> int | float:
    """Returns the sum; 0 for an empty collection."""
    if type(collection) is list and all(type(item) is int for item in collection):
        return sum(collection)
    return _reduce(collection, 0, int.__add__, _float_sum)


def _float_sum(members: list[Value]) -> int | float:
    total = reduce(bigfloat.add, map(numbers.binary, members))
    return numbers.from_binary(total)


@builtin("product", NUMBERS, result=NUMBER, context=True, check=False)
def product(context: Context, collection: Value) -> int | float:
    """Returns the product; 1 for an empty collection."""
    return _reduce(collection, 1, _multiplied(context), _float_product)


@builtin("product", NUMBERS, result=NUMBER, context=True, check=False, older=True)
def older_product(context: Context, collection: Value) -> int | float:
    """Returns the product as in older versions of OPA: floats as precise as in other arithmetic."""
    return _reduce(
        collection,
        1,
        _multiplied(context),
        lambda members: _float_product(members, bigfloat.PRECISION),
    )


def _multiplied(context: Context) -> Callable[[int, int], int]:
    def multiply(a: int, b: int) -> int:
        size = a.bit_length() + b.bit_length()
        if size > bigfloat.MAX_BITS:
            raise numbers.number_too_large()
        # Schoolbook multiplication: a machine word each 0.05 step.
        context.charge(1 + a.bit_length() * b.bit_length() // 80_000)
        return a * b

    return multiply


def _float_product(members: list[Value], bits: int = bigfloat.DOUBLE_PRECISION) -> int | float:
    """Returns the product, rounded at each step to the precision of OPA's initial 1."""
    total = bigfloat.nearest(1, bits=bits)
    for item in members:
        total = bigfloat.multiply(total, numbers.binary(item), bits)
    if not total[0] and sum(numbers.number_text(item).startswith("-") for item in members) % 2:
        return numbers.Numeral("-0")
    return numbers.from_binary(total)


@builtin("max", COLLECTION, result=ANY, context=True, check=False)
def max_(context: Context, collection: Value) -> Value:
    """Returns the last of the greatest members; undefined for an empty collection."""
    members = _members(collection)
    context.charge(len(members))
    if not members:
        return UNDEFINED
    greatest = members[0]
    for item in members:
        if compare(greatest, item) <= 0:
            greatest = item
    return greatest


@builtin("min", COLLECTION, result=ANY, context=True, check=False)
def min_(context: Context, collection: Value) -> Value:
    """Returns the last of the smallest members; undefined for an empty collection."""
    members = _members(collection)
    context.charge(len(members))
    if not members:
        return UNDEFINED
    least = members[0]
    for item in members:
        if compare(least, item) >= 0:
            least = item
    return least


@builtin("sort", COLLECTION, result=ARRAY, context=True, check=False)
def sort(context: Context, collection: Value) -> list[Value]:
    """Returns the members in OPA's order."""
    if type(collection) is list or type(collection) is RegoSet:
        # A comparison of mixed members costs about 10 steps, and there are n·log n.
        context.charge(len(collection) * len(collection).bit_length())
        return ordered(collection)
    return wrong_operand(1, collection, "set", "array")


@builtin("all", COLLECTION, result=BOOLEAN, deprecated=True, check=False)
def all_(collection: Value) -> bool:
    """Returns whether every member is true."""
    if type(collection) is list or type(collection) is RegoSet:
        return all(item is True for item in collection)
    return wrong_operand(1, collection, "array", "set")


@builtin("any", COLLECTION, result=BOOLEAN, deprecated=True, check=False)
def any_(collection: Value) -> bool:
    """Returns whether some member is true."""
    if type(collection) is list or type(collection) is RegoSet:
        return any(item is True for item in collection)
    return wrong_operand(1, collection, "array", "set")


@builtin("internal.member_2", ANY, ANY, result=BOOLEAN, infix="in", context=True)
def member(context: Context, value: Value, collection: Value) -> bool:
    """Returns whether ``value in collection``; false if it is no collection."""
    kind = type(collection)
    if kind is RegoSet:
        return value in collection
    if kind is list:
        items = collection
    elif kind is dict or kind is RegoObject:
        items = collection.values()
    else:
        return False
    context.charge(len(collection))
    if type(value) is str:
        return value in items
    return any(equal(value, item) for item in items)


@builtin("internal.member_3", ANY, ANY, ANY, result=BOOLEAN, infix="in")
def member_with_key(name: Value, value: Value, collection: Value) -> bool:
    """Returns whether ``name, value in collection``; false if it is no collection."""
    kind = type(collection)
    if kind is RegoSet:
        return name in collection and equal(name, value)
    if kind is list:
        at = None
        if isinstance(name, int | float) and not isinstance(name, bool):
            at = numbers.as_index(name)
        return at is not None and 0 <= at < len(collection) and equal(collection[at], value)
    if kind is dict:
        return type(name) is str and name in collection and equal(collection[name], value)
    if kind is RegoObject:
        entry = collection.entries.get(key(name))
        return entry is not None and equal(entry[1], value)
    return False
