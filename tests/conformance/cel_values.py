"""Values and types of CEL's own cases, as protobuf's JSON writes them."""

import base64
import math
from typing import Any

from webhook.cel.check import types
from webhook.cel.check.types import Type
from webhook.cel.run.conversions import to_duration, to_timestamp
from webhook.cel.run.equality import equal
from webhook.cel.run.values import (
    NOTHING,
    Opaque,
    Optional,
    TypeValue,
    Uint,
    from_key,
    key_of,
)


class UnreadableError(Exception):
    """A value of a type that only protobuf has."""


def read_value(written: dict[str, Any]) -> Any:
    """A value of CEL's."""
    ((kind, value),) = written.items()
    match kind:
        case "boolValue" | "stringValue":
            return value
        case "int64Value":
            return int(value)
        case "uint64Value":
            return Uint(value)
        case "doubleValue":
            return float(value)
        case "bytesValue":
            return base64.b64decode(value)
        case "nullValue":
            return None
        case "typeValue":
            return TypeValue(value)
        case "listValue":
            return [read_value(one) for one in value.get("values", ())]
        case "mapValue":
            entries = value.get("entries", ())
            return {key_of(read_value(one["key"])): read_value(one["value"]) for one in entries}
        case "objectValue":
            return _read_object(value)
    raise UnreadableError(kind)


def _read_object(value: dict[str, Any]) -> Any:
    name = value["@type"].rpartition("/")[2]
    if name == "google.protobuf.Timestamp":
        return to_timestamp(value["value"])
    if name == "google.protobuf.Duration":
        return to_duration(value["value"])
    if name == "google.protobuf.ListValue":  # the contents of an optional
        return Optional(value["value"])
    raise UnreadableError(name)


_PRIMITIVES = {
    "BOOL": types.BOOL,
    "INT64": types.INT,
    "UINT64": types.UINT,
    "DOUBLE": types.DOUBLE,
    "STRING": types.STRING,
    "BYTES": types.BYTES,
}


def read_type(written: dict[str, Any]) -> Type:
    """A type of CEL's."""
    ((kind, value),) = written.items()
    match kind:
        case "dyn":
            return types.DYN
        case "null":
            return types.NULL
        case "primitive":
            return _PRIMITIVES[value]
        case "wellKnown" if value in {"TIMESTAMP", "DURATION"}:
            return Type(f"google.protobuf.{value.capitalize()}")
        case "listType":
            return types.list_of(read_type(value["elemType"]))
        case "mapType":
            return types.map_of(read_type(value["keyType"]), read_type(value["valueType"]))
        case "typeParam":
            return Type(value, free=True)
        case "abstractType":
            parts = tuple(read_type(part) for part in value.get("parameterTypes", ()))
            return Type(value["name"], parts)
        case "type":
            return types.type_of(read_type(value) if value else types.DYN)
    raise UnreadableError(kind)


def same(got: Any, expected: Any) -> bool:
    """Whether two values are equal and of the same types all through."""
    if type(got) is not type(expected):
        return False
    if type(got) is list:
        return len(got) == len(expected) and all(map(same, got, expected))
    if type(got) is dict:
        return len(got) == len(expected) and all(
            any(
                same(from_key(key), from_key(other)) and same(one, expected[other])
                for other in expected
            )
            for key, one in got.items()
        )
    if type(got) is float:
        return got == expected or (math.isnan(got) and math.isnan(expected))
    if type(got) is Opaque:
        return (got.type_name, got.value) == (expected.type_name, expected.value)
    if type(got) is Optional:
        return same(got.value, expected.value)
    return equal(got, expected)


def opened(value: Any) -> Any:
    """A value as the oracle shows it: of optionals what they hold."""
    if type(value) is Optional and value.value is not NOTHING:
        return opened(value.value)
    if type(value) is list:
        return [opened(one) for one in value]
    if type(value) is dict:
        return {key: opened(one) for key, one in value.items()}
    return value


def text_of(value: Any) -> str | None:
    """Returns the oracle's text of a value without protobuf's JSON form; None for others."""
    if type(value) is Optional and value.value is NOTHING:
        return "optional_type: <nil>"
    return f"{value.type_name}: {value.shown}" if type(value) is Opaque else None
