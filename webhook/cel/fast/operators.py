"""Writes calls and operators as generated code, and adds up the cost of an expression's nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.cel.paths import goes_on, stored_in
from webhook.cel.syntax.ast import Call, Expr, children
from webhook.rego.write.expression import Kind

if TYPE_CHECKING:
    from webhook.cel.check.checker import Checked

OPERATORS: Final = {
    "_-_": "subtract",
    "_*_": "multiply",
    "_/_": "divide",
    "_%_": "modulo",
    "_[_]": "item",
    "_[?_]": "optional_item",
    "_<_": "less",
    "_<=_": "less_or_equal",
    "_>_": "greater",
    "_>=_": "greater_or_equal",
}
KNOWN: Final = ("anyObject", "params")
"""Composed variables that are known before anything is evaluated, and decoded JSON all through."""

ORDERS: Final = frozenset({"_<_", "_<=_", "_>_", "_>=_"})
KINDS: Final = {"bool": Kind.BOOL, "string": Kind.STRING}


def within_path(function: str, operand: Expr, checked: Checked) -> str:
    """Writes the operand of a step; an optional within a path is left to the exact form."""
    if goes_on(operand, checked):
        return "further_item"
    is_conditional = isinstance(operand, Call) and operand.function == "_?_:_"
    is_root = stored_in(operand) is None and not is_conditional
    return function if is_root else f"plain_{function}"


def cost_of(node: Expr) -> int:
    """The nodes of an expression, those of loops within it counted once."""
    count, waiting = 0, [node]
    while waiting:
        count += 1
        waiting.extend(children(waiting.pop()))
    return count
