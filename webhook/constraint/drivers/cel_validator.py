"""What a policy's conditions and validations say of a request, one by one, as Kubernetes' validator does.

admission/plugin/policy/validating/validator.go and admission/plugin/webhook/matchconditions/matcher.go
of k8s.io/apiserver; the variables that they read are composed as in admission/plugin/cel/composition.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.api.shapes import object_of
from webhook.cel.errors import EvaluationError, LimitExceeded, NobodyAnswers, TimeUp
from webhook.cel.fast.operators import KNOWN
from webhook.cel.run.meter import EXPRESSION_COST, MATCH_CONDITIONS_COST, Meter
from webhook.constraint.secrecy import without_secrets
from webhook.golang.strings import SPACES
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.cel.engine import Expression

_UNPAID: Final = Meter(0)
"""Pays for nothing: who evaluates gives a meter first."""

MESSAGE_BYTES_MAX: Final = 5 * 1024
"""Of what a messageExpression gives (pkg/apis/cel/config.go)."""


@dataclass(frozen=True, slots=True)
class CompiledValidation:
    """What must be true, and what is told where it is not."""

    expression: Expression
    message: str
    message_expression: Expression | None


def conditions_hold(
    conditions: Sequence[Expression], env: dict[str, Any], look: Callable[[], None] | None = None
) -> bool:
    """Whether all match conditions hold; one that does not makes up for errors in others.

    Raises :class:`~webhook.cel.errors.EvaluationError`.
    """
    faults: dict[str, None] = {}  # each is told once, as Go's aggregates do
    unanswered: NobodyAnswers | None = None
    purse = Purse(MATCH_CONDITIONS_COST, look)
    for condition in conditions:
        try:
            if purse.pay(condition, env) is not True:
                return False
        except NobodyAnswers as error:
            unanswered = error
        except EvaluationError as error:
            pass_on(error)
            faults[failure_text(condition, env, error)] = None
    if unanswered is not None:
        raise unanswered
    if faults:
        told = list(faults)
        raise EvaluationError(told[0] if len(told) == 1 else f"[{', '.join(told)}]")
    return True


class Failed(NamedTuple):
    """A validation that is false or in error, and its message."""

    validation: CompiledValidation
    message: str
    error: EvaluationError | None = None

    @property
    def is_error(self) -> bool:
        """Whether it has no value."""
        return self.error is not None


def violations(
    validations: Sequence[CompiledValidation],
    composed: Composed,
    look: Callable[[], None] | None = None,
    *,
    fails: bool,
    cost: int = EXPRESSION_COST,
) -> list[str]:
    """What the validations that fail say, and where a policy ``fails`` the errors of the others.

    All together may ``cost`` so much.
    """
    failed = failed_validations(validations, composed, look, cost=cost)
    return [one.message for one in failed if fails or not one.is_error]


def failed_validations(
    validations: Sequence[CompiledValidation],
    composed: Composed,
    look: Callable[[], None] | None = None,
    *,
    cost: int,
) -> list[Failed]:
    """The validations that are false or in error. All together may ``cost`` so much."""
    failed = []
    purse = Purse(cost, look)
    for one in validations:
        try:
            holds = purse.pay(one.expression, composed.env)
        except EvaluationError as error:
            pass_on(error)
            text = failure_text(one.expression, composed.env, error)
            failed.append(Failed(one, text, error))
            if purse.left < 0:
                break  # nothing is left for those that follow
            continue
        if holds is not True:
            failed.append(Failed(one, _message(one, composed.env, purse)))
    return failed


def failure_text(expression: Expression, env: Mapping[str, Any], error: EvaluationError) -> str:
    """As the API server says it; a Secret's values are left out."""
    request = object_of(env.get("request"))
    about = {"kind": request.get("kind"), "object": env.get("object")}
    told = without_secrets(error.text, about | {"oldObject": env.get("oldObject")})
    return f"expression '{expression.source}' resulted in error: {told}"


class Purse:
    """What expressions may cost together; each has a limit of its own, too."""

    __slots__ = ("_look", "left")

    def __init__(self, cost: int, look: Callable[[], None] | None) -> None:
        self.left = cost
        self._look = look

    def pay(self, expression: Expression, env: dict[str, Any]) -> Any:
        """The value of an expression, and of the variables that it is the first to read."""
        meter = Meter(min(self.left, EXPRESSION_COST), self._look)
        composed = env.get("variables")
        if composed is not None:
            composed.meter = meter
        try:
            return expression.evaluate(env, meter)
        finally:
            self.left -= meter.limit - meter.left


def pass_on(error: EvaluationError) -> None:
    """What is no fault of the expression is not taken for one."""
    if isinstance(error, TimeUp):
        raise error


def _message(one: CompiledValidation, env: dict[str, Any], purse: Purse) -> str:
    """What a validation that failed says."""
    message = None
    if one.message_expression is not None:
        try:
            message = purse.pay(one.message_expression, env)
        except EvaluationError as error:
            pass_on(error)
    return told(one, message)


def told(one: CompiledValidation, message: Any) -> str:
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

    # By itself it is a value like any other, of which there is one.
    __eq__ = object.__eq__
    __hash__ = object.__hash__  # type: ignore[assignment]  # dict says that it has none

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
        except LimitExceeded as fault:
            self._errors[name] = fault  # who tries again has no more to spend
            raise
        except NobodyAnswers as fault:
            self._errors[name] = fault
            raise
        except EvaluationError as fault:
            text = f'composited variable "{name}" fails to evaluate: {fault.text}'
            error = self._errors[name] = EvaluationError(text)
            raise error from None
        return value

    def keys(self) -> Any:
        """None: which there are is known before any is asked for."""
        raise TypeError("variables are not a map")
