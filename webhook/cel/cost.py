"""Estimates the cost of an evaluation as Kubernetes counts it, before there is an object.

The content of objects is unknown. So the estimate assumes the same number of entries in all lists
and maps, texts of :data:`TEXT` characters, and no early end at an operand. Each node has the cost
of cel-go's tracker during an evaluation (interpreter/runtimecost.go; k8s.io/apiserver,
pkg/cel/library/cost.go, CallCost).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from webhook.cel.check.types import STRING
from webhook.cel.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.cel.check.checker import Checked

ENTRIES: Final = 100
"""The entries of each list and map: a typical number for an object in use. The largest object that
an API server stores has some ten thousand, for which hardly a nested loop could be written.
"""

TEXT: Final = 100
"""Characters of a text that is not known: no name, label or image of a kind in use is longer."""

_CHARACTER: Final = 0.1
_PATTERN: Final = 0.25
_LIST, _MAP = 10, 30

_TURNS: Final = {
    "all": 3,
    "exists": 4,
    "exists_one": 0,
    "map": 12,
    "filter": 13,
    "list": 12,
    "map_value": 3,
    "map_entry": 4 + _MAP,
}
"""The cost of one turn of a macro, by the fold's kind, without the cost of its expressions."""

_FREE: Final = frozenset({"_&&_", "_||_", "_?_:_", "orValue", "or", "hasValue", "value"})
_READ_ONCE: Final = frozenset(
    {"startsWith", "endsWith", "lowerAscii", "upperAscii", "substring", "trim", "url", "isURL"}
    | {"cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"}
    | {"strings.quote", "format"}
)
"""Functions that read the whole of one text."""

_READ_TWICE: Final = frozenset({"replace", "split", "ip.isCanonical"})
_OVER_ITEMS: Final = frozenset(
    {"sum", "min", "max", "isSorted", "indexOf", "lastIndexOf", "includes"}
)
_OVER_PAIRS: Final = frozenset({"sets.contains", "sets.intersects", "sets.equivalent"})


def estimated_cost(checked: Checked, entries: int) -> int:
    """Returns the cost over lists and maps of so many entries."""
    return _Estimate(checked, entries).cost(checked.parsed.root)


def cost_together(expressions: Sequence[Checked], entries: int = ENTRIES) -> int:
    """The cost of several expressions that share a limit."""
    return sum(estimated_cost(expression, entries) for expression in expressions)


def cost_warning(
    expressions: Sequence[Checked], limit: int, noun: str, evaluator: str = "an API server"
) -> str:
    """Why an evaluator would end expressions that share a limit; empty where it would not.

    ``noun`` names in the text what the limit is for, ``evaluator`` who would end the expressions.
    """
    if cost_together(expressions) <= limit:
        return ""
    fits, ended = 0, ENTRIES
    while ended - fits > 1:
        middle = (fits + ended) // 2
        if cost_together(expressions, middle) > limit:
            ended = middle
        else:
            fits = middle
    return (
        f"{evaluator} would end it where lists and maps have {ended} entries and more: "
        f"{noun} may cost {limit:,} there (estimated, with texts of {TEXT} characters)"
    )


class _Estimate:
    def __init__(self, checked: Checked, entries: int) -> None:
        self.checked = checked
        self.entries = entries

    def cost(self, node: ast.Expr) -> int:
        if _is_constant(node):
            return 0
        match node:
            case ast.Name():
                return 1
            case ast.Select():
                return self.cost(node.operand) + (0 if node.tests else 1)
            case ast.Call():
                return self.call_cost(node)
            case ast.ListOf():
                return _LIST + self.children_cost(node)
            case ast.MapOf():
                return _MAP + self.children_cost(node)
            case ast.Fold():
                return self.cost(node.range) + self.size(node.range) * self.turn_cost(node) + 1
            case ast.OptMap():
                return self.cost(node.target) + self.cost(node.body) + 10
            case ast.Bind():
                return self.children_cost(node)
            case ast.SortBy():
                turns = self.size(node.target) * (12 + self.cost(node.key))
                return self.cost(node.target) + turns + 3
        return 1 + self.children_cost(node)

    def children_cost(self, node: ast.Expr) -> int:
        return sum(map(self.cost, ast.children(node)))

    def turn_cost(self, node: ast.Fold) -> int:
        if node.kind == "map" and node.test is None and _is_constant(node.body):
            return 2
        test = 0 if node.test is None else self.cost(node.test)
        return _TURNS[node.kind] + test + self.cost(node.body)

    def call_cost(self, node: ast.Call) -> int:
        name = self.checked.functions.get(node, node.function)
        if name == "_?_:_":
            test, *branches = node.args
            return self.cost(test) + max(map(self.cost, branches))
        operand_cost = self.children_cost(node)
        if name in _FREE:
            return operand_cost
        is_member = node.target is not None and name == node.function
        operands = [node.target, *node.args] if node.target and is_member else list(node.args)
        return operand_cost + max(1, self.function_cost(name, operands))

    def function_cost(self, name: str, operands: list[ast.Expr]) -> int:
        """Returns the cost of a function itself."""
        sizes = [self.size(operand) for operand in operands] or [0]
        texts = [self.characters(operand) for operand in operands] or [0]
        if name in _READ_ONCE:
            return math.ceil(texts[0] * _CHARACTER)
        if name in _READ_TWICE:
            return math.ceil(texts[0] * 2 * _CHARACTER)
        if name in {"matches", "find", "findAll"}:
            pattern = math.ceil(texts[-1] * _PATTERN)
            return math.ceil((1 + texts[0]) * _CHARACTER) * pattern
        if name == "contains":
            return math.ceil(texts[0] * _CHARACTER) * math.ceil(texts[-1] * _CHARACTER)
        if name in {"_==_", "_!=_"} and self.are_sized(operands):
            return math.ceil(min(texts) * _CHARACTER)
        if name == "@in" and self.checked.types[operands[1]].name == "list":
            return sizes[1]
        if name == "_+_" and self.checked.types[operands[0]] == STRING:
            return math.ceil(sum(texts) * _CHARACTER)
        if name == "join":
            return math.ceil(sizes[0] * (self.item_size(operands[0]) + 1) * 2 * _CHARACTER)
        if name in _OVER_ITEMS and self.checked.types[operands[0]] != STRING:
            return sizes[0] * math.ceil(self.item_size(operands[0]) * _CHARACTER)
        if name in _OVER_PAIRS:
            return sizes[0] * sizes[-1]
        if name == "distinct":
            return 2 * sizes[0] ** 2
        return sizes[0] if name in {"reverse", "flatten", "lists.range"} else 1

    def are_sized(self, operands: list[ast.Expr]) -> bool:
        """Returns whether operands of an equality may both be longer than a number."""
        return all(
            self.checked.types[operand].is_dyn
            or self.checked.types[operand].name in {"string", "bytes"}
            for operand in operands
        )

    def item_size(self, node: ast.Expr) -> int:
        """The size of a list's items."""
        type_ = self.checked.types[node]
        return TEXT if type_.parts[:1] == (STRING,) or type_.is_dyn else 1

    def characters(self, node: ast.Expr) -> int:
        """Returns the size of a node that is used as a text."""
        return TEXT if self.checked.types[node].is_dyn else self.size(node)

    def size(self, node: ast.Expr) -> int:
        """Returns the entries of a list or map, or the characters of a possible text."""
        match node:
            case ast.Constant():
                return len(node.value) if isinstance(node.value, str | bytes) else 1
            case ast.ListOf():
                return len(node.items)
            case ast.MapOf():
                return len(node.entries)
            case ast.Fold(kind="map" | "filter" | "list" | "map_value" | "map_entry"):
                return self.size(node.range)
            case ast.SortBy():
                return self.size(node.target)
            case ast.Bind():
                return self.size(node.body)
            case ast.Call(function="_+_"):
                return sum(map(self.size, node.args))
            case ast.Call(function="_?_:_"):
                return max(map(self.size, node.args[1:]))
        type_ = self.checked.types[node]
        if type_ == STRING:
            return TEXT
        return 1 if type_.name in {"int", "uint", "double", "bool", "null_type"} else self.entries


def _is_constant(node: ast.Expr) -> bool:
    """Returns whether it is known before anything is evaluated."""
    if isinstance(node, ast.Constant):
        return True
    return isinstance(node, ast.ListOf | ast.MapOf) and all(map(_is_constant, ast.children(node)))
