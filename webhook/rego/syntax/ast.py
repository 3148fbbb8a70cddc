"""The syntax tree of Rego: made by the parser and read by every later stage.

Node names are those of OPA's own ``ast`` package, so that its documentation explains ours. Nodes
are immutable, which the type checker enforces; a stage that rewrites makes new nodes. Every node
carries the :class:`Location` it came from, and equality ignores it.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from webhook.rego.location import NOWHERE, Location
from webhook.values import made

RegoVersion: TypeAlias = Literal["v0", "v1"]


if TYPE_CHECKING:
    from dataclasses import dataclass as node
else:

    def node(*, frozen: bool, slots: bool) -> Any:
        """Returns a dataclass that is immutable for the type checker only.

        A check at run time would double the cost of each node, and there is a node for nearly every
        token.
        """
        return made(unsafe_hash=frozen, slots=slots)


def _location() -> Any:
    return field(default=NOWHERE, compare=False, repr=False, kw_only=True)


# --- terms ---------------------------------------------------------------------------------


@node(frozen=True, slots=True)
class Null:
    """The scalar ``null``: a value, and not undefined."""

    location: Location = _location()


@node(frozen=True, slots=True)
class Boolean:
    """``true`` or ``false``."""

    value: bool
    location: Location = _location()


@node(frozen=True, slots=True)
class Number:
    """A number literal, kept as its source text: ``1.0`` and ``1`` print differently in OPA."""

    text: str
    location: Location = _location()


@node(frozen=True, slots=True)
class String:
    """A string literal, decoded; ``raw`` when it was written between back quotes."""

    value: str
    raw: bool = field(default=False, compare=False)
    location: Location = _location()


@node(frozen=True, slots=True)
class Var:
    """A variable, ``input`` and ``data`` among them.

    The parser gives each wildcard ``_`` a name of its own, ``$0``, ``$1`` …, as
    OPA does; no name written by a user can begin with a dollar sign.
    """

    name: str
    location: Location = _location()

    @property
    def is_wildcard(self) -> bool:
        """Whether this was written as ``_``."""
        return self.name.startswith("$")


@node(frozen=True, slots=True)
class Ref:
    """``head.path[0][x]``: ``.name`` is the string path element ``"name"``.

    The head is a :class:`Var`, a call, a literal collection, a comprehension or a string.
    """

    head: Term
    path: tuple[Term, ...]
    location: Location = _location()


@node(frozen=True, slots=True)
class Array:
    """``[a, b]``."""

    items: tuple[Term, ...]
    location: Location = _location()


@node(frozen=True, slots=True)
class Object:
    """``{k: v}``, in source order."""

    items: tuple[tuple[Term, Term], ...]
    location: Location = _location()


@node(frozen=True, slots=True)
class Set:
    """``{a, b}``; the empty set is written ``set()``, and the parser takes that for it."""

    items: tuple[Term, ...]
    location: Location = _location()


@node(frozen=True, slots=True)
class ArrayComprehension:
    """``[term | body]``."""

    term: Term
    body: Body
    location: Location = _location()


@node(frozen=True, slots=True)
class SetComprehension:
    """``{term | body}``."""

    term: Term
    body: Body
    location: Location = _location()


@node(frozen=True, slots=True)
class ObjectComprehension:
    """``{key: value | body}``."""

    key: Term
    value: Term
    body: Body
    location: Location = _location()


COMPREHENSIONS: Final = (ArrayComprehension, SetComprehension, ObjectComprehension)


@node(frozen=True, slots=True)
class Call:
    """A call of a built-in or function; operators are calls under their built-in's name.

    ``a + b`` is ``plus(a, b)``, ``x in xs`` is ``internal.member_2(x, xs)``,
    ``k, v in xs`` is ``internal.member_3(k, v, xs)``; ``=`` is ``eq`` and ``:=``
    is ``assign``. The operator of ``strings.any_prefix_match`` is the
    :class:`Ref` with head ``Var("strings")``; of ``plus``, the bare ``Var``.
    """

    operator: Var | Ref
    args: tuple[Term, ...]
    infix: bool = field(default=False, compare=False)
    location: Location = _location()


@node(frozen=True, slots=True)
class TemplateString:
    """``$"text {term}"``: its parts, literal text as ``str``, each term as written.

    An expression with modifiers, a negation or logic is a literal of a body.
    """

    parts: tuple[str | Term | Literal_, ...]
    raw: bool = field(default=False, compare=False)
    location: Location = _location()


Term: TypeAlias = (
    Null
    | Boolean
    | Number
    | String
    | Var
    | Ref
    | Array
    | Object
    | Set
    | ArrayComprehension
    | SetComprehension
    | ObjectComprehension
    | Call
    | TemplateString
)


# --- bodies --------------------------------------------------------------------------------


@node(frozen=True, slots=True)
class With:
    """``with target as value``; the target is a reference to input, data or a function."""

    target: Var | Ref
    value: Term
    location: Location = _location()


@node(frozen=True, slots=True)
class Expr:
    """One literal of a body: a term that must be neither false nor undefined."""

    term: Term
    negated: bool = False
    with_: tuple[With, ...] = ()
    location: Location = _location()


@node(frozen=True, slots=True)
class SomeDecl:
    """``some x, y``: declares local variables."""

    names: tuple[Var, ...]
    location: Location = _location()


@node(frozen=True, slots=True)
class SomeIn:
    """``some value in domain`` and ``some key, value in domain``."""

    key: Term | None
    value: Term
    domain: Term
    with_: tuple[With, ...] = ()
    location: Location = _location()


@node(frozen=True, slots=True)
class Every:
    """``every value in domain { body }`` and ``every key, value in domain { body }``."""

    key: Var | None
    value: Var
    domain: Term
    body: Body
    negated: bool = False
    with_: tuple[With, ...] = ()
    location: Location = _location()


@node(frozen=True, slots=True)
class Not:
    """``not { body }``: holds where the body has no solution."""

    body: Body
    with_: tuple[With, ...] = ()
    location: Location = _location()


@node(frozen=True, slots=True)
class Logic:
    """``left and right`` or ``left or right``, each side a body; a grouping is a body too."""

    operator: Literal["and", "or"]
    left: Body
    right: Body
    negated: bool = False
    with_: tuple[With, ...] = ()
    location: Location = _location()


Literal_: TypeAlias = Expr | SomeDecl | SomeIn | Every | Not | Logic
Body: TypeAlias = tuple[Literal_, ...]


# --- modules -------------------------------------------------------------------------------


@node(frozen=True, slots=True)
class Head:
    """A rule's head.

    ``ref`` is the whole reference as written, ``p.q[x]`` with its dynamic part
    included (a v0 partial set ``p[x]`` has ``ref`` ``p`` and ``key`` ``x``; a
    ``p contains x`` likewise; ``p[k] = v`` and ``p.q[k] := v`` have the key in
    ``ref`` and no ``key``). ``args`` is None unless the rule is a function.
    """

    ref: Ref
    args: tuple[Term, ...] | None = None
    key: Term | None = None
    value: Term | None = None
    assign: bool = False
    contains: bool = False
    location: Location = _location()


@node(frozen=True, slots=True)
class Rule:
    """One definition. Chained bodies (``p { … } { … }``) have been split into rules.

    ``body`` is empty when none was written (a constant head). ``else_`` is the next branch of an
    ``else`` chain; its head repeats the reference and arguments of the first branch and has its own
    value.
    """

    head: Head
    body: Body = ()
    default: bool = False
    else_: Rule | None = None
    annotations: tuple[Annotations, ...] = field(default=(), compare=False)
    location: Location = _location()


@node(frozen=True, slots=True)
class Import:
    """``import data.lib as alias``."""

    path: Ref
    alias: str | None = None
    location: Location = _location()


@node(frozen=True, slots=True)
class Annotations:
    """A ``# METADATA`` block: its YAML as a JSON object, with ``scope`` filled in."""

    scope: str
    value: dict[str, Any]
    location: Location = _location()


@node(frozen=True, slots=True)
class Module:
    """One source file. ``package`` always begins with ``data``."""

    package: Ref
    imports: tuple[Import, ...]
    rules: tuple[Rule, ...]
    version: RegoVersion
    file: str = ""
    annotations: tuple[Annotations, ...] = field(default=(), compare=False)
    comments: tuple[tuple[Location, str], ...] = field(default=(), compare=False)
    source: str = field(default="", compare=False, repr=False)
    location: Location = _location()
