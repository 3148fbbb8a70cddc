"""Values of CEL: decoded JSON, and a Python type for each CEL type that JSON lacks.

An integer is an ``int`` within 64 bits, an unsigned one a :class:`Uint`, a double a ``float``. Maps
are dicts; a bool as a key is a :class:`BoolKey`, since Python takes ``True`` for ``1``, an unsigned
integer a :class:`UintKey`, a double a :class:`DoubleKey`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from webhook.cel.errors import EvaluationError, Unsure

Value: TypeAlias = Any
"""Any value of CEL's."""

INT_MIN: Final = -(1 << 63)
INT_MAX: Final = (1 << 63) - 1
UINT_MAX: Final = (1 << 64) - 1


class Uint(int):
    """An unsigned integer of 64 bits; equal to the signed integer, but of another type."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Uint({int(self)})"


@dataclass(frozen=True, slots=True)
class BoolKey:
    """A bool as a key of a map."""

    value: bool


@dataclass(frozen=True, slots=True)
class UintKey:
    """An unsigned integer as a key of a map, distinct from the key of the signed integer."""

    value: Uint


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value, by its name."""

    name: str


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time in nanoseconds."""

    ns: int


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A point of time in nanoseconds since 1970, and the offset that it was written with."""

    ns: int
    offset_seconds: int = field(default=0, compare=False)


class _None:
    __slots__ = ()

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING: Final = _None()
"""The value of an optional without a value."""


@dataclass(slots=True, eq=False)
class Optional:
    """CEL's ``optional_type``: a value, or none."""

    value: Value = NOTHING


NONE: Final = Optional()


@dataclass(frozen=True, slots=True)
class Lost:
    """A value that cel-go could not convert back out of an optional; using it raises the error.

    A list or a map may hold it, too, within one expression: it has its place there.
    """

    text: str


def there(value: Value) -> Value:
    """Returns a value; raises where it is lost."""
    if type(value) is Lost:
        raise EvaluationError(value.text)
    return value


def held(of: Optional) -> Value:
    """Returns the value of an optional; raises where it is lost."""
    return there(of.value)


def lost_within(value: Value) -> Lost | None:
    """Returns a lost value within a value, at any depth; None where there is none."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if type(part) is Optional and type(part.value) is not Lost:
            waiting.append(part.value)
        elif type(part) is Lost:
            return part
        elif type(part) in {dict, list}:
            waiting.extend(part.values() if type(part) is dict else part)
    return None


class NativeFields(dict[str, Any]):
    """The fields of a value that Go declares: each can be read, and ``has()`` is false for a zero.

    The zero of a list is nil, which no field here is.
    """

    def field(self, key: Any) -> Any:
        """Returns a field; raises for one that the type does not have."""
        if key not in self:
            raise EvaluationError(f"no such field '{key}'")
        return self[key]

    def set_fields(self) -> dict[str, Any]:
        """Returns the fields that are no zeros."""
        return {name: value for name, value in self.items() if value != ""}


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value of a library: its type's name, and the value by which it is compared.

    ``shown`` is its text where it has one. ``detached`` is one that no equality knows on its right:
    Kubernetes' sums and differences of quantities are pointers there.
    """

    type_name: str
    value: Any
    shown: str = ""
    detached: bool = False

    def __eq__(self, other: object) -> bool:
        """Raises if CEL has no equality for the values.

        The exact form then compares by CEL's rules.
        """
        if not isinstance(other, Opaque) or self.type_name != other.type_name or other.detached:
            raise Unsure
        return bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash((self.type_name, self.value))

    def __getitem__(self, key: object) -> Any:
        """Returns a field, for the fast form; raises for a value without fields."""
        if type(self.value) is not NativeFields:
            raise Unsure
        return self.value.field(key)


@dataclass(frozen=True, slots=True)
class DoubleKey:
    """A double as a key of a map, which no integer finds; a double finds integers, too."""

    value: float


@dataclass(frozen=True, slots=True, eq=False)
class OtherKey:
    """A key that is found by identity alone: a list, map, optional or value of a library."""

    value: Value

    def __eq__(self, other: object) -> bool:
        return type(other) is OtherKey and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def key_of(value: Value) -> Value:
    """Returns the key of a value in a ``dict``."""
    of = type(value)
    if of is str or of is int:
        return value
    if of is bool:
        return _TRUE if value else _FALSE
    if of is Uint:
        return UintKey(value)
    if of is float:
        # Of a number that is none another: Python finds one by its identity, CEL none at all.
        return DoubleKey(float("nan") if value != value else value)  # noqa: PLR0124
    if of in _BY_IDENTITY and not (of is Opaque and value.type_name in _BY_VALUE):
        return OtherKey(value)
    return value


def entry_of(of: dict[Value, Value], key: Value) -> Value:
    """Returns a map's value for a key of :func:`key_of`; NOTHING where it has none."""
    entry = of.get(key, NOTHING)
    if entry is NOTHING and type(key) is not str:
        for other in equals_of(key):
            entry = of.get(other, NOTHING)
            if entry is not NOTHING:
                return entry
    return entry


def equals_of(key: Value) -> tuple[Value, ...]:
    """Keys of other types that a number finds, in this order (cel-go, common/types/map.go)."""
    if type(key) is int:
        return (UintKey(Uint(key)),) if key >= 0 else ()
    if type(key) is UintKey:
        return (int(key.value),) if key.value <= INT_MAX else ()
    if type(key) is DoubleKey and key.value.is_integer():
        whole = int(key.value)
        signed = (whole,) if INT_MIN < whole <= INT_MAX else ()
        return (*signed, UintKey(Uint(whole))) if 0 <= whole <= UINT_MAX else signed
    return ()


_TRUE: Final = BoolKey(True)
_FALSE: Final = BoolKey(False)


_BY_VALUE: Final = frozenset({"net.CIDR", "net.IP"})
_BY_IDENTITY: Final = frozenset({list, dict, Optional, Opaque})
_WRAPPED: Final = frozenset({BoolKey, DoubleKey, OtherKey, UintKey})


def from_key(key: Value) -> Value:
    """Returns the value of a ``dict``'s key."""
    return key.value if type(key) in _WRAPPED else key


TYPES: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    dict: "map",
    type(None): "null_type",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    TypeValue: "type",
    Optional: "optional_type",
    Lost: "error",
}
"""The names of the types of values that have one of their own."""

VARIABLES: Final = "kubernetes.variables"
"""The type of ``variables``, whose fields are computed when they are read; its class is the driver's."""


def type_name(value: Value) -> str:
    """Returns the name of a value's type."""
    if type(value) is Opaque:
        return value.type_name
    return TYPES.get(type(value), VARIABLES)
