"""Equality, order and membership as CEL has them: numbers by value, nothing else across types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.cel.errors import EvaluationError
from webhook.cel.run.values import (
    INT_MAX,
    INT_MIN,
    NOTHING,
    UINT_MAX,
    Duration,
    Lost,
    NativeFields,
    Opaque,
    Optional,
    Timestamp,
    Uint,
    entry_of,
    held,
)

if TYPE_CHECKING:
    from webhook.cel.run.values import Value

NO_OVERLOAD: Final = "no such overload"

_NUMBERS: Final = frozenset({int, Uint, float})
ORDERED: Final = frozenset({bool, int, Uint, float, str, bytes, Duration, Timestamp})
_RECEIVERS: Final = frozenset({str, Duration, Timestamp})


def equal(a: Value, b: Value) -> bool:
    """Returns whether two values are equal; values of different types are not, except numbers.

    Raises for a value of a library beside one of another type, but for values that Go declares.
    """
    of_a, of_b = type(a), type(b)
    if of_a is Lost and b is not None:
        raise EvaluationError(a.text)
    if of_a is not of_b:
        if of_a is Opaque and b is not None and b is not NOTHING:
            if of_b is not Lost and type(a.value) is NativeFields:
                return False
            raise EvaluationError(b.text if of_b is Lost else NO_OVERLOAD)
        return of_a in _NUMBERS and of_b in _NUMBERS and _order(a, b) == 0
    if of_a is list:
        return len(a) == len(b) and all(map(_not_different, a, b))
    if of_a is dict:
        return len(a) == len(b) and all(
            (other := entry_of(b, key)) is not NOTHING and _not_different(value, other)
            for key, value in a.items()
        )
    if of_a is Optional:
        if a.value is NOTHING or b.value is NOTHING:
            return a.value is b.value
        return equal(held(a), b.value)
    if of_a is Opaque and (a.type_name != b.type_name or b.detached):
        if type(a.value) is NativeFields:
            return False
        raise EvaluationError(NO_OVERLOAD)
    return bool(a == b)


def _not_different(a: Value, b: Value) -> bool:
    """Returns whether two nested items do not differ; cel-go takes an error as no difference."""
    try:
        return equal(a, b)
    except EvaluationError:
        return True


def is_equal(a: Value, b: Value) -> bool:
    """Returns whether an item equals a searched one; an error counts as unequal."""
    try:
        return equal(a, b)
    except EvaluationError:
        return False


def _order(a: Value, b: Value) -> int | None:
    """Returns the order of two numbers; None if one is NaN.

    An integer is compared with a double as the nearest double, if the double is in its range.
    """
    if type(a) is float and type(b) is not float:
        reverse = _order(b, a)
        return None if reverse is None else -reverse
    if type(b) is float:
        if b != b:  # noqa: PLR0124  # a number that is none
            return None
        if type(a) is not float and (INT_MIN if type(a) is int else 0) <= b <= float(
            INT_MAX if type(a) is int else UINT_MAX
        ):
            a = float(a)
    return None if a != a else int(a > b) - int(a < b)  # noqa: PLR0124  # likewise


def no_overload(function: str, left: Value) -> EvaluationError:
    """Returns the error of an operator for operands of these types."""
    if type(left) in _RECEIVERS:
        return EvaluationError(NO_OVERLOAD)
    return EvaluationError(f"{NO_OVERLOAD}: {function}")


def compared(function: str, a: Value, b: Value) -> int:
    """-1, 0 or 1."""
    of_a, of_b = type(a), type(b)
    if of_a not in ORDERED:
        raise no_overload(function, a)
    if of_a is float and a != a:  # noqa: PLR0124  # said before the other operand's type is seen
        raise EvaluationError("NaN values cannot be ordered")
    if of_a is not of_b and not (of_a in _NUMBERS and of_b in _NUMBERS):
        raise EvaluationError(NO_OVERLOAD)
    if of_a not in _NUMBERS:
        return int(a > b) - int(a < b)
    order = _order(a, b)
    if order is None:
        raise EvaluationError("NaN values cannot be ordered")
    return order


def less(a: Value, b: Value) -> bool:
    """``a < b``."""
    return compared("_<_", a, b) < 0


def less_or_equal(a: Value, b: Value) -> bool:
    """``a <= b``."""
    return compared("_<=_", a, b) <= 0


def greater(a: Value, b: Value) -> bool:
    """``a > b``."""
    return compared("_>_", a, b) > 0


def greater_or_equal(a: Value, b: Value) -> bool:
    """``a >= b``."""
    return compared("_>=_", a, b) >= 0


def not_equal(a: Value, b: Value) -> bool:
    """``a != b``."""
    return not is_equal(a, b)


KEYS: Final = frozenset({str, int, Uint, float, bool})
