"""Arithmetic of CEL: within one type and its bounds, with cel-go's messages."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from webhook.cel.errors import EvaluationError
from webhook.cel.run.equality import NO_OVERLOAD, no_overload
from webhook.cel.run.values import INT_MAX, INT_MIN, UINT_MAX, Duration, Timestamp, Uint, Value

SECOND: Final = 1_000_000_000
TIME_MIN: Final = -62135596800 * SECOND
TIME_MAX: Final = 253402300799 * SECOND + SECOND - 1
"""The years 1 to 9999, in nanoseconds since 1970."""

_ADDED: Final = frozenset({bytes, float, Duration, int, list, str, Timestamp, Uint})
_SUBTRACTED: Final = frozenset({float, Duration, int, Timestamp, Uint})
_MULTIPLIED: Final = frozenset({float, int, Uint})
_WHOLE: Final = frozenset({int, Uint})
"""The types that have ``+``; ``-``; ``*`` and ``/``; and ``%``."""


def within_int(value: int) -> int:
    """Returns an integer that 64 bits hold; raises for any other."""
    if not INT_MIN <= value <= INT_MAX:
        raise EvaluationError("integer overflow")
    return value


def within_uint(value: int) -> Uint:
    """Returns an unsigned integer that 64 bits hold; raises for any other."""
    if not 0 <= value <= UINT_MAX:
        raise EvaluationError("unsigned integer overflow")
    return Uint(value)


def duration(ns: int) -> Duration:
    """Returns a duration whose nanoseconds fit into 64 bits; raises for others."""
    return Duration(within_int(ns))


def timestamp(ns: int, offset_seconds: int = 0) -> Timestamp:
    """Returns a time in the years 1 to 9999; raises for any other."""
    if not TIME_MIN <= ns <= TIME_MAX:
        raise EvaluationError("timestamp overflow")
    return Timestamp(ns, offset_seconds)


def add(a: Value, b: Value) -> Value:
    """``a + b``."""
    of = type(a)
    if of is type(b):
        if of is int:
            return within_int(a + b)
        if of in {str, float, bytes}:
            return a + b
        if of is list:  # of an empty one and another it is the other itself
            return a + b if a and b else a or b
        if of is Uint:
            return within_uint(int(a) + int(b))
        if of is Duration:
            return duration(a.ns + b.ns)
    elif of is Duration and type(b) is Timestamp:
        return timestamp(a.ns + b.ns, b.offset_seconds)
    elif of is Timestamp and type(b) is Duration:
        return timestamp(a.ns + b.ns, a.offset_seconds)
    raise _unfit("_+_", a, _ADDED)


def subtract(a: Value, b: Value) -> Value:
    """``a - b``."""
    of = type(a)
    if of is type(b):
        if of is int:
            return within_int(a - b)
        if of is float:
            return a - b
        if of is Uint:
            return within_uint(int(a) - int(b))
        if of in {Duration, Timestamp}:
            return duration(a.ns - b.ns)
    elif of is Timestamp and type(b) is Duration:
        return timestamp(a.ns - b.ns, a.offset_seconds)
    raise _unfit("_-_", a, _SUBTRACTED)


def multiply(a: Value, b: Value) -> Value:
    """``a * b``."""
    of = type(a)
    if of is type(b):
        if of is int:
            return within_int(a * b)
        if of is float:
            return a * b
        if of is Uint:
            return within_uint(int(a) * int(b))
    raise _unfit("_*_", a, _MULTIPLIED)


def divide(a: Value, b: Value) -> Value:
    """``a / b``; of integers towards zero."""
    of = type(a)
    if of is type(b):
        if of is float:
            return _quotient(a, b)
        if of in {int, Uint}:
            if b == 0:
                raise EvaluationError("division by zero")
            size = abs(int(a)) // abs(int(b))
            if of is Uint:
                return Uint(size)
            return within_int(size if (a < 0) == (b < 0) else -size)
    raise _unfit("_/_", a, _MULTIPLIED)


def _quotient(a: float, b: float) -> float:
    if b != 0:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1, b)


def modulo(a: Value, b: Value) -> Value:
    """``a % b``, with the sign of a."""
    of = type(a)
    if of is type(b) and of in {int, Uint}:
        if b == 0:
            raise EvaluationError("modulus by zero")
        if a == INT_MIN and b == -1:
            raise EvaluationError("integer overflow")
        size = abs(int(a)) % abs(int(b))
        return Uint(size) if of is Uint else (size if a >= 0 else -size)
    raise _unfit("_%_", a, _WHOLE)


def negate(a: Value) -> Value:
    """``-a``."""
    if type(a) is int:
        return within_int(-a)
    if type(a) is float:
        return -a
    if type(a) is Duration:
        return duration(-a.ns)
    if type(a) is bool:
        raise EvaluationError(NO_OVERLOAD)
    raise no_overload("-_", a)


def is_not(a: Value) -> bool:
    """``!a``."""
    if type(a) is not bool:
        raise EvaluationError(NO_OVERLOAD)
    return not a


def _unfit(function: str, left: Value, has: frozenset[type]) -> EvaluationError:
    """Returns cel-go's error for operands of wrong types, or of a type without the operator."""
    if type(left) in has:
        return EvaluationError(NO_OVERLOAD)
    return no_overload(function, left)


OPERATORS: Final[dict[str, Callable[[Value, Value], Value]]] = {
    "_+_": add,
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": modulo,
}
