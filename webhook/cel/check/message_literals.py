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

_OF_ANYTHING: Final = types.map_of(STRING, DYN)
_OF_TIME: Final[Fields] = {"nanos": INT, "seconds": INT}
_VALUE: Final = "google.protobuf.Value"
_STRUCT: Final = "google.protobuf.Struct"
_LIST: Final = "google.protobuf.ListValue"

_FIELDLESS: Final = (
    *("bool", "bytes", "double", "int", "list", "string", "uint"),
    *("duration", "timestamp", "null_type"),
)
_PROVIDED: Final[Mapping[str, Fields]] = {
    **{name: {} for name in _FIELDLESS},
    types.DURATION.name: _OF_TIME,
    types.TIMESTAMP.name: _OF_TIME,
    _VALUE: {
        "null_value": INT,
        "number_value": types.DOUBLE,
        "string_value": STRING,
        "bool_value": types.BOOL,
        "struct_value": _OF_ANYTHING,
        "list_value": types.list_of(DYN),
    },
    _STRUCT: {"fields": _OF_ANYTHING},
    _LIST: {"values": types.list_of(DYN)},
}
"""The messages that Kubernetes' type provider knows by name, with the types of their fields."""

_ANY_FIELD: Final = "map"
"""It knows this one, too, and fields of any name and type with it."""


@dataclass(frozen=True, slots=True)
class Made:
    """The type of a message literal, and the name by which its fields are looked up."""

    type: Type
    name: str
    fault: str | None = None


def made_of(meaning: Type, name: str) -> Made:
    """Returns the type that a literal of this name makes."""
    if meaning == ERROR:
        return Made(ERROR, name)
    if meaning.name != "type":
        return Made(ERROR, name, f"'{meaning.name}' is not a type")
    of = meaning.parts[0]
    called = _message_name(of)
    if called is None:
        type_name = "error" if of == ERROR else of.name
        return Made(ERROR, name, f"'{type_name}' is not a message type")
    return Made(of, called)


def _message_name(of: Type) -> str | None:
    """Returns a type's name as a message; None for a type that no literal makes."""
    if of.is_dyn:
        return _VALUE
    if of in {types.DURATION, types.TIMESTAMP}:
        return of.name
    if of == types.NULL:
        return "google.protobuf.NullValue"
    if of == types.list_of(DYN):
        return _LIST
    if of == _OF_ANYTHING:
        return _STRUCT
    return of.name if of.message or of.name.startswith("kubernetes.") else None


def field_of(name: str, field: str, environment: Environment) -> tuple[Type, str | None]:
    """The type of a field of the message of this name, ERROR with the fault where it has none."""
    if name == _ANY_FIELD:
        return DYN, None
    declared = environment.field_type(name, field)
    if declared is not None:
        return declared, None
    fields = environment.messages.get(name, _PROVIDED.get(name))
    if fields is None:
        return ERROR, f"unexpected failed resolution of '{name}'"
    if field not in fields:
        return ERROR, f"undefined field '{field}'"
    return fields[field], None
