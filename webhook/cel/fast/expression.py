"""The fast form of an expression: a Python function that is exact whenever it returns.

It absorbs no errors: any error raises, and the exact form evaluates the expression
(:mod:`webhook.cel.exact.evaluator`). So it may raise too often, but must never return a result that
the exact form would not. Sources are put together by :mod:`webhook.rego.write.expression` alone;
names in them are made here, and no text of a policy becomes one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.cel.fast.writer import Unwritten, Writer
from webhook.cel.run import access, arithmetic, equality, membership, paced

if TYPE_CHECKING:
    from webhook.cel.check.checker import Checked
    from webhook.cel.folds import Run

NAMESPACE: Final[dict[str, Any]] = {
    "__builtins__": {"len": len, "list": list, "str": str, "type": type},
    "condition": access.condition,
    "item": access.item,
    "optional_item": access.optional_item,
    "further_item": access.further_item,
    "unnested": access.unnested,
    "settled": paced.settled,
    "plain_item": paced.plain_item,
    "plain_optional_item": paced.plain_optional_item,
    "is_not": arithmetic.is_not,
    "negate": arithmetic.negate,
    "subtract": arithmetic.subtract,
    "multiply": arithmetic.multiply,
    "divide": arithmetic.divide,
    "modulo": arithmetic.modulo,
    "less": equality.less,
    "less_or_equal": equality.less_or_equal,
    "greater": equality.greater,
    "greater_or_equal": equality.greater_or_equal,
    "items": paced.items,
    "pairs": paced.pairs,
    "equals": paced.equals,
    "member": paced.member,
    "is_among": membership.is_among,
    "added": paced.added,
    "summed": paced.summed,
    "at_path": paced.at_path,
    "is_at_path": paced.is_at_path,
    "or_value": paced.or_value,
    "found_in": paced.found_in,
}
"""All that generated code is run with, constants apart."""


def fast_source(checked: Checked) -> tuple[str, dict[str, Any]] | None:
    """The text of the fast form and the constants that it names; None where there is none."""
    writer = Writer(checked)
    try:
        return writer.write(checked.parsed.root), writer.constants
    except Unwritten:
        return None


def fast_form(checked: Checked) -> Run | None:
    """The fast form, compiled; None where there is none."""
    written = fast_source(checked)
    if written is None:
        return None
    text, constants = written
    return function_of(text, {**NAMESPACE, **constants})


def function_of(text: str, namespace: dict[str, Any]) -> Run | None:
    """The function ``f`` that a text defines; None where it is larger than CPython compiles."""
    try:
        code = compile(text, "<expression>", "exec")
    except (MemoryError, RecursionError, SyntaxError):
        return None
    exec(code, namespace)  # noqa: S102  # of generated names and repr() alone
    run: Run = namespace["f"]
    return run
