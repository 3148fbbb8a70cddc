"""The known facts of values at a place in a function: keys to the locals that hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from webhook.values import dataclass

if TYPE_CHECKING:
    from webhook.rego.run.values import Value


@dataclass(frozen=True, slots=True)
class CountOf:
    """How many members a local's value has."""

    local: str


@dataclass(frozen=True, slots=True)
class KindOf:
    """A local whose kind was found out."""

    local: str


@dataclass(frozen=True, slots=True)
class SizeOf:
    """The collection that a set was made of; its length needs no call."""

    local: str


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a path begins: at a root of an evaluation's state, or at a local."""

    local: str
    root: Literal["input", "data", ""] = ""


@dataclass(frozen=True, slots=True)
class ValueAt:
    """The value at a path of constant names."""

    origin: Origin
    names: tuple[Value, ...] = ()


Fact: TypeAlias = CountOf | KindOf | SizeOf | ValueAt
