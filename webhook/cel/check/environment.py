"""The names of expressions: variables, messages, functions, types (Kubernetes' environment)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import lru_cache
from typing import Final

from webhook.cel.check import types
from webhook.cel.check.overloads import NEWEST, ORDERED, OVERLOADS
from webhook.cel.check.types import Type, read_type
from webhook.values import dataclass


@dataclass(frozen=True, slots=True)
class Overload:
    """One overload of a function; the first operand of a member is its target."""

    member: bool
    args: tuple[Type, ...]
    result: Type
    free: tuple[Type, ...]


_ROW: Final = re.compile(r"(\S+) (\.?)\((.*)\) (\S.*)")


def _split(text: str) -> list[str]:
    """Returns the operands between commas outside of parentheses."""
    parts, depth, begin = [], 0, 0
    for at, mark in enumerate(text):
        depth += (mark == "(") - (mark == ")")
        if mark == "," and not depth:
            parts.append(text[begin:at])
            begin = at + 1
    return [*parts, text[begin:]] if text else []


def _free_in(of: Type) -> set[Type]:
    if of.free:
        return {of}
    return {free for part in of.parts for free in _free_in(part)}


def read_overloads(table: str) -> dict[str, tuple[Overload, ...]]:
    """The functions of a table like :data:`~webhook.cel.check.overloads.OVERLOADS`, in its order."""
    by_name: dict[str, list[Overload]] = {}
    for row in table.strip().splitlines():
        match = _ROW.fullmatch(row)
        assert match, row
        for of in ORDERED if "Ordered" in row else ("",):
            given, returned = (part.replace("Ordered", of) for part in match.group(3, 4))
            args, result = tuple(map(read_type, _split(given))), read_type(returned)
            free = tuple(sorted({f for arg in (*args, result) for f in _free_in(arg)}, key=str))
            overload = Overload(bool(match[2]), args, result, free)
            for name in match[1].split(","):
                by_name.setdefault(name, []).append(overload)
    return {name: tuple(overloads) for name, overloads in by_name.items()}


@lru_cache(maxsize=1)
def functions() -> dict[str, tuple[Overload, ...]]:
    """Returns every function with its overloads, in the environment's order."""
    return accepted_functions() | read_overloads(NEWEST)


@lru_cache(maxsize=1)
def accepted_functions() -> dict[str, tuple[Overload, ...]]:
    """Returns the functions that an API server accepts in new expressions, CRDs among them."""
    return read_overloads(OVERLOADS)


UNDEFINED: Final = {"duration": types.DURATION, "timestamp": types.TIMESTAMP}
"""Names of types known only to Kubernetes' checker, and to no evaluator."""

_FREE: Final = (Type("A", free=True), Type("B", free=True))

_TYPE_NAMES: Final = {
    **{name: Type(name) for name in ("bool", "int", "uint", "double", "string", "bytes")},
    **UNDEFINED,
    "null_type": types.NULL,
    "list": types.list_of(_FREE[0]),
    "map": types.map_of(*_FREE),
    "type": Type("type"),
    "optional_type": Type("optional_type"),
    **{
        name: Type(name)
        for name in ("google.protobuf.Duration", "google.protobuf.Timestamp", "net.IP", "net.CIDR")
    },
}
"""Types that have a name as values; their parameters are not named."""

VALUES: Final = _TYPE_NAMES.keys() - UNDEFINED.keys()
"""Names of types that evaluators know, too."""

JSON_PATCH: Final = "JSONPatch"
"""The type of one operation of a JSON Patch."""

OBJECT: Final = "Object"
"""The type of an object that an expression writes; its parts are ``Object.<field>.<field>``."""


def is_object(name: str) -> bool:
    """Returns whether this is the type of an object that an expression writes, or of its part."""
    return name == OBJECT or name.startswith(f"{OBJECT}.")


@dataclass(frozen=True, slots=True)
class Environment:
    """The declarations of a check.

    ``messages`` are the fields of declared types, by the type's name. ``container`` is the
    namespace for look-ups of names; Kubernetes has none.
    """

    variables: Mapping[str, Type]
    messages: Mapping[str, Mapping[str, Type]] = field(default_factory=dict)
    container: str = ""
    functions: Mapping[str, tuple[Overload, ...]] = field(default_factory=functions)
    patches: bool = False
    """Whether objects and JSON Patches can be written: ``Object{...}``, ``JSONPatch{...}``."""
    extended: bool = False
    """Whether ``cel.bind(name, value, body)`` names a value, and ``orValue`` is one of any value."""

    def candidates(self, name: str) -> Iterator[str]:
        """Returns the possible meanings of a name, the longest first."""
        if name.startswith("."):
            yield name[1:]
            return
        prefix = self.container
        while prefix:
            yield f"{prefix}.{name}"
            prefix = prefix.rpartition(".")[0]
        yield name

    def type_named(self, name: str) -> Type | None:
        """Returns the type that is a value of this name."""
        if self.patches and (name == JSON_PATCH or is_object(name)):
            return Type(name, message=True)
        return _TYPE_NAMES.get(name)

    def field_type(self, message: str, name: str) -> Type | None:
        """Returns the type of a field of a message; None for an unknown field."""
        if self.patches and is_object(message):
            return types.DYN  # of no schema: whether the field is there is found when it is applied
        return self.messages.get(message, {}).get(name)
