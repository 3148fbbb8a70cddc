"""CEL's types and their compatibility (cel-go, checker/types.go)."""

from __future__ import annotations

import re
from typing import Final

from webhook.values import dataclass

_SHOWN: Final = {
    "*error*": "!error!",
    "null_type": "null",
    "google.protobuf.Duration": "duration",
    "google.protobuf.Timestamp": "timestamp",
}


@dataclass(frozen=True, slots=True)
class Type:
    """A type: its name and those of its parts. A message or opaque type has a dot in its name.

    ``free`` is a parameter of an overload, or one that is not known yet.
    """

    name: str
    parts: tuple[Type, ...] = ()
    free: bool = False
    message: bool = False

    def __str__(self) -> str:
        """Returns the type as error messages show it (cel-go, checker/format.go)."""
        name = self.name if self.free else _SHOWN.get(self.name, self.name)
        if not self.parts:
            return name
        return f"{name}({', '.join(str(part) for part in self.parts)})"

    @property
    def text(self) -> str:
        """Returns the type's name in messages."""
        if not self.parts:
            return self.name
        return f"{self.name}({', '.join(part.text for part in self.parts)})"

    @property
    def is_dyn(self) -> bool:
        """Whether it may be anything."""
        return self.name in {"dyn", "any"} and not self.free

    @property
    def is_wild(self) -> bool:
        """Whether it fits every type: dyn, or the type of a term with an error."""
        return self.is_dyn or self.name == "*error*"


DYN: Final = Type("dyn")
ERROR: Final = Type("*error*")
BOOL: Final = Type("bool")
INT: Final = Type("int")
UINT: Final = Type("uint")
DOUBLE: Final = Type("double")
STRING: Final = Type("string")
BYTES: Final = Type("bytes")
NULL: Final = Type("null_type")
DURATION: Final = Type("google.protobuf.Duration")
TIMESTAMP: Final = Type("google.protobuf.Timestamp")

_SCALARS: Final = frozenset({"bool", "int", "uint", "double", "string", "bytes"})


def list_of(item: Type) -> Type:
    """``list(item)``."""
    return Type("list", (item,))


def map_of(key: Type, value: Type) -> Type:
    """``map(key, value)``."""
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    """``optional_type(value)``."""
    return Type("optional_type", (value,))


def type_of(value: Type) -> Type:
    """``type(value)``."""
    return Type("type", (value,))


def unwrapped(value: Type) -> tuple[Type, bool]:
    """Returns the type within an optional type, and whether it was an optional type."""
    return (value.parts[0], True) if value.name == "optional_type" else (value, False)


# --- texts of types -------------------------------------------------------------------------------

_PART: Final = re.compile(r"[A-Za-z_.0-9]+|[(),]")
_WELL_KNOWN: Final = {"Duration": DURATION, "Timestamp": TIMESTAMP}


def read_type(text: str) -> Type:
    """Reads a type of the table of overloads; a single capital letter is a type parameter."""
    read, rest = _read(_PART.findall(text))
    assert not rest, text
    return read


def _read(parts: list[str]) -> tuple[Type, list[str]]:
    name, rest = parts[0], parts[1:]
    if len(name) == 1 and name.isupper():
        return Type(name, free=True), rest
    if name in _WELL_KNOWN:
        return _WELL_KNOWN[name], rest
    if not rest or rest[0] != "(":
        return Type(name), rest
    within: list[Type] = []
    while rest[0] != ")":
        part, rest = _read(rest[1:])
        within.append(part)
    return Type(name, tuple(within)), rest[1:]


# --- one type and another -------------------------------------------------------------------------


class Mapping:
    """The types of the type parameters that are known so far."""

    __slots__ = ("_before", "_found", "_made")

    def __init__(self) -> None:
        self._found: dict[Type, Type] = {}
        self._before: list[tuple[Type, Type | None]] = []
        """The bindings that each change replaced, to undo the changes of a failed comparison."""
        self._made = 0

    def new(self) -> Type:
        """Returns a new free type."""
        self._made += 1
        return Type(f"_var{self._made - 1}", free=True)

    def fits(self, first: Type, other: Type) -> bool:
        """Returns whether one type fits another; if so, keeps the bindings of free types."""
        return self.all_fit([first], [other])

    def all_fit(self, ones: list[Type], others: list[Type]) -> bool:
        """Returns whether the types of two lists fit, pair by pair."""
        if len(ones) != len(others):
            return False
        self._before.clear()
        for first, other in zip(ones, others, strict=True):
            if not self._fits(first, other):
                self._undo()
                return False
        return True

    def _undo(self) -> None:
        for free, known in reversed(self._before):
            if known is None:
                del self._found[free]
            else:
                self._found[free] = known

    def _set(self, free: Type, of: Type) -> None:
        self._before.append((free, self._found.get(free)))
        self._found[free] = of

    def _fits(self, first: Type, other: Type) -> bool:
        if other.free:
            valid, known = self._stands_for(first, other)
            if valid or known:
                return valid
        if first.free:
            return self._stands_for(other, first)[0]
        if first.is_wild or other.is_wild:
            return True
        if NULL in {first, other}:
            return first == other or _is_nullable(other if first == NULL else first)
        if first.name == "type":
            return other.name == "type"
        if first.name != other.name or len(first.parts) != len(other.parts):
            return False
        return all(self._fits(a, b) for a, b in zip(first.parts, other.parts, strict=True))

    def _stands_for(self, type_: Type, free: Type) -> tuple[bool, bool]:
        """Returns whether a type may stand for a free type, and whether that was known before."""
        if type_ == free:
            return True, True
        known = self._found.get(free)
        if known is not None:
            if type_ == known:
                return True, True
            if not self._fits(type_, known):
                return False, True
            general = type_ if _is_as_general(type_, known) else known
            if self._is_apart(free, general):
                self._set(free, general)
            return True, True
        if self._is_apart(free, type_):
            self._set(free, type_)
            return True, False
        return False, False

    def _is_apart(self, free: Type, within: Type) -> bool:
        if free == within:
            return False
        if within.free:
            bound = self._found.get(within)
            return bound is None or self._is_apart(free, bound)
        return all(self._is_apart(free, part) for part in within.parts)

    def resolved(self, of: Type, *, closed: bool = False) -> Type:
        """Returns a type with its free parts replaced; unbound parts are dyn if ``closed``."""
        if of.free:
            bound = self._found.get(of)
            if bound is not None:
                return self.resolved(bound, closed=closed)
            return DYN if closed else of
        if not of.parts:
            return of
        parts = tuple([self.resolved(part, closed=closed) for part in of.parts])
        return of if parts == of.parts else Type(of.name, parts, message=of.message)


def _is_nullable(of: Type) -> bool:
    """Returns whether null fits a type: opaque types, messages and times."""
    return of.message or of.name == "optional_type" or "." in of.name


def _is_as_general(first: Type, other: Type) -> bool:
    if first.is_dyn or first.free:
        return True
    if other.is_dyn or other.free or first.name != other.name:
        return False
    if first.name == "type":
        return True
    if len(first.parts) != len(other.parts):
        return False
    return all(_is_as_general(a, b) for a, b in zip(first.parts, other.parts, strict=True))


def more_general(first: Type, other: Type) -> Type:
    """Returns the more general of two types that fit each other."""
    return first if _is_as_general(first, other) else other
