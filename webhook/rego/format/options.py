"""The rules of a layout: the target versions of Rego, and the effect of imports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from webhook.rego.format.names import text
from webhook.rego.format.nodes import EveryNode, ExprNode, LogicalNode, NotNode, RuleNode, walk
from webhook.rego.syntax import tokens as t

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.rego.format.nodes import FileNode

Target: TypeAlias = Literal["v0", "v0v1", "v1"]
"""The versions of Rego that can parse the result; ``v0v1`` is both."""

_V0: Final = frozenset(t.KEYWORDS)
_V1: Final = _V0 | frozenset(t.FUTURE_V0)
_V2: Final = _V1 | frozenset(t.FUTURE_V1)


@dataclass(slots=True)
class LayoutRules:
    """The rules of a layout, from a file's imports and rules, and the target."""

    target: Target
    contains: bool = False
    ifs: bool = False
    ref_heads: bool = False
    has_v2: bool = False
    future_keywords: list[str] = field(default_factory=list)
    needed_keywords: set[str] = field(default_factory=set)

    @property
    def v1(self) -> bool:
        """Whether the target includes v1."""
        return self.target != "v0"

    @property
    def keywords(self) -> frozenset[str]:
        """Returns the words that are keywords under the file's version and imports."""
        if self.has_v2:
            return _V2
        return (_V1 if self.v1 else _V0) | frozenset(self.future_keywords)


def options_of(file: FileNode, target: Target) -> LayoutRules:
    """Returns the layout rules of a file."""
    options = LayoutRules(target)
    options.contains = options.ifs = options.v1
    for import_ in file.imports:
        path = import_.dotted
        if import_.keyword:
            options.future_keywords.append(import_.keyword)
        options.has_v2 |= path == "rego.v2"
        everything = path in {"rego.v1", "rego.v2", "future.keywords"}
        options.contains |= everything or import_.names == ["future", "keywords", "contains"]
        options.ifs |= everything or import_.names == ["future", "keywords", "if"]
    for rule in file.rules:
        options.ref_heads |= _needs_ref_heads(rule)
        for node in walk(rule):
            options.needed_keywords.update(_needed(node))
    return options


def _needs_ref_heads(rule: RuleNode) -> bool:
    head = rule.head
    return len(head.ref) > 2 or (len(head.ref) == 2 and head.key is not None and head.value is None)


def _needed(node: object) -> Iterator[str]:
    """Yields the future keywords that a node is written with."""
    if not isinstance(node, ExprNode):
        return
    terms = node.terms
    if isinstance(terms, list) and text(terms[0]).startswith("internal.member_"):
        yield "in"
    elif isinstance(terms, EveryNode):
        yield "every"
    elif isinstance(terms, NotNode):
        yield "not"
    elif isinstance(terms, LogicalNode):
        yield terms.operator
        if node.negated:
            yield "not"
