"""Optional values (cel-go, cel/library.go)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.cel.errors import EvaluationError
from webhook.cel.library.registry import form
from webhook.cel.run.texts import shown
from webhook.cel.run.values import NONE, NOTHING, Duration, Optional, Timestamp

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
    if value is None or (type(value) in {Duration, Timestamp} and value.ns == 0):
        return NONE
    if type(value) is Optional:
        return NONE if value.value is NOTHING else Optional(value)
    sized = isinstance(value, (bool, int, float, str, bytes, list, dict))
    return NONE if sized and not value else Optional(value)


@form("hasValue", Optional)
def has_value(value: Optional) -> bool:
    """Whether it is there."""
    return value.value is not NOTHING


@form("value", Optional)
def value_of(value: Optional) -> Value:
    """The value itself."""
    if value.value is NOTHING:
        raise EvaluationError("optional.none() dereference")
    return value.value


@form("optional.unwrap", list)
@form("unwrapOpt", list)
def unwrap(values: list[Value]) -> list[Value]:
    """The values that are there."""
    for value in values:
        if type(value) is not Optional:
            raise EvaluationError(f"value {shown(value)} is not optional")
    return [value.value for value in values if value.value is not NOTHING]
