"""Types of message literals, ``some.Type{field: value}``, and their fields.

The name may also be that of a variable that holds a type: cel-go looks at the variable's type
first. It then looks up the fields by the name of that type (cel-go, checker/checker.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from webhook.cel.check import types
from webhook.cel.check.types import DYN, ERROR, INT, STRING, Type
from webhook.values import dataclass

if TYPE_CHECKING:
    from webhook.cel.check.environment import Environment

Fields: TypeAlias = Mapping[str, Type]

_ANY_MAP: Final = types.map_of(STRING, DYN)
_TIME_FIELDS: Final[Fields] = {"nanos": INT, "seconds": INT}
_VALUE: Final = "google.protobuf.Value"
_STRUCT: Final = "google.protobuf.Struct"
_LIST: Final = "google.protobuf.ListValue"

_WITHOUT_FIELDS: Final = (
    *("bool", "bytes", "double", "int", "list", "string", "uint"),
    *("duration", "timestamp", "null_type"),
)
_MESSAGES: Final[Mapping[str, Fields]] = {
    **{name: {} for name in _WITHOUT_FIELDS},
    types.DURATION.name: _TIME_FIELDS,
    types.TIMESTAMP.name: _TIME_FIELDS,
    _VALUE: {
        "null_value": INT,
        "number_value": types.DOUBLE,
        "string_value": STRING,
        "bool_value": types.BOOL,
        "struct_value": _ANY_MAP,
        "list_value": types.list_of(DYN),
    },
    _STRUCT: {"fields": _ANY_MAP},
    _LIST: {"values": types.list_of(DYN)},
}
"""The messages that Kubernetes' type provider knows by name, with the types of their fields."""

_ANY_FIELD: Final = "map"
"""It knows this one, too, and fields of any name and type with it."""


@dataclass(frozen=True, slots=True)
class MessageType:
    """The type of a message literal, and the name by which its fields are looked up."""

    type: Type
    name: str
    fault: str | None = None


def message_type_of(meaning: Type, name: str) -> MessageType:
    """Returns the type that a literal of this name makes."""
    if meaning == ERROR:
        return MessageType(ERROR, name)
    if meaning.name != "type":
        return MessageType(ERROR, name, f"'{meaning.name}' is not a type")
    type_ = meaning.parts[0]
    message_name = _message_name(type_)
    if message_name is None:
        type_name = "error" if type_ == ERROR else type_.name
        return MessageType(ERROR, name, f"'{type_name}' is not a message type")
    return MessageType(type_, message_name)


def _message_name(type_: Type) -> str | None:
    """Returns a type's name as a message; None for a type that no literal makes."""
    if type_.is_dyn:
        return _VALUE
    if type_ in {types.DURATION, types.TIMESTAMP}:
        return type_.name
    if type_ == types.NULL:
        return "google.protobuf.NullValue"
    if type_ == types.list_of(DYN):
        return _LIST
    if type_ == _ANY_MAP:
        return _STRUCT
    return type_.name if type_.message or type_.name.startswith("kubernetes.") else None


def field_of(name: str, field: str, environment: Environment) -> tuple[Type, str | None]:
    """The type of a field of the message of this name, ERROR with the fault where it has none."""
    if name == _ANY_FIELD:
        return DYN, None
    declared = environment.field_type(name, field)
    if declared is not None:
        return declared, None
    fields = environment.messages.get(name, _MESSAGES.get(name))
    if fields is None:
        return ERROR, f"unexpected failed resolution of '{name}'"
    if field not in fields:
        return ERROR, f"undefined field '{field}'"
    return fields[field], None
