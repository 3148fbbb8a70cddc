"""Optional values (cel-go, cel/library.go)."""

from __future__ import annotations

from typing import Final

from webhook.cel.errors import EvaluationError, Unsure
from webhook.cel.library.registry import form
from webhook.cel.run.arithmetic import TIME_MIN
from webhook.cel.run.texts import showing
from webhook.cel.run.values import NONE, NOTHING, Duration, Lost, Optional, Timestamp, Value, held


@form("optional.none")
def none() -> Optional:
    """Returns an optional without a value."""
    return NONE


@form("optional.of", None)
def of(value: Value) -> Optional:
    """Returns an optional with a value."""
    return Optional(value)


@form("optional.ofNonZeroValue", None)
def of_non_zero(value: Value) -> Optional:
    """Returns an optional with the value; empty for the zero of its type."""
    if value is None or (type(value) in _TIMES and value in _ZEROS):
        return NONE
    sized = isinstance(value, (bool, int, float, str, bytes, list, dict))
    return NONE if sized and not value else Optional(value)


_TIMES: Final = frozenset({Duration, Timestamp})
_ZEROS: Final = (Duration(0), Timestamp(TIME_MIN))


@form("hasValue", Optional)
def has_value(value: Optional) -> bool:
    """Returns whether the optional has a value."""
    return value.value is not NOTHING


@form("value", Optional)
def value_of(value: Optional) -> Value:
    """Returns the value of the optional."""
    if value.value is NOTHING:
        raise EvaluationError("optional.none() dereference")
    return held(value)


@form("optional.unwrap", list)
def unwrap(values: list[Value]) -> list[Value]:
    """Returns the present values; raises Unsure for a lost value."""
    return _sure(unwrapped("optional.unwrap", values))


@form("unwrapOpt", list)
def unwrap_of_list(values: list[Value]) -> list[Value]:
    """Returns the values of ``list.unwrapOpt()``; raises Unsure for a lost value."""
    return _sure(unwrapped("unwrapOpt", values))


def _sure(values: list[Value]) -> list[Value]:
    if any(type(value) is Lost for value in values):
        raise Unsure
    return values


def unwrapped(function: str, values: list[Value]) -> list[Value]:
    """Returns the present values, lost ones included."""
    if values and type(values[0]) is not Optional:  # the first item decides a list's type
        raise EvaluationError(f"no such overload: {function}(list)")
    for value in values:
        if type(value) is not Optional:
            raise showing("value ", value, " is not optional")
    return [value.value for value in values if value.value is not NOTHING]
