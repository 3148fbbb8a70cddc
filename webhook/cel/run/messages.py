"""Makes messages from their literals.

Times and durations are, by their seconds and nanoseconds; objects and the operations of JSON Patches,
where a policy mutates. A policy can make no others (cel-go, common/types/provider.go; k8s.io/apiserver, pkg/cel/mutation).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from webhook.cel.errors import EvaluationError
from webhook.cel.run.arithmetic import SECOND
from webhook.cel.run.values import (
    INT_MAX,
    INT_MIN,
    NOTHING,
    Duration,
    Lost,
    Opaque,
    Optional,
    Timestamp,
    TypeValue,
    Uint,
    Value,
)

NAMES: Final = frozenset({"google.protobuf.Duration", "google.protobuf.Timestamp"})
"""The types of times."""

_NATIVE: Final = {"seconds": "int64", "nanos": "int32"}
_NANOS_MAX: Final = (1 << 31) - 1

_NAMES: Final[dict[type, str]] = {
    bool: "bool",
    bytes: "Bytes",
    dict: "map",
    Duration: "'Duration'",
    float: "Double",
    list: "list",
    Timestamp: "'Timestamp'",
    type(None): "'null_type'",
}


def has_values(name: str) -> bool:
    """Returns whether a message of this type is a value."""
    return name in NAMES or name == "JSONPatch" or name.partition(".")[0] == "Object"


def message(name: str, fields: Mapping[str, Value]) -> Duration | Timestamp | Opaque:
    """Makes the value of a message.

    There are three cases: 1. a Timestamp or 2. a Duration, of seconds and nanoseconds. 3. all others,
    objects and JSON Patches: an opaque value of their fields.
    """
    if name not in NAMES:
        return Opaque(name, dict(fields))
    numbers = {field: _number(name, field, value) for field, value in fields.items()}
    seconds, nanos = numbers.get("seconds", 0), numbers.get("nanos", 0)
    if name == "google.protobuf.Timestamp":
        return Timestamp(seconds * SECOND + nanos)
    # A duration beyond 64 bits becomes the longest possible one.
    whole = seconds * SECOND
    return Duration(_within(whole + nanos) if whole == _within(whole) else _within(whole))


def _within(ns: int) -> int:
    return max(INT_MIN, min(INT_MAX, ns))


def _number(name: str, field: str, value: Value) -> int:
    try:
        return _converted(value, _NATIVE[field])
    except EvaluationError as error:
        text = f"field type conversion error for {name}.{field} value type: {error.text}"
        raise EvaluationError(text) from None


def _converted(value: Value, native: str) -> int:
    match value:
        case Optional():
            if value.value is NOTHING:
                raise EvaluationError("optional.none() dereference")
            return _converted(value.value, native)
        case Lost():
            raise EvaluationError(value.text)
        case str():
            raise EvaluationError(f"unsupported native conversion from string to '{native}'")
        case Uint():
            raise EvaluationError(f"unsupported type conversion from 'uint' to {native}")
        case TypeValue():
            raise EvaluationError("type conversion not supported for 'type'")
        case Opaque():
            of = value.type_name.rpartition(".")[2].removeprefix("Named")
            raise EvaluationError(f"type conversion error from '{of}' to '{native}'")
    if type(value) is not int:
        raise EvaluationError(f"type conversion error from {_NAMES[type(value)]} to '{native}'")
    if native == "int32" and not -_NANOS_MAX - 1 <= value <= _NANOS_MAX:
        raise EvaluationError("integer overflow")
    return value
