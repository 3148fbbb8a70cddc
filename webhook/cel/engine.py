"""From the text of an expression to what evaluates it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from webhook.cel.check.checker import Checked, check
from webhook.cel.check.literals import fault_of_constants, problems_of_literals
from webhook.cel.check.types import DYN
from webhook.cel.errors import (
    CompileError,
    EvaluationError,
    InstantiationError,
    ParseError,
    Problem,
)
from webhook.cel.exact import exact_form
from webhook.cel.syntax.parser import parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.cel.check.environment import Environment
    from webhook.cel.check.types import Type
    from webhook.cel.exact import Run
    from webhook.cel.run.meter import Meter
    from webhook.cel.run.values import Value


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression; shared freely."""

    source: str
    type: Type
    exact: Run = field(repr=False)

    def evaluate(self, variables: Mapping[str, Value], meter: Meter) -> Value:
        """Its value, or :class:`~webhook.cel.errors.EvaluationError`.

        ``variables`` is left as it is.
        """
        try:
            return self.exact(dict(variables), meter)
        except RecursionError:
            raise EvaluationError("expression is nested too deeply") from None


def compile_expression(source: str, environment: Environment) -> Expression:
    """Compile; raises :class:`~webhook.cel.errors.CompileError`."""
    try:
        return _compiled(source, environment)
    except RecursionError:
        raise ParseError(source, [Problem(1, 0, "expression recursion limit exceeded")]) from None


def _compiled(source: str, environment: Environment) -> Expression:
    checked = checked_expression(source, environment)
    fault = fault_of_constants(checked)
    if fault is not None:
        raise InstantiationError(source, fault)
    return Expression(source, checked.type, exact_form(checked))


def unchecked_expression(source: str, environment: Environment) -> Expression:
    """Compile what is not to be checked: its names alone are looked up."""
    checked, _ = check(parse(source), environment)
    return Expression(source, DYN, exact_form(checked))


def checked_expression(source: str, environment: Environment) -> Checked:
    """An expression with its types, likewise."""
    parsed = parse(source)
    checked, problems = check(parsed, environment)
    problems = problems or problems_of_literals(checked)
    if problems:
        raise CompileError(source, problems)
    return checked
