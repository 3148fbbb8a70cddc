"""Optional values (cel-go, cel/library.go)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.cel.errors import EvaluationError, Unsure
from webhook.cel.library.registry import form
from webhook.cel.run.arithmetic import TIME_MIN
from webhook.cel.run.texts import showing
from webhook.cel.run.values import NONE, NOTHING, Duration, Lost, Optional, Timestamp, held

if TYPE_CHECKING:
    from webhook.cel.run.values import Value


@form("optional.none")
def none() -> Optional:
    """No value."""
    return NONE


@form("optional.of", None)
def of(value: Value) -> Optional:
    """A value that is there."""
    return Optional(value)


@form("optional.ofNonZeroValue", None)
def of_non_zero(value: Value) -> Optional:
    """A value, unless it is its type's zero."""
    if value is None or (type(value) in _TIMES and value in _ZEROS):
        return NONE
    sized = isinstance(value, (bool, int, float, str, bytes, list, dict))
    return NONE if sized and not value else Optional(value)


_TIMES: Final = frozenset({Duration, Timestamp})
_ZEROS: Final = (Duration(0), Timestamp(TIME_MIN))


@form("hasValue", Optional)
def has_value(value: Optional) -> bool:
    """Whether it is there."""
    return value.value is not NOTHING


@form("value", Optional)
def value_of(value: Optional) -> Value:
    """The value itself."""
    if value.value is NOTHING:
        raise EvaluationError("optional.none() dereference")
    return held(value)


@form("optional.unwrap", list)
def unwrap(values: list[Value]) -> list[Value]:
    """The values that are there; unsure where one was lost."""
    return _sure(unwrapped("optional.unwrap", values))


@form("unwrapOpt", list)
def unwrap_of_list(values: list[Value]) -> list[Value]:
    """``list.unwrapOpt()``: the values that are there; unsure where one was lost."""
    return _sure(unwrapped("unwrapOpt", values))


def _sure(values: list[Value]) -> list[Value]:
    if any(type(value) is Lost for value in values):
        raise Unsure
    return values


def unwrapped(function: str, values: list[Value]) -> list[Value]:
    """The values that are there, even lost."""
    if values and type(values[0]) is not Optional:  # a list is of its first item's type
        raise EvaluationError(f"no such overload: {function}(list)")
    for value in values:
        if type(value) is not Optional:
            raise showing("value ", value, " is not optional")
    return [value.value for value in values if value.value is not NOTHING]
