"""The nodes of a layout: OPA's tree of a file, each node with its source text.

OPA's quirks of places are kept, as its layout shows them. A term in parentheses begins inside them,
but its text includes them. The nodes behind ``else if`` without braces share one place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.rego.syntax.lexer import Source

Elements = list[Any]
"""Terms, pairs of an object's key and value, or literals of a body."""


class Place:
    """The beginning of a node, and its text, which may begin elsewhere."""

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
        """The row of the text's last character, counted from the node's row."""
        return self.row + self.text.count("\n")

    def spanning(self, start: int, end: int) -> Place:
        """Returns this place with another text."""
        return Place(self.source, self.offset, start, end)

    def on_row(self, row: int) -> Place:
        """Returns this place on another line, for the layout only."""
        moved = self.spanning(self.start, self.end)
        moved.row = row
        return moved


def synthetic_place(source: Source, row: int = 1) -> Place:
    """Returns the place of a node that is not in the source."""
    place = Place(source, 0, 0, 0)
    place.row, place.col, place.synthetic = row, 1, True
    return place


@dataclass(slots=True, eq=False)
class CommentNode:
    """A comment: its text in the source, and its text in the layout."""

    row: int
    col: int
    written: str
    shown: str

    @property
    def is_metadata(self) -> bool:
        """Whether the comment begins a block of annotations."""
        return self.col == 1 and self.shown[1:].strip().startswith("METADATA")


@dataclass(slots=True, eq=False)
class TermNode:
    """A term: ``kind`` is OPA's name of its kind and decides the type of ``value``.

    ``value`` by kind: the text of a number or variable; the contents of a string; a list of terms
    for ``ref``, ``call`` (operator first), ``array`` and ``set``; the pairs of an object; heads and
    body of a comprehension; the parts of a template string, and whether it is raw.
    """

    kind: str
    value: Any
    place: Place


@dataclass(slots=True, eq=False)
class WithNode:
    """A modifier: ``with target as value``."""

    target: TermNode
    value: TermNode
    place: Place


@dataclass(slots=True, eq=False)
class SomeNode:
    """``some x, y``, or ``some x in xs``: variables, or a call of ``in``."""

    symbols: list[TermNode]
    place: Place


@dataclass(slots=True, eq=False)
class EveryNode:
    """``every key, value in domain { body }``; ``key`` is optional."""

    key: TermNode | None
    value: TermNode
    domain: TermNode
    body: BodyNode
    place: Place


@dataclass(slots=True, eq=False)
class NotNode:
    """``not`` before a body, with braces if they are explicit."""

    body: BodyNode
    explicit: bool
    place: Place


@dataclass(slots=True, eq=False)
class LogicalNode:
    """``and`` or ``or`` of two bodies, each with braces if they are explicit."""

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
    """A rule's head; ``ref`` begins with the rule's name."""

    ref: list[TermNode]
    args: list[TermNode]
    key: TermNode | None
    value: TermNode | None
    assign: bool
    place: Place
    is_else: bool = False


@dataclass(slots=True, eq=False)
class RuleNode:
    """A rule. The body is ``true`` if the source has none."""

    head: HeadNode
    body: BodyNode
    default: bool
    else_: RuleNode | None
    place: Place


@dataclass(slots=True, eq=False)
class ImportNode:
    """An import: the names of its path, and its alias or an empty text."""

    path: list[TermNode]
    alias: str
    place: Place

    @property
    def names(self) -> list[str]:
        """The names of the path."""
        return [part.value for part in self.path]

    @property
    def dotted(self) -> str:
        """The path as text."""
        return ".".join(self.names)

    @property
    def keyword(self) -> str:
        """The future keyword that this import names, or an empty text."""
        names = self.names
        alone = len(names) == 3 and names[:2] == ["future", "keywords"] and not self.alias
        return names[2] if alone else ""


@dataclass(slots=True, eq=False)
class FileNode:
    """A package with its imports, rules and comments."""

    package: list[TermNode]
    package_place: Place
    imports: list[ImportNode]
    rules: list[RuleNode]
    comments: list[CommentNode]
    source: Source


def children(node: Any) -> Iterator[Any]:
    """Yields the direct children of a node, in OPA's order; names of rules are left out."""
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
        yield from (term for term in (head.key, head.value) if term is not None)
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
    """Yields a node and its descendants, parents first."""
    todo = [node]
    while todo:
        part = todo.pop()
        yield part
        todo.extend(reversed([*children(part)]))


TRUE: Final = "true"


def is_true(term: Any) -> bool:
    """Returns whether a term is the literal ``true``."""
    return isinstance(term, TermNode) and term.kind == "boolean" and term.value == TRUE


def is_constant(rule: RuleNode) -> bool:
    """Returns whether a rule is written without a body."""
    if len(rule.body) != 1 or rule.else_ is not None:
        return False
    only = rule.body[0]
    return not only.negated and not only.withs and is_true(only.terms)
