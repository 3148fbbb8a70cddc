"""How macros over items are written: as loops.

A loop pays before it runs; see :mod:`webhook.cel.fast.expression`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Final

from webhook.cel.fast.lines import Lines, Unwritten
from webhook.cel.fast.operators import cost_of
from webhook.rego.write import expression as source
from webhook.rego.write.expression import Expression, Kind

if TYPE_CHECKING:
    from webhook.cel.syntax.ast import Expr, Fold

MAX_LOOPS: Final = 12
"""Loops within each other; CPython takes 20 blocks."""

SHORT: Final = (12, 3, 1)
"""Free turns of a loop: of an outermost loop, of a loop within it, and of deeper loops. The free
work is at most 36 times the paid work for the nodes of the expression.
"""


class LoopLines(Lines):
    """Writes loops; a subclass writes their inner expressions."""

    def __init__(self) -> None:
        super().__init__()
        self.loops = 0
        self.scopes: list[dict[str, Expression]] = []
        self.computed: frozenset[str] = frozenset()
        """Composed variables that have their value at this place on every path."""
        self.plain: set[str] = set()
        """Locals that hold decoded JSON all through."""
        self.plain_folds: set[Fold] = set()

    @abstractmethod
    def value(self, node: Expr) -> Expression:
        """Writes the expression that computes a node, behind the lines that it needs."""

    @abstractmethod
    def held(self, node: Expr) -> Expression:
        """A value that may be named after other lines have been written."""

    @abstractmethod
    def condition(self, node: Expr) -> Expression:
        """A value that is true or false."""

    @abstractmethod
    def is_plain(self, node: Expr) -> bool:
        """Returns whether the value of a node, as it is written, is decoded JSON all through."""

    def fold(self, node: Fold) -> Expression:
        """A macro over items: a loop."""
        if node.kind in {"map_value", "map_entry"} or self.loops >= MAX_LOOPS:
            raise Unwritten
        range_ = self.held(node.range)
        cost = 2 + cost_of(node.body) + (0 if node.test is None else cost_of(node.test))
        result = self.new(Kind.BOOL if node.kind in {"all", "exists"} else Kind.ANY)
        begin = {"all": "True", "exists": "False", "exists_one": "0"}.get(node.kind, "[]")
        self.line(f"{result.source} = {begin}")
        first = self.new()
        targets, scope = first.source, {node.first: first}
        if node.second is not None:
            second = scope[node.second] = self.new()
            targets += f", {second.source}"
        goes = "items" if node.second is None else "pairs"
        self.line(f"for {targets} in {self._turns(goes, range_, cost).source}:")
        if self.is_plain(node.range):
            self.plain.update(local.source for local in scope.values())
        computed = self.computed
        self.scopes.append(scope)
        self.loops += 1
        self.indent += 1
        indent = self.indent
        self._turn(node, result)
        if self.is_plain(node.body):
            self.plain_folds.add(node)
        self.indent = indent - 1
        self.loops -= 1
        self.scopes.pop()
        self.computed = computed  # there may be no turn
        if node.kind == "exists_one":
            return source.compare(result, "==", "1")
        return result.of_kind(Kind.LIST) if result.kind is Kind.ANY else result

    def _turns(self, goes: str, range_: Expression, cost: int) -> Expression:
        """Returns the items that a loop goes through: a short list as it is."""
        paid = source.call(goes, "M", range_, str(cost))
        if goes != "items":
            return paid
        most = source.scalar(SHORT[min(self.loops, len(SHORT) - 1)])
        is_short = source.compare(source.call("len", range_), "<=", most)
        if range_.kind is not Kind.LIST:
            is_short = source.all_of([source.is_of(range_, Kind.LIST), is_short])
        return source.conditional(range_, is_short, paid)

    def _turn(self, node: Fold, result: Expression) -> None:
        """Writes the body of a loop."""
        local = result.source
        if node.test is not None:
            self.line(f"if {self.condition(node.test).source}:")
            self.indent += 1
        if node.kind == "all":
            test = source.negation(self.condition(node.body))
            self.line(f"if {test.source}:")
            self.line(f"    {local} = False")
            self.line("    break")
        elif node.kind == "exists":
            self.line(f"if {self.condition(node.body).source}:")
            self.line(f"    {local} = True")
            self.line("    break")
        elif node.kind == "exists_one":
            self.line(f"if {self.condition(node.body).source}:")
            self.line(f"    {local} = added(M, {local}, 1)")
        else:
            self.line(f"{local}.append({self.value(node.body).source})")
