"""The flat form of rules between the syntax tree and Python.

Variables have names that are unique in their rule: a name beginning with a
space was made here (OPA's ``__local3__``), one with ``$`` was written ``_``, and
a declared one carries a number before its name. Unlike the syntax tree these
nodes are changed in place by the stages.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from webhook.rego.location import NOWHERE, Location
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.rego.run.values import Value


@dataclass(slots=True, eq=False)
class Const:
    """A value known at compile time."""

    value: Value


@dataclass(slots=True, eq=False)
class Var:
    """A variable; ``input`` and ``data`` are the roots unless declared anew."""

    name: str


@dataclass(slots=True, eq=False)
class Ref:
    """``head[path[0]][path[1]]…``."""

    head: Term
    path: list[Term]
    location: Location = NOWHERE


@dataclass(slots=True, eq=False)
class Array:
    """``[a, b]``, not constant."""

    items: list[Term]


@dataclass(slots=True, eq=False)
class Object:
    """``{k: v}``, not constant."""

    items: list[tuple[Term, Term]]


@dataclass(slots=True, eq=False)
class Set:
    """``{a, b}``, not constant."""

    items: list[Term]


@dataclass(slots=True, eq=False)
class Comprehension:
    """``[value | body]``, ``{value | body}`` or ``{key: value | body}``."""

    kind: Literal["array", "set", "object"]
    key: Term | None
    value: Term
    body: list[Lit]
    location: Location = NOWHERE


@dataclass(slots=True, eq=False)
class Template:
    """A template string: texts, and closures that each yield at most one value."""

    parts: list[str | Comprehension | Term]


@dataclass(slots=True, eq=False)
class Given:
    """A term whose value the generator already holds, in its own form.

    The checker treats it as a term computed before, of any type.
    """

    held: Any


Term: TypeAlias = Const | Var | Ref | Array | Object | Set | Comprehension | Template | Given

Function: TypeAlias = "str | tuple[str, ...]"
"""The called function: a built-in by name, or a rule by path, ``("data", "pkg", "f")``."""


@dataclass(slots=True, eq=False)
class With:
    """``with target as value``: target is a path below input or data, or a function."""

    target: tuple[str, ...]
    kind: Literal["input", "data", "function", ""]
    value: Term
    function: Function | None
    location: Location


@dataclass(slots=True, eq=False)
class Eq:
    """Unification; ``assign`` when written ``:=``."""

    a: Term
    b: Term
    location: Location
    assign: bool = False
    generated: bool = False
    negated: bool = False
    withs: list[With] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Call:
    """A call; its result is bound to ``out``, or must be neither false nor undefined."""

    name: Function
    args: list[Term]
    location: Location
    out: Term | None = None
    generated: bool = False
    negated: bool = False
    withs: list[With] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Test:
    """A term that must be neither false nor undefined."""

    term: Term
    location: Location
    negated: bool = False
    withs: list[With] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Every:
    """The body holds for every item of the domain."""

    key: Var
    value: Var
    domain: Term
    body: list[Lit]
    location: Location
    negated: bool = False
    withs: list[With] = field(default_factory=list)
    domain_location: Location = NOWHERE


@dataclass(slots=True, eq=False)
class Not:
    """The body has no solution; ``explicit`` when it was written in braces."""

    body: list[Lit]
    explicit: bool
    location: Location
    negated: bool = False
    withs: list[With] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Logic:
    """Both bodies, or either, have a solution."""

    operator: Literal["and", "or"]
    left: list[Lit]
    right: list[Lit]
    explicit_left: bool
    explicit_right: bool
    location: Location
    negated: bool = False
    withs: list[With] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Print:
    """``print(a, b)``: each operand is a closure over the variables bound before."""

    args: list[Comprehension]
    location: Location
    negated: bool = False
    withs: list[With] = field(default_factory=list)


Lit: TypeAlias = Eq | Call | Test | Every | Not | Logic | Print
Body: TypeAlias = list[Lit]

RuleKind = Literal["complete", "function", "set", "object"]


@dataclass(slots=True, eq=False)
class Rule:
    """A rule or one branch of an ``else`` chain.

    ``path`` is the constant beginning of its reference below ``data``, with the package; ``rest``
    has the terms from the first variable on. ``key`` is the member of a set, ``value`` the value of
    all other rules.
    """

    path: tuple[Value, ...]
    rest: list[Term]
    args: list[Term] | None
    key: Term | None
    value: Term | None
    body: Body
    location: Location
    module: Any
    default: bool = False
    else_: Rule | None = None
    names: dict[str, str] = field(default_factory=dict)
    head: Any = None
    """The head in the syntax tree, for the places of errors."""

    def branches(self) -> Iterator[Rule]:
        """Yields the rule and its ``else`` branches."""
        branch: Rule | None = self
        while branch is not None:
            yield branch
            branch = branch.else_

    @property
    def kind(self) -> RuleKind:
        """Returns the kind of document that the rule makes."""
        if self.args is not None:
            return "function"
        if self.key is not None and not self.rest:
            return "set"
        return "object" if self.rest else "complete"


def is_generated(name: str) -> bool:
    """Whether the variable was made by a stage."""
    return name[0] == " "


def is_wildcard(name: str) -> bool:
    """Whether the variable was written ``_``."""
    return name[0] == "$"
