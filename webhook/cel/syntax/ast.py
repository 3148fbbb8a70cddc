"""The syntax tree of an expression. A macro is a node of its own, and is not expanded as in cel-go.

Nodes are compared by identity: the checker keeps types and names in dicts whose keys are nodes.
``at`` is an offset in code points.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any, Literal, TypeAlias

from webhook.values import dataclass

FoldKind: TypeAlias = Literal[
    "all", "exists", "exists_one", "map", "filter", "list", "map_value", "map_entry"
]
"""The kind of a comprehension by its result: ``list`` is transformList, ``map_value``
transformMap."""


def place_of(source: str, at: int) -> tuple[int, int]:
    """Returns the line, from 1, and the column in code points, from 0, of an offset."""
    line = source.count("\n", 0, at) + 1
    return line, at - (source.rfind("\n", 0, at) + 1)


@dataclass(slots=True, eq=False)
class Node:
    """A node of the tree."""

    at: int


@dataclass(slots=True, eq=False)
class Constant(Node):
    """A literal: bool, int, Uint, float, str, bytes or None."""

    value: Any


@dataclass(slots=True, eq=False)
class Name(Node):
    """An identifier; ``.x`` begins with a dot."""

    name: str


@dataclass(slots=True, eq=False)
class Select(Node):
    """``operand.field``; ``tests`` for ``has(operand.field)``, ``optional`` for ``operand.?field``."""

    operand: Expr
    field: str
    tests: bool = False
    optional: bool = False


@dataclass(slots=True, eq=False)
class Call(Node):
    """``function(args)``, or ``target.function(args)``."""

    function: str
    args: list[Expr]
    target: Expr | None = None


@dataclass(slots=True, eq=False)
class ListOf(Node):
    """``[a, ?b]``; ``optional`` are the positions of items with a question mark."""

    items: list[Expr]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class Entry(Node):
    """``key: value`` or ``?key: value``."""

    key: Expr
    value: Expr
    optional: bool = False


@dataclass(slots=True, eq=False)
class MapOf(Node):
    """``{k: v}``."""

    entries: list[Entry]


@dataclass(slots=True, eq=False)
class FieldOf(Node):
    """``name: value`` of a message."""

    name: str
    value: Expr
    optional: bool = False


@dataclass(slots=True, eq=False)
class Message(Node):
    """``some.Type{field: value}``."""

    type_name: str
    fields: list[FieldOf]


@dataclass(slots=True, eq=False)
class Fold(Node):
    """A comprehension over ``range``: its variables, a filter (``test``), and the ``body`` of an item.

    ``key`` is the node with which cel-go's transformMap reads its first variable; others have none.
    """

    kind: FoldKind
    range: Expr
    first: str
    second: str | None
    test: Expr | None
    body: Expr
    key: Name | None = None


@dataclass(slots=True, eq=False)
class OptMap(Node):
    """``target.optMap(name, body)``, or optFlatMap if ``flat``.

    ``variable`` is the node by which cel-go's macro reads the name, even if the body does not.
    """

    target: Expr
    variable: Name
    body: Expr
    flat: bool


@dataclass(slots=True, eq=False)
class SortBy(Node):
    """``target.sortBy(name, key)``."""

    target: Expr
    name: str
    key: Expr


@dataclass(slots=True, eq=False)
class Bind(Node):
    """``cel.bind(name, value, body)``: the value is computed where the body reads it first."""

    name: str
    value: Expr
    body: Expr


Expr: TypeAlias = (
    "Constant | Name | Select | Call | ListOf | MapOf | Message | Fold | OptMap | SortBy | Bind"
)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed expression with its text."""

    source: str = field(repr=False)
    root: Expr


def children(node: Expr) -> Iterator[Expr]:
    """Yields the operands of an expression, in the order of its text."""
    match node:
        case Select():
            yield node.operand
        case Call():
            if node.target is not None:
                yield node.target
            yield from node.args
        case ListOf():
            yield from node.items
        case MapOf():
            for entry in node.entries:
                yield entry.key
                yield entry.value
        case Message():
            for field_ in node.fields:
                yield field_.value
        case Fold():
            yield node.range
            if node.test is not None:
                yield node.test
            if node.key is not None:
                yield node.key
            yield node.body
        case OptMap():
            yield node.target
            yield node.variable
            yield node.body
        case SortBy(target=first, key=second) | Bind(value=first, body=second):
            yield first
            yield second
        case _:
            return


def qualified(node: Expr) -> str | None:
    """Returns ``a.b.c`` as one name; None for any other expression."""
    if isinstance(node, Name):
        return node.name
    if isinstance(node, Select) and not node.tests and not node.optional:
        prefix = qualified(node.operand)
        return None if prefix is None else f"{prefix}.{node.field}"
    return None
