"""Compiles the text of an expression into an evaluator."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from webhook.cel.check.checker import Checked, check, planned
from webhook.cel.check.literals import fault_of_constants, problems_of_literals
from webhook.cel.errors import (
    CompileError,
    EvaluationError,
    InstantiationError,
    ParseError,
    Problem,
    ShownError,
    TimeUp,
)
from webhook.cel.exact.costed import may_end
from webhook.cel.exact.evaluator import exact_form
from webhook.cel.fast.expression import fast_form
from webhook.cel.run.inputs import given_of
from webhook.cel.run.texts import with_shown_value
from webhook.cel.run.values import Value, lost_within
from webhook.cel.syntax.ast import Bind, Call, Constant, Expr, Fold, children
from webhook.cel.syntax.parser import parse
from webhook.values import dataclass

if TYPE_CHECKING:
    from webhook.cel.check.environment import Environment
    from webhook.cel.check.types import Type
    from webhook.cel.folds import Run
    from webhook.cel.run.meter import Meter


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A compiled expression; shared freely."""

    source: str
    type: Type
    exact: Run = field(repr=False)
    fast: Run | None = field(default=None, repr=False)
    has_exact_errors: bool = False
    """Whether an error of the fast form is the exact error, because no operand absorbs errors."""

    def evaluate(self, variables: dict[str, Value], meter: Meter) -> Value:
        """Its value, or :class:`~webhook.cel.errors.EvaluationError`.

        ``variables`` is left as it is.
        """
        if self.fast is not None:
            steps_left = meter.left
            try:
                return self.fast(variables, meter)
            except TimeUp:
                raise
            except EvaluationError as error:
                if self.has_exact_errors and type(error) is EvaluationError:
                    raise
                meter.rewind(steps_left)
            except Exception:  # noqa: BLE001  # the exact form then reports the proper error
                meter.rewind(steps_left)
        try:
            return self._exact_value(variables, meter)
        except RecursionError:
            raise EvaluationError("expression is nested too deeply") from None

    def _exact_value(self, variables: dict[str, Value], meter: Meter) -> Value:
        env: dict[Any, Value] = dict(variables)
        try:
            value = self.exact(env, meter)
        except ShownError as error:
            raise with_shown_value(error, given_of(env, meter)) from None
        # No other expression is prepared for lists that hold errors.
        lost = lost_within(value) if meter.may_have_lost else None
        if lost is not None:
            raise EvaluationError(lost.text)
        return value


def compile_expression(source: str, environment: Environment) -> Expression:
    """Compile; raises :class:`~webhook.cel.errors.CompileError`."""
    return compile_checked(source, environment)[0]


def compile_checked(source: str, environment: Environment) -> tuple[Expression, Checked]:
    """Compiles an expression; also returns the checker's results for its nodes."""
    try:
        checked = checked_expression(source, environment)
        return _compiled(checked), checked
    except RecursionError:
        raise ParseError(source, [Problem(1, 0, "expression recursion limit exceeded")]) from None


def _compiled(checked: Checked) -> Expression:
    source = checked.parsed.source
    fault = fault_of_constants(checked)
    if fault is not None:
        raise InstantiationError(source, fault)
    fast = fast_form(checked)
    return Expression(source, checked.type, exact_form(checked), fast, _reports_errors(checked))


def _reports_errors(checked: Checked) -> bool:
    """Returns whether the first error of the fast form is the error of the exact form.

    It is if no operand absorbs errors of others, no operand is evaluated after an error, and no
    known operand changes the error's text.
    """
    waiting: list[Expr] = [checked.parsed.root]
    while waiting:
        node = waiting.pop()
        if may_end(node, checked):
            return False
        match node:
            case Call(function="_&&_" | "_||_" | "find" | "findAll" | "matches"):
                return False
            case Call(function="_[_]" | "_[?_]") if not isinstance(node.args[1], Constant):
                return False  # the key of an empty optional is not evaluated
            case Fold(kind="map" | "list", test=None):
                pass
            case Fold() | Bind():
                return False
        waiting.extend(children(node))
    return True


def checked_expression(source: str, environment: Environment) -> Checked:
    """Returns an expression with its types; raises for an invalid one."""
    parsed = parse(source, extended=environment.extended)
    checked, problems = check(parsed, environment)
    problems = problems or problems_of_literals(checked)
    if problems:
        raise CompileError(source, problems)
    return planned(checked)
