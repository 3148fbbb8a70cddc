"""Conversions between types, with cel-go's messages for impossible conversions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Final

from webhook.cel.errors import EvaluationError
from webhook.cel.run import times
from webhook.cel.run.arithmetic import SECOND, timestamp, within_int, within_uint
from webhook.cel.run.texts import double_text, duration_text, timestamp_text
from webhook.cel.run.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    Duration,
    Opaque,
    Timestamp,
    TypeValue,
    Uint,
    Value,
    type_name,
)

_INT: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_UINT: Final = re.compile(r"[0-9]+", re.ASCII)
_DOUBLE: Final = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?)|nan",
    re.ASCII | re.IGNORECASE,
)
_HEX_DOUBLE: Final = re.compile(
    r"[+-]?0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)p[+-]?[0-9]+", re.ASCII | re.IGNORECASE
)
_DIVIDED: Final = re.compile(r"(?<=[0-9])_(?=[0-9])", re.ASCII)
_HEX_DIVIDED: Final = re.compile(r"(?<=[0-9a-fx])_(?=[0-9a-f])", re.ASCII | re.IGNORECASE)
"""Marks between digits, which Go reads over in a number with a point."""
MAX_DIGITS: Final = 400
"""Digits of a number that is read: no more have a value in 64 bits, zeros aside."""


def _impossible(value: Value, target: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{type_name(value)}' to '{target}'")


def _no_overload(function: str, value: Value) -> EvaluationError:
    return EvaluationError(f"no such overload: {function}({type_name(value)})")


def to_int(value: Value) -> int:
    """``int(value)``."""
    of = type(value)
    if of is int:
        return int(value)
    if of is Uint:
        return within_int(int(value))
    if of is float:
        if math.isnan(value) or not INT_MIN < value < INT_MAX + 1:
            raise EvaluationError("integer overflow")
        return int(value)
    if of is str:
        if not _INT.fullmatch(value) or len(value) > MAX_DIGITS:
            raise _impossible(value, "int")
        whole = int(value)
        if not INT_MIN <= whole <= INT_MAX:
            raise _impossible(value, "int")
        return whole
    if of is Timestamp:
        return int(value.ns // SECOND)
    if of is Duration:
        return int(value.ns)
    raise _no_overload("int", value)


def to_uint(value: Value) -> Uint:
    """``uint(value)``."""
    of = type(value)
    if of is Uint:
        return Uint(value)
    if of is int:
        return within_uint(value)
    if of is float:
        if math.isnan(value) or not 0 <= value < UINT_MAX + 1:
            raise EvaluationError("unsigned integer overflow")
        return Uint(value)
    if of is str:
        if not _UINT.fullmatch(value) or len(value) > MAX_DIGITS or int(value) > UINT_MAX:
            raise _impossible(value, "uint")
        return Uint(value)
    raise _no_overload("uint", value)


def to_double(value: Value) -> float:
    """``double(value)``."""
    of = type(value)
    if of in {float, int, Uint}:
        return float(value)
    if of is str:
        double = _read_double(value)
        if double is None:
            raise _impossible(value, "double")
        return double
    raise _no_overload("double", value)


def _read_double(text: str) -> float | None:
    if "_" in text:
        is_hex = text.lstrip("+-")[:2] in {"0x", "0X"}
        text = (_HEX_DIVIDED if is_hex else _DIVIDED).sub("", text)
    if _DOUBLE.fullmatch(text):
        double = float(text)
        named = text.lstrip("+-")[:1] in {"i", "I"}
        return None if math.isinf(double) and not named else double
    if _HEX_DOUBLE.fullmatch(text):
        try:
            return float.fromhex(text)
        except OverflowError:
            return None
    return None


def to_string(value: Value) -> str:
    """``string(value)``."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(int(value))
        case float():
            return double_text(value)
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
        case Timestamp():
            return timestamp_text(value)
        case Duration():
            return duration_text(value)
        case Opaque(type_name="net.IP" | "net.CIDR"):
            return value.shown
    raise _no_overload("string", value)


def to_bytes(value: Value) -> bytes:
    """``bytes(value)``."""
    if type(value) is bytes:
        return value
    if type(value) is str:
        return value.encode("utf-8", "surrogateescape")
    raise _no_overload("bytes", value)


_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def to_bool(value: Value) -> bool:
    """``bool(value)``."""
    if type(value) is bool:
        return value
    if type(value) is str:
        if value in _TRUE:
            return True
        if value in _FALSE:
            return False
        raise _impossible(value, "bool")
    raise _no_overload("bool", value)


def to_timestamp(value: Value) -> Timestamp:
    """``timestamp(value)``."""
    if type(value) is Timestamp:
        return value
    if type(value) is int:
        return timestamp(value * SECOND)
    if type(value) is str:
        moment = times.read_timestamp(value)
        if moment is None:
            raise _impossible(value, "google.protobuf.Timestamp")
        return timestamp(*moment)
    raise _no_overload("timestamp", value)


def to_duration(value: Value) -> Duration:
    """``duration(value)``."""
    if type(value) is Duration:
        return value
    if type(value) is int:  # declared, and not there
        text = "type conversion error from 'int' to 'google.protobuf.Duration'"
        raise EvaluationError(text)
    if type(value) is str:
        duration = times.read_duration(value)
        if duration is None:
            raise _impossible(value, "google.protobuf.Duration")
        return Duration(duration)
    raise _no_overload("duration", value)


def to_type(value: Value) -> TypeValue:
    """``type(value)``."""
    return TypeValue(type_name(value))


def to_dyn(value: Value) -> Value:
    """``dyn(value)``: the same."""
    return value


CONVERSIONS: Final[dict[str, Callable[[Value], Value]]] = {
    "int": to_int,
    "uint": to_uint,
    "double": to_double,
    "string": to_string,
    "bytes": to_bytes,
    "bool": to_bool,
    "timestamp": to_timestamp,
    "duration": to_duration,
    "type": to_type,
    "dyn": to_dyn,
}
