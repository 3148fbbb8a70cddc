"""The tree of a text of HCL.

Bodies, attributes, blocks, and expressions as far as JSON requires.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from webhook.values import dataclass


@dataclass(frozen=True, slots=True)
class Expression:
    """Any expression with its position: from ``start`` up to ``end``."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Literal(Expression):
    """A number, boolean or null."""

    value: Any = None


@dataclass(frozen=True, slots=True)
class Negation(Expression):
    """``-x`` or ``!x``."""

    operator: str = "-"
    operand: Expression | None = None


@dataclass(frozen=True, slots=True)
class Traversal(Expression):
    """A variable with attributes and constant indices: ``a.b[0]``."""


@dataclass(frozen=True, slots=True)
class Tuple(Expression):
    """``[a, b]``."""

    items: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Object(Expression):
    """``{a = b}``."""

    items: tuple[tuple[Expression, Expression], ...] = ()


@dataclass(frozen=True, slots=True)
class Conditional(Expression):
    """``a ? b : c``, or a template's ``%{if}``."""

    condition: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True, slots=True)
class Template(Expression):
    """A quoted text or a heredoc: texts and expressions in sequence."""

    parts: tuple[str | Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Loop(Expression):
    """A template's ``%{for}``."""

    names: tuple[str, ...]
    collection: Expression
    body: Template


@dataclass(frozen=True, slots=True)
class Block:
    """``kind "label" { … }``."""

    kind: str
    labels: tuple[str, ...]
    body: Body
    start: int


@dataclass(slots=True)
class Body:
    """Attributes by name, and blocks in order."""

    attributes: dict[str, Expression] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Wrapped(Expression):
    """A template that is a single ``${…}``: its expression."""

    inner: Expression
