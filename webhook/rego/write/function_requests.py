"""The functions that a program may want: each is written once, and has a name by its form."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TypeAlias

from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Hashable

    from webhook.rego.check import ir
    from webhook.rego.check.tree import Node
    from webhook.rego.write.expression import Expression, Kind


@dataclass(frozen=True, slots=True, eq=False)
class _OfNode:
    letter: ClassVar[str]
    node: Node

    @property
    def key(self) -> Hashable:
        """The key; requests with equal keys share a function."""
        return self.letter, id(self.node)


@dataclass(frozen=True, slots=True, eq=False)
class Document(_OfNode):
    """The whole document of the rules at a node, kept for the evaluation."""

    letter = "d"


@dataclass(frozen=True, slots=True, eq=False)
class Members(_OfNode):
    """The members of a partial set; equal members may repeat."""

    letter = "i"


@dataclass(frozen=True, slots=True, eq=False)
class Matching(_OfNode):
    """The members of a set of objects that have given properties; called any number of times."""

    letter = "m"
    given: tuple[tuple[str, Kind], ...]
    open: tuple[str, ...]
    """The properties of each member that the result holds."""

    @property
    def key(self) -> Hashable:
        """The key; requests with equal keys share a function."""
        return self.letter, id(self.node), self.given, self.open


@dataclass(frozen=True, slots=True, eq=False)
class Function(_OfNode):
    """A function of the policy; called any number of times."""

    letter = "f"
    given: tuple[Expression | None, ...] = ()
    """Operands that are known: it is written for them, and has the others as parameters."""

    @property
    def key(self) -> Hashable:
        """The key; requests with equal keys share a function."""
        given = tuple(
            [None if expression is None else expression.source for expression in self.given]
        )
        return self.letter, id(self.node), given


@dataclass(frozen=True, slots=True, eq=False)
class _Chosen(_OfNode):
    chosen: tuple[int, ...] | None = None
    """The rules below the node by number; None for all of them."""

    @property
    def key(self) -> Hashable:
        """The key; requests with equal keys share a function."""
        return self.letter, id(self.node), self.chosen


@dataclass(frozen=True, slots=True, eq=False)
class ObjectDocument(_Chosen):
    """The document of rules with variables in their reference."""

    letter = "o"


@dataclass(frozen=True, slots=True, eq=False)
class Built(_Chosen):
    """A document as its rules build it; its callers raise a conflict in it."""

    letter = "h"


@dataclass(frozen=True, slots=True, eq=False)
class PackageNode(_OfNode):
    """A package, for paths that are only known at run time."""

    letter = "n"


@dataclass(frozen=True, slots=True, eq=False)
class Collection:
    """A comprehension that parameters alone decide, kept for the evaluation."""

    letter: ClassVar[str] = "g"
    term: ir.Comprehension

    @property
    def key(self) -> Hashable:
        """The key; requests with equal keys share a function."""
        return self.letter, id(self.term)


@dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """The solutions of a comprehension by the values of variables around it, kept for the evaluation."""

    letter: ClassVar[str] = "w"
    term: ir.Comprehension
    names: tuple[str, ...]
    """The variables."""

    @property
    def key(self) -> Hashable:
        """The key; requests with equal keys share a function."""
        return self.letter, id(self.term), self.names


FunctionRequest: TypeAlias = (
    Document
    | Members
    | Matching
    | Function
    | ObjectDocument
    | Built
    | PackageNode
    | Collection
    | Grouped
)
