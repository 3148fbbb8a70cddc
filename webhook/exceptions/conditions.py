"""Compiles an exception's ``matchConditions``.

CEL with the variables of webhook match conditions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.cel.check.types import BOOL
from webhook.cel.engine import compile_expression
from webhook.cel.errors import CompileError
from webhook.cel.kubernetes import admission
from webhook.constraint.drivers.cel_evaluation import EvaluationClock
from webhook.constraint.drivers.cel_review import variables_of
from webhook.constraint.drivers.cel_validator import conditions_hold
from webhook.exceptions.exception import InvalidException

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.cel.engine import Expression
    from webhook.constraint.limits import Limits


def compile_conditions(sources: Sequence[str]) -> Callable[[dict[str, Any], Limits], bool]:
    """Returns the test of a review's document; raises :class:`InvalidException`.

    The test raises :class:`~webhook.cel.errors.EvaluationError` if it cannot be decided, and
    :class:`~webhook.cel.errors.TimeUp` after the deadline of the review or the budget of one
    evaluation.
    """
    expressions = [_compiled(source, number) for number, source in enumerate(sources)]

    def hold(document: dict[str, Any], limits: Limits) -> bool:
        look = EvaluationClock(limits).look
        return conditions_hold(expressions, variables_of(document), look)

    return hold


def _compiled(source: str, number: int) -> Expression:
    at = f"spec.matchConditions[{number}].expression"
    try:
        expression = compile_expression(source, admission({}, params=False))
    except CompileError as error:
        raise InvalidException(f"{at}: {error}") from None
    if expression.type != BOOL:
        raise InvalidException(f"{at}: must evaluate to bool but got {expression.type}")
    return expression
