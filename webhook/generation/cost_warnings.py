"""Warns of expressions that an API server would end for their estimated cost.

Kubernetes estimates no costs of policies. It counts the cost of an evaluation and ends a too costly
one, which then fails by the policy's failurePolicy. The cost depends on the object, so a warning
has the number of list entries from which the evaluation is ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.cel.check.types import DYN, Type
from webhook.cel.cost import cost_warning
from webhook.cel.engine import checked_expression
from webhook.cel.errors import CompileError
from webhook.cel.kubernetes import admission
from webhook.cel.run.meter import EXPRESSION_COST, MATCH_CONDITIONS_COST, POLICY_COST
from webhook.constraint.drivers.cel_source import ANY_OBJECT, INVENTORY, PARAMS, CelSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.api.shapes import Json
    from webhook.cel.check.checker import Checked


def cost_warnings(source: CelSource) -> list[Json]:
    """Returns warnings of expressions over the limit with fewer than ENTRIES entries.

    There is one for each such expression; otherwise one if all together exceed theirs.
    """
    expressions = _checked(source)
    warnings = []
    for group, limit, noun in (
        ("matchCondition", MATCH_CONDITIONS_COST, "match conditions"),
        ("validations", POLICY_COST, "all of a policy"),
    ):
        # The cost of a variable counts for the expressions that read it.
        single = [
            (field, expression)
            for field, expression in expressions
            if field.startswith("matchCondition") == (group == "matchCondition")
        ]
        each = [
            _warning(f"source.{field}", [expression], EXPRESSION_COST, "an expression")
            for field, expression in single
        ]
        alone = [expression for expression in each if expression is not None]
        together = _warning(
            f"source.{group}", [expression for _, expression in single], limit, noun
        )
        warnings += alone if alone or together is None else [together]
    return warnings


def _warning(field: str, of: Sequence[Checked], limit: int, noun: str) -> Json | None:
    text = cost_warning(of, limit, noun)
    return {"fieldRef": field, "warning": text} if text else None


def _checked(source: CelSource) -> list[tuple[str, Checked]]:
    types: dict[str, Type] = {ANY_OBJECT: DYN, PARAMS: DYN, INVENTORY: DYN}
    parts: list[tuple[str, Checked]] = []

    def check(field: str, expression: str, *, params: bool = False) -> Checked | None:
        try:
            checked = checked_expression(expression, admission(types, params=params))
        except CompileError:
            return None  # another check reports it, with its place
        parts.append((field, checked))
        return checked

    for index, variable in enumerate(source.variables):
        checked_variable = check(f"variables[{index}].expression", variable.expression, params=True)
        types[variable.name] = DYN if checked_variable is None else checked_variable.type
    for index, condition in enumerate(source.match_conditions):
        check(f"matchCondition[{index}].expression", condition.expression)
    for index, validation in enumerate(source.validations):
        check(f"validations[{index}].expression", validation.expression)
        if validation.message_expression:
            check(f"validations[{index}].messageExpression", validation.message_expression)
    return parts
