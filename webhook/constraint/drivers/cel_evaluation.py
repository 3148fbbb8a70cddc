"""Compiles a template in CEL and evaluates it: the bridge from templates to :mod:`webhook.cel`.

Verdicts and messages are those of Kubernetes' validator for the policy that the source describes
(admission/plugin/policy/validating/validator.go), with Gatekeeper's variables.

An evaluation tries one generated function for the whole template first (``_at_once``). Where that
cannot decide, each expression is evaluated by itself (``_evaluate``), which is exact.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from webhook.cel.check.types import BOOL, DYN, STRING
from webhook.cel.engine import compile_checked
from webhook.cel.errors import CompileError as ExpressionError
from webhook.cel.errors import EvaluationError, TimeUp
from webhook.cel.fast.policy import Part
from webhook.cel.kubernetes import admission
from webhook.cel.run.meter import EXPRESSION_COST, Meter
from webhook.cel.run.values import VARIABLES
from webhook.cel.syntax.ast import Select, children
from webhook.constraint.driver import DriverViolation
from webhook.constraint.drivers.cel_review import any_object, objects_of, variables_of
from webhook.constraint.drivers.cel_source import ANY_OBJECT, INVENTORY, PARAMS
from webhook.constraint.drivers.cel_validator import (
    CompiledValidation,
    Composed,
    Prepared,
    conditions_hold,
    message_of,
    violations,
    whole_of,
)
from webhook.constraint.errors import CompileError, PolicyError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.cel.check.checker import Checked
    from webhook.cel.check.types import Type
    from webhook.cel.engine import Expression
    from webhook.cel.fast.policy import Whole
    from webhook.cel.syntax.ast import Expr
    from webhook.constraint.drivers.cel_source import CelSource
    from webhook.constraint.limits import Budget, Limits

_OBJECTS: Final = frozenset({"object", "oldObject"})

_NO_VARIABLES: Final[dict[str, Any]] = {}

_NO_PARAMETERS: Final[dict[str, Any]] = {}
"""The parameters of the fast form instead of null, for sources that read single parameters only.
Neither has any member; reading one raises, and then the exact form runs.
"""


class _Compiler:
    """Compiles the expressions of a source, and collects their faults with positions."""

    def __init__(self, *, inventory: bool) -> None:
        self.types: dict[str, Type] = {ANY_OBJECT: DYN, PARAMS: DYN}
        if inventory:
            self.types[INVENTORY] = DYN
        self.parts: dict[Expression, Part] = {}
        self.faults: list[str] = []

    def compile(
        self, source: str, at: str, result_type: Type | None, *, params: bool = False
    ) -> Expression | None:
        """Compiles an expression of a type; returns None for a faulty one and records the fault."""
        try:
            expression, checked = compile_checked(source, admission(self.types, params=params))
        except ExpressionError as error:
            self.faults.append(f"source.{at}: {error}")
            return None
        if result_type is not None and expression.type != result_type:
            self.faults.append(
                f"source.{at}: must evaluate to {result_type} but got {expression.type}"
            )
            return None
        self.parts[expression] = Part(checked, expression.has_exact_errors)
        return expression


class CelEvaluator:
    """A compiled template.

    With ``reads_constraint`` it gets whole constraints; otherwise only parameters, so that
    constraints with equal parameters are evaluated once.
    """

    __slots__ = (
        "_absent",
        "_conditions",
        "_fails",
        "_prepared",
        "_validations",
        "_variables",
        "_whole",
        "reads_constraint",
    )

    def __init__(self, source: CelSource) -> None:
        """Raises :class:`~webhook.constraint.errors.CompileError`."""
        compiler = _Compiler(inventory=source.has_inventory)
        variables: dict[str, Expression] = {}
        for index, variable in enumerate(source.variables):
            at = f"variables[{index}].expression"
            compiled = compiler.compile(variable.expression, at, None, params=True)
            compiler.types[variable.name] = DYN if compiled is None else compiled.type
            if compiled is not None:
                variables[variable.name] = compiled
        conditions = [
            compiler.compile(condition.expression, f"matchCondition[{index}].expression", BOOL)
            for index, condition in enumerate(source.match_conditions)
        ]
        validations = []
        for index, validation in enumerate(source.validations):
            at = f"validations[{index}]"
            expression = compiler.compile(validation.expression, f"{at}.expression", BOOL)
            message = None
            if validation.message_expression:
                message = compiler.compile(
                    validation.message_expression, f"{at}.messageExpression", STRING
                )
            if expression is not None:
                validations.append(CompiledValidation(expression, validation.message, message))
        if compiler.faults:
            raise CompileError("compilation failed: " + "\n".join(compiler.faults))
        self.reads_constraint = any(
            _reads_constraint(compiler.parts[text].checked) for text in variables.values()
        )
        self._variables = variables
        self._conditions = [condition for condition in conditions if condition is not None]
        self._validations = validations
        self._fails = source.fails
        self._whole = None if self._conditions else whole_of(compiler.parts, variables, validations)
        parts = [part.checked for part in compiler.parts.values()]
        self._absent = _NO_PARAMETERS if all(map(_only_selects_parameters, parts)) else None
        self._prepared = None if self._whole is None else Prepared(self._whole, self._composed)

    def begin(
        self,
        limits: Limits,
        inventory: Mapping[str, Any],
        shared: dict[str, Any] | None = None,  # noqa: ARG002  # a parameter of the protocol
    ) -> _Shared:
        """Returns the shared variables of a review; each is computed when it is first read."""
        return _Shared(limits, inventory)

    def evaluate(self, given: Any, review: Any, state: _Shared) -> Sequence[DriverViolation]:
        """Returns the violations of one constraint, in the order of the template's validations."""
        look = EvaluationClock(state.limits).look
        try:
            violations = None
            if self._whole is not None:
                violations = self._at_once(self._whole, given, review, state, look)
            if violations is None:
                violations = self._evaluate(state, state.variables(review), given, look)
        except TimeUp as error:
            raise PolicyError(error.text, overrun=True) from None
        return violations

    def _parameters(self, given: Any) -> Any:
        """Returns the constraint's parameters, null without any."""
        return (given.get("spec") or {}).get("parameters") if self.reads_constraint else given

    def _params(self, given: Any) -> Any:
        """Returns ``params``, the part of the constraint that variables read."""
        if self.reads_constraint:
            return given
        return {"spec": {} if given is None else {"parameters": given}}

    def _at_once(
        self,
        whole: Whole,
        given: Any,
        review: Any,
        state: _Shared,
        look: Callable[[], None],
    ) -> list[DriverViolation] | None:
        """Evaluates all validations by one generated function; None if only the exact form can decide."""
        prepared = self._prepared.values(given, look) if self._prepared is not None else None
        if prepared is None:
            return None
        env = _NO_VARIABLES
        if whole.reads and not whole.reads <= _OBJECTS:
            env = {**state.variables(review), "params": self._params(given)}
        elif whole.reads:
            env = objects_of(review)
        operation = review.get("operation") or ""
        of = review.get("oldObject" if operation == "DELETE" else "object")
        meter = Meter(EXPRESSION_COST, look)
        try:
            parameters = self._parameters(given)
            if parameters is None:
                parameters = self._absent
            failed = whole.run(of, parameters, operation, env, meter, prepared)
        except TimeUp:
            raise
        except Exception:  # noqa: BLE001  # the single expressions then report the proper error
            return None
        return [
            DriverViolation(message_of(self._validations[number], message), None)
            for number, message in failed
        ]

    def _composed(self, given: Any) -> Composed:
        """Returns the variables that read only parameters."""
        known = {PARAMS: self._parameters(given)}
        return Composed(self._variables, {}, self._params(given), known)

    def _evaluate(
        self, state: _Shared, seen: dict[str, Any], given: Any, look: Callable[[], None]
    ) -> list[DriverViolation]:
        known = {ANY_OBJECT: any_object(seen), PARAMS: self._parameters(given)}
        if INVENTORY not in self._variables:
            known[INVENTORY] = state.inventory
        params = self._params(given)
        if self._conditions:
            # Neither match conditions nor the variables that they read are given the namespace.
            within = Composed(self._variables, {**seen, "namespaceObject": None}, params, known)
            try:
                if not conditions_hold(self._conditions, within.env, look):
                    return []
            except EvaluationError as error:
                return [DriverViolation(error.text, None)] if self._fails else []
        composed = Composed(self._variables, seen, params, known)
        messages = violations(self._validations, composed, look, fails=self._fails)
        return [DriverViolation(message, None) for message in messages]


def _only_selects_parameters(checked: Checked) -> bool:
    """Whether an expression reads parameters only one by one, each by its name."""
    waiting: list[tuple[Expr, Expr | None]] = [(checked.parsed.root, None)]
    while waiting:
        node, parent = waiting.pop()
        if (
            isinstance(node, Select)
            and node.field == PARAMS
            and checked.types[node.operand].name == VARIABLES
            and not (isinstance(parent, Select) and not parent.optional)
        ):
            return False
        waiting.extend((child, node) for child in children(node))
    return True


def _reads_constraint(checked: Checked) -> bool:
    """Whether a variable reads more of the constraint than its parameters."""
    waiting: list[Expr] = [checked.parsed.root]
    while waiting:
        node = waiting.pop()
        if checked.names.get(node) == f".{PARAMS}":
            return True
        if isinstance(node, Select) and node.field == "parameters":
            spec = node.operand
            if isinstance(spec, Select) and spec.field == "spec" and not spec.tests:
                node = spec.operand
                if checked.names.get(node) == f".{PARAMS}":
                    continue
        waiting.extend(children(node))
    return False


_last: tuple[Any, dict[str, Any]] = (None, {})
"""The last review and its variables, which the next template of the same review reuses."""


class _Shared:
    """The values that the evaluations of one template in one review share."""

    __slots__ = ("_variables", "inventory", "limits")

    def __init__(self, limits: Limits, inventory: Mapping[str, Any]) -> None:
        self.limits = limits
        self.inventory = inventory
        self._variables: dict[str, Any] | None = None

    def variables(self, review: dict[str, Any]) -> dict[str, Any]:
        """Returns the variables of the review."""
        global _last  # noqa: PLW0603  # one reference, swapped whole
        if self._variables is None:
            seen, variables = _last
            if seen is not review:
                variables = variables_of(review)
                _last = (review, variables)
            self._variables = variables
        return self._variables


class EvaluationClock:
    """The deadline and budget of one evaluation.

    The budget starts at the first reading of the clock.
    """

    __slots__ = ("_began", "_budget", "_deadline", "_seen")

    def __init__(self, limits: Limits) -> None:
        self._deadline = limits.deadline
        self._budget: Budget | None = limits.budget
        self._began: float | None = None
        self._seen = 0.0

    def look(self) -> None:
        """Raises :class:`~webhook.cel.errors.TimeUp` after the deadline or the budget."""
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise TimeUp("evaluation exceeded its deadline")
        budget = self._budget
        if budget is None:
            return
        now = time.thread_time()
        if self._began is None:
            self._began = self._seen = now
            return
        if now - self._began > budget.seconds:
            raise TimeUp(f"evaluation exceeded its budget of {budget.seconds * 1000:g} ms")
        if budget.rest is not None:
            budget.rest(max(now - self._seen, 1e-6))
        self._seen = now
