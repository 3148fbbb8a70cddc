"""A template in CEL, compiled: the bridge from templates to :mod:`webhook.cel`.

What is decided, and what is told, is what Kubernetes' validator says of the policy that the source
describes (admission/plugin/policy/validating/validator.go), with Gatekeeper's variables.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from webhook.cel.check.types import BOOL, DYN, STRING
from webhook.cel.engine import compile_checked
from webhook.cel.errors import CompileError as ExpressionError
from webhook.cel.errors import EvaluationError, LimitError, TimeUpError
from webhook.cel.kubernetes import admission
from webhook.cel.library.strings import SPACES
from webhook.cel.operators import KNOWN
from webhook.cel.run.meter import EXPRESSION_COST, MATCH_CONDITIONS_COST, Meter
from webhook.cel.run.values import NOTHING
from webhook.cel.whole import Part, whole_form
from webhook.constraint.driver import DriverViolation
from webhook.constraint.drivers.cel_review import any_object, objects_of, variables_of
from webhook.constraint.drivers.cel_source import ANY_OBJECT, INVENTORY, PARAMS
from webhook.constraint.errors import CompileError, PolicyError
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from webhook.cel.check.types import Type
    from webhook.cel.engine import Expression
    from webhook.cel.whole import Whole
    from webhook.constraint.drivers.cel_source import CelSource
    from webhook.constraint.limits import Budget, Limits

_UNPAID: Final = Meter(0)
"""Pays for nothing: who evaluates gives a meter first."""

PREPARED_MAX: Final = 1_000
"""Constraints of a template whose parameters' part is kept."""

_OBJECTS: Final = frozenset({"object", "oldObject"})

_NO_VARIABLES: Final[dict[str, Any]] = {}

MESSAGE_BYTES_MAX: Final = 5 * 1024
"""Of what a messageExpression gives (pkg/apis/cel/config.go)."""


@dataclass(frozen=True, slots=True)
class CompiledValidation:
    """What must be true, and what is told where it is not."""

    expression: Expression
    message: str
    message_expression: Expression | None


class _Compiler:
    """Compiles the expressions of a source, with what is wrong with each under its place."""

    def __init__(self, *, inventory: bool) -> None:
        self.types: dict[str, Type] = {ANY_OBJECT: DYN, PARAMS: DYN}
        if inventory:
            self.types[INVENTORY] = DYN
        self.parts: dict[Expression, Part] = {}
        self.faults: list[str] = []

    def compile(
        self, source: str, at: str, wanted: Type | None, *, params: bool = False
    ) -> Expression | None:
        """An expression of a type; None where it is wrong, which is kept."""
        try:
            expression, checked = compile_checked(source, admission(self.types, params=params))
        except ExpressionError as error:
            self.faults.append(f"source.{at}: {error}")
            return None
        if wanted is not None and expression.type != wanted:
            self.faults.append(f"source.{at}: must evaluate to {wanted} but got {expression.type}")
            return None
        self.parts[expression] = Part(checked, expression.tells)
        return expression

    def whole(
        self, variables: Mapping[str, Expression], validations: Sequence[CompiledValidation]
    ) -> Whole | None:
        """All of it as one function; None where there is none."""
        if not validations:
            return None
        pairs = [
            (
                self.parts[one.expression],
                None if one.message_expression is None else self.parts[one.message_expression],
            )
            for one in validations
        ]
        return whole_form({name: self.parts[of] for name, of in variables.items()}, pairs)


class CelEvaluator:
    """A compiled template."""

    __slots__ = ("_conditions", "_fails", "_prepared", "_validations", "_variables", "_whole")

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
            compiler.compile(one.expression, f"matchCondition[{index}].expression", BOOL)
            for index, one in enumerate(source.match_conditions)
        ]
        validations = []
        for index, one in enumerate(source.validations):
            at = f"validations[{index}]"
            expression = compiler.compile(one.expression, f"{at}.expression", BOOL)
            message = None
            if one.message_expression:
                message = compiler.compile(
                    one.message_expression, f"{at}.messageExpression", STRING
                )
            if expression is not None:
                validations.append(CompiledValidation(expression, one.message, message))
        if compiler.faults:
            raise CompileError("compilation failed: " + "\n".join(compiler.faults))
        self._variables = variables
        self._conditions = [one for one in conditions if one is not None]
        self._validations = validations
        self._fails = source.fails
        self._whole = None if self._conditions else compiler.whole(variables, validations)
        self._prepared: dict[int, tuple[Any, tuple[Any, ...] | None]] = {}

    def begin(self, limits: Limits, inventory: Mapping[str, Any]) -> _Shared:
        """What evaluations share: the variables of the review, made when they are asked for first."""
        return _Shared(limits, inventory)

    def evaluate(self, parameters: Any, review: Any, state: _Shared) -> Iterable[DriverViolation]:
        """What one constraint finds, in the order of the template's validations."""
        look = _Clock(state.limits).look
        try:
            told = None
            if self._whole is not None:
                told = self._at_once(self._whole, parameters, review, state, look)
            if told is None:
                told = self._evaluate(state, state.variables(review), parameters, look)
        except TimeUpError as error:
            raise PolicyError(error.text, overrun=True) from None
        return told

    def _at_once(
        self,
        whole: Whole,
        parameters: Any,
        review: Any,
        state: _Shared,
        look: Callable[[], None],
    ) -> list[DriverViolation] | None:
        """The same by one function; None where that cannot say."""
        prepared: tuple[Any, ...] | None = ()
        if whole.prepared:
            prepared = self._prepared_for(whole, parameters, look)
            if prepared is None:
                return None
        env = _NO_VARIABLES
        if whole.reads and not whole.reads <= _OBJECTS:
            env = {**state.variables(review), "params": {"spec": {"parameters": parameters}}}
        elif whole.reads:
            env = objects_of(review)
        operation = review.get("operation") or ""
        of = review.get("oldObject" if operation == "DELETE" else "object")
        meter = Meter(EXPRESSION_COST, look)
        try:
            told = whole.run(of, parameters, operation, env, meter, prepared)
        except TimeUpError:
            raise
        except Exception:  # noqa: BLE001  # whatever it was, the expressions say what it means
            return None
        return [
            DriverViolation(_told(self._validations[number], message), None)
            for number, message in told
        ]

    def _prepared_for(
        self, whole: Whole, parameters: Any, look: Callable[[], None]
    ) -> tuple[Any, ...] | None:
        """The values of the variables that read nothing but parameters.

        None if one has none that must have one.
        """
        known = self._prepared.get(id(parameters))
        if known is not None:
            return known[1]
        composed = Composed(
            self._variables, {}, {"spec": {"parameters": parameters}}, {PARAMS: parameters}
        )
        composed.meter = Meter(EXPRESSION_COST, look)
        values = []
        for name in whole.prepared:
            try:
                values.append(composed[name])
            except EvaluationError as error:
                _pass_on(error)
                values.append(NOTHING)
        lacks = any(one is NOTHING for one in values[: whole.needed])
        prepared = None if lacks else tuple(values)
        if len(self._prepared) >= PREPARED_MAX:
            self._prepared.clear()
        # With the parameters, which so keep their identity.
        self._prepared[id(parameters)] = (parameters, prepared)
        return prepared

    def _evaluate(
        self, state: _Shared, given: dict[str, Any], parameters: Any, look: Callable[[], None]
    ) -> list[DriverViolation]:
        known = {ANY_OBJECT: any_object(given), PARAMS: parameters}
        if INVENTORY not in self._variables:
            known[INVENTORY] = state.inventory
        # Nothing of the constraint but its parameters: equal ones are evaluated once.
        params = {"spec": {"parameters": parameters}}
        composed = Composed(self._variables, given, params, known)
        if self._conditions:
            # The namespace is not given to match conditions.
            within = {**composed.env, "namespaceObject": None}
            try:
                if not conditions_hold(self._conditions, within, look):
                    return []
            except EvaluationError as error:
                return [DriverViolation(error.text, None)] if self._fails else []
        messages = violations(self._validations, composed, look, fails=self._fails)
        return [DriverViolation(message, None) for message in messages]


def conditions_hold(
    conditions: Sequence[Expression], env: dict[str, Any], look: Callable[[], None] | None = None
) -> bool:
    """Whether all match conditions hold; one that does not makes up for errors in others.

    Raises :class:`~webhook.cel.errors.EvaluationError`.
    """
    faults, meter = [], Meter(MATCH_CONDITIONS_COST, look)
    composed = env.get("variables")
    if composed is not None:
        composed.meter = meter
    for condition in conditions:
        try:
            if condition.evaluate(env, meter) is not True:
                return False
        except EvaluationError as error:
            _pass_on(error)
            faults.append(f"expression '{condition.source}' resulted in error: {error.text}")
    if faults:
        raise EvaluationError(faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")
    return True


def violations(
    validations: Sequence[CompiledValidation],
    composed: Composed,
    look: Callable[[], None] | None = None,
    *,
    fails: bool,
) -> list[str]:
    """What the validations that fail say, and where a policy ``fails`` the errors of the others."""
    texts = []
    composed.meter = meter = Meter(EXPRESSION_COST, look)
    for one in validations:
        try:
            holds = one.expression.evaluate(composed.env, meter)
        except EvaluationError as error:
            _pass_on(error)
            if fails:
                text = f"expression '{one.expression.source}' resulted in error: {error.text}"
                texts.append(text)
            if type(error) is LimitError:
                break  # nothing is left for those that follow
            continue
        if holds is not True:
            texts.append(_message(one, composed, meter))
    return texts


def _pass_on(error: EvaluationError) -> None:
    """What is no fault of the expression is not taken for one."""
    if isinstance(error, TimeUpError):
        raise error


def _message(one: CompiledValidation, composed: Composed, meter: Meter) -> str:
    """What a validation that failed says."""
    message = None
    if one.message_expression is not None:
        try:
            message = one.message_expression.evaluate(composed.env, meter)
        except EvaluationError as error:
            _pass_on(error)
    return _told(one, message)


def _told(one: CompiledValidation, message: Any) -> str:
    """The same, by what its messageExpression gave: what is no text, or too long, is none."""
    text = message.strip(SPACES) if type(message) is str else ""
    if "\n" in text or len(text.encode("utf-8", "replace")) > MESSAGE_BYTES_MAX:
        text = ""
    return text or one.message.strip(SPACES) or _failed(one)


def _failed(one: CompiledValidation) -> str:
    return f"failed expression: {one.expression.source.strip(SPACES)}"


class Composed(dict[str, Any]):
    """The field ``variables``: each is computed when it is read first, and its error kept, too.

    ``meter`` pays for what is computed.
    """

    __slots__ = ("_errors", "_variables", "env", "meter")

    def __init__(
        self,
        variables: dict[str, Expression],
        given: dict[str, Any],
        params: Any,
        known: dict[str, Any] | None = None,
    ) -> None:
        """``params`` is what variables may read under that name; ``known`` are computed already."""
        super().__init__(known or {})
        # No other expression than a variable's has a name for the parameters' resource.
        self.env = {**given, "variables": self, "params": params}
        for name in KNOWN:
            if name in self:
                self.env[f"variables.{name}"] = self[name]
        self._variables = variables
        self._errors: dict[str, EvaluationError] = {}
        self.meter: Meter = _UNPAID

    def __missing__(self, name: str) -> Any:
        """The value of a variable that is read for the first time."""
        error = self._errors.get(name)
        if error is not None:
            raise error
        try:
            value = self[name] = self._variables[name].evaluate(self.env, self.meter)
        except LimitError as fault:
            self._errors[name] = fault  # who tries again has no more to spend
            raise
        except EvaluationError as fault:
            text = f'composited variable "{name}" fails to evaluate: {fault.text}'
            error = self._errors[name] = EvaluationError(text)
            raise error from None
        return value

    def keys(self) -> Any:
        """None: which there are is known before any is asked for."""
        raise TypeError("variables are no map")


_last: tuple[Any, dict[str, Any]] = (None, {})
"""The review that was seen last and its variables: templates take their turns with it."""


class _Shared:
    """What the evaluations of one template for one review share."""

    __slots__ = ("_variables", "inventory", "limits")

    def __init__(self, limits: Limits, inventory: Mapping[str, Any]) -> None:
        self.limits = limits
        self.inventory = inventory
        self._variables: dict[str, Any] | None = None

    def variables(self, review: dict[str, Any]) -> dict[str, Any]:
        """The variables of the review."""
        global _last  # noqa: PLW0603  # one reference, swapped whole
        if self._variables is None:
            seen, variables = _last
            if seen is not review:
                variables = variables_of(review)
                _last = (review, variables)
            self._variables = variables
        return self._variables


class _Clock:
    """The time that an evaluation may take, counted from the first look."""

    __slots__ = ("_began", "_budget", "_deadline", "_seen")

    def __init__(self, limits: Limits) -> None:
        self._deadline = limits.deadline
        self._budget: Budget | None = limits.budget
        self._began: float | None = None
        self._seen = 0.0

    def look(self) -> None:
        """Raise :class:`~webhook.cel.errors.TimeUpError` where the time is over."""
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise TimeUpError("evaluation exceeded its deadline")
        budget = self._budget
        if budget is None:
            return
        now = time.thread_time()
        if self._began is None:
            self._began = self._seen = now
            return
        if now - self._began > budget.seconds:
            raise TimeUpError(f"evaluation exceeded its budget of {budget.seconds * 1000:g} ms")
        if budget.rest is not None:
            budget.rest(max(now - self._seen, 1e-6))
        self._seen = now
