"""The nodes of a layout: OPA's tree of a file, in which every node knows the text it came from.

OPA's own quirks of places are kept, for its layout shows them: a term in parentheses begins at what
stands in them, but its text includes them; what follows ``else if`` without braces is all in one place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.rego.syntax.lexer import Source

Elements = list[Any]
"""Terms, pairs of an object's key and value, or literals of a body."""


class Place:
    """Where a node begins, and a text, which need not begin there."""

    __slots__ = ("col", "end", "offset", "row", "source", "start", "synthetic")

    def __init__(self, source: Source, offset: int, start: int, end: int) -> None:
        self.source = source
        self.offset = offset
        self.start = start
        self.end = end
        self.row, self.col = source.row_and_column(offset)
        self.synthetic = False

    @property
    def text(self) -> str:
        """The source text."""
        return self.source.text[self.start : self.end]

    @property
    def in_parentheses(self) -> bool:
        """Whether the text begins with a parenthesis."""
        return self.source.text[self.start : self.start + 1] == "("

    @property
    def end_row(self) -> int:
        """The line of the last character, if the text began where the node does."""
        return self.row + self.text.count("\n")

    def spanning(self, start: int, end: int) -> Place:
        """This place with another text."""
        return Place(self.source, self.offset, start, end)

    def on_row(self, row: int) -> Place:
        """This place on another line, for the layout only."""
        moved = Place(self.source, self.offset, self.start, self.end)
        moved.row = row
        return moved


def synthetic_place(source: Source, row: int = 1) -> Place:
    """The place of what was not written."""
    place = Place(source, 0, 0, 0)
    place.row, place.col, place.synthetic = row, 1, True
    return place


@dataclass(slots=True, eq=False)
class CommentNode:
    """A comment: its text as written, and as it is shown."""

    row: int
    col: int
    written: str
    shown: str

    @property
    def is_metadata(self) -> bool:
        """Whether a block of annotations begins with it."""
        return self.col == 1 and self.shown[1:].strip().startswith("METADATA")


@dataclass(slots=True, eq=False)
class TermNode:
    """A term: ``value`` is by its kind, which is OPA's name of it.

    A number and a variable have their text; a string what it means; ``ref``, ``call``, ``array`` and
    ``set`` a list of terms, a call's operator first; an object pairs; a comprehension its heads and
    its body; a template string its parts and whether it is raw.
    """

    kind: str
    value: Any
    place: Place


@dataclass(slots=True, eq=False)
class WithNode:
    """A ``with`` modifier."""

    target: TermNode
    value: TermNode
    place: Place


@dataclass(slots=True, eq=False)
class SomeNode:
    """``some``: variables, or one call of ``in``."""

    symbols: list[TermNode]
    place: Place


@dataclass(slots=True, eq=False)
class EveryNode:
    """``every``."""

    key: TermNode | None
    value: TermNode
    domain: TermNode
    body: BodyNode
    place: Place


@dataclass(slots=True, eq=False)
class NotNode:
    """``not`` before a body, in braces where that is explicit."""

    body: BodyNode
    explicit: bool
    place: Place


@dataclass(slots=True, eq=False)
class LogicalNode:
    """``and`` or ``or`` of two bodies, each in braces where that is explicit."""

    operator: str
    left: BodyNode
    right: BodyNode
    explicit_left: bool
    explicit_right: bool
    place: Place


@dataclass(slots=True, eq=False)
class ExprNode:
    """A literal: a term, a call as the list of its terms, or a statement."""

    terms: TermNode | list[TermNode] | SomeNode | EveryNode | NotNode | LogicalNode
    place: Place
    negated: bool = False
    withs: list[WithNode] = field(default_factory=list)


BodyNode = list[ExprNode]


@dataclass(slots=True, eq=False)
class HeadNode:
    """A rule's head, whose ``ref`` begins with the rule's name."""

    ref: list[TermNode]
    args: list[TermNode]
    key: TermNode | None
    value: TermNode | None
    assign: bool
    place: Place
    is_else: bool = False


@dataclass(slots=True, eq=False)
class RuleNode:
    """A rule. Where no body was written, that is ``true``."""

    head: HeadNode
    body: BodyNode
    default: bool
    else_: RuleNode | None
    place: Place


@dataclass(slots=True, eq=False)
class ImportNode:
    """An import; its path's names, and the alias or nothing."""

    path: list[TermNode]
    alias: str
    place: Place

    @property
    def names(self) -> list[str]:
        """The names of the path."""
        return [one.value for one in self.path]

    @property
    def dotted(self) -> str:
        """The path as text."""
        return ".".join(self.names)

    @property
    def keyword(self) -> str:
        """The future keyword that this imports alone, or nothing."""
        names = self.names
        alone = len(names) == 3 and names[:2] == ["future", "keywords"] and not self.alias
        return names[2] if alone else ""


@dataclass(slots=True, eq=False)
class FileNode:
    """A package with all that stands in its text, comments included."""

    package: list[TermNode]
    package_place: Place
    imports: list[ImportNode]
    rules: list[RuleNode]
    comments: list[CommentNode]
    source: Source


def children(node: Any) -> Iterator[Any]:
    """The nodes right below one, in OPA's order; names of rules are none."""
    if isinstance(node, TermNode):
        yield from _of_term(node)
    elif isinstance(node, ExprNode):
        yield from node.terms if isinstance(node.terms, list) else [node.terms]
        yield from node.withs
    elif isinstance(node, WithNode):
        yield from (node.target, node.value)
    elif isinstance(node, SomeNode):
        yield from node.symbols
    elif isinstance(node, EveryNode):
        if node.key is not None:
            yield node.key
        yield from (node.value, node.domain, *node.body)
    elif isinstance(node, NotNode):
        yield from node.body
    elif isinstance(node, LogicalNode):
        yield from (*node.left, *node.right)
    elif isinstance(node, RuleNode):
        head = node.head
        yield from head.args
        yield from (one for one in (head.key, head.value) if one is not None)
        yield from node.body
        if node.else_ is not None:
            yield node.else_


def _of_term(term: TermNode) -> Iterator[Any]:
    value = term.value
    if term.kind in {"ref", "call", "array", "set"}:
        yield from value
    elif term.kind == "object":
        for pair in value:
            yield from pair
    elif term.kind.endswith("comprehension"):
        *heads, body = value
        yield from (*heads, *body)
    elif term.kind == "templatestring":
        yield from value[0]


def walk(node: Any) -> Iterator[Any]:
    """A node and all below it, parents first."""
    todo = [node]
    while todo:
        one = todo.pop()
        yield one
        todo.extend(reversed([*children(one)]))


TRUE = "true"


def is_true(term: Any) -> bool:
    """Whether this is the literal ``true``."""
    return isinstance(term, TermNode) and term.kind == "boolean" and term.value == TRUE


def is_constant(rule: RuleNode) -> bool:
    """Whether the rule is written without its body."""
    if len(rule.body) != 1 or rule.else_ is not None:
        return False
    only = rule.body[0]
    return not only.negated and not only.withs and is_true(only.terms)
