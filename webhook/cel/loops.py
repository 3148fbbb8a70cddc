"""How macros over items are written: as loops.

A loop pays before it runs; see :mod:`webhook.cel.fast`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.cel.lines import UnwrittenError
from webhook.cel.operators import cost_of
from webhook.rego.write import expression as source
from webhook.rego.write.expression import Kind

if TYPE_CHECKING:
    from webhook.cel.syntax.ast import Fold
    from webhook.cel.writer import Writer
    from webhook.rego.write.expression import Expression

MAX_LOOPS: Final = 12
"""Loops within each other; CPython takes 20 blocks."""

SHORT: Final = (12, 3, 1)
"""Turns of a loop that nothing is paid for: of one by itself, within another, and deeper.

So what is not paid for is no more than 36 times what was, for the nodes of the expression.
"""


def fold(writer: Writer, node: Fold) -> Expression:
    """A macro over items: a loop."""
    if node.kind in {"map_value", "map_entry"} or writer.loops >= MAX_LOOPS:
        raise UnwrittenError
    range_ = writer.held(node.range)
    cost = 2 + cost_of(node.body) + (0 if node.test is None else cost_of(node.test))
    result = writer.new(Kind.BOOL if node.kind in {"all", "exists"} else Kind.ANY)
    begin = {"all": "True", "exists": "False", "exists_one": "0"}.get(node.kind, "[]")
    writer.line(f"{result.source} = {begin}")
    first = writer.new()
    targets, scope = first.source, {node.first: first}
    if node.second is not None:
        second = scope[node.second] = writer.new()
        targets += f", {second.source}"
    goes = "items" if node.second is None else "pairs"
    writer.line(f"for {targets} in {_turns(writer, goes, range_, cost).source}:")
    if writer.is_plain(node.range):
        writer.plain.update(local.source for local in scope.values())
    computed = writer.computed
    writer.scopes.append(scope)
    writer.loops += 1
    writer.indent += 1
    indent = writer.indent
    _turn(writer, node, result)
    if writer.is_plain(node.body):
        writer.plain_folds.add(node)
    writer.indent = indent - 1
    writer.loops -= 1
    writer.scopes.pop()
    writer.computed = computed  # there may be no turn
    if node.kind == "exists_one":
        return source.compare(result, "==", "1")
    return result.of_kind(Kind.LIST) if result.kind is Kind.ANY else result


def _turns(writer: Writer, goes: str, range_: Expression, cost: int) -> Expression:
    """What a loop goes through: a short list as it is."""
    paid = source.call(goes, "M", range_, str(cost))
    if goes != "items":
        return paid
    most = source.scalar(SHORT[min(writer.loops, len(SHORT) - 1)])
    is_short = source.compare(source.call("len", range_), "<=", most)
    if range_.kind is not Kind.LIST:
        is_short = source.all_of([source.is_of(range_, Kind.LIST), is_short])
    return source.conditional(range_, is_short, paid)


def _turn(writer: Writer, node: Fold, result: Expression) -> None:
    """What a turn of it does."""
    local = result.source
    if node.test is not None:
        writer.line(f"if {writer.condition(node.test).source}:")
        writer.indent += 1
    if node.kind == "all":
        test = source.negation(writer.condition(node.body))
        writer.line(f"if {test.source}:")
        writer.line(f"    {local} = False")
        writer.line("    break")
    elif node.kind == "exists":
        writer.line(f"if {writer.condition(node.body).source}:")
        writer.line(f"    {local} = True")
        writer.line("    break")
    elif node.kind == "exists_one":
        writer.line(f"if {writer.condition(node.body).source}:")
        writer.line(f"    {local} = added(M, {local}, 1)")
    else:
        writer.line(f"{local}.append({writer.value(node.body).source})")
