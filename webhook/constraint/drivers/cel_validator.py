"""Evaluates match conditions and validations one by one, as the API server's validator does.

admission/plugin/policy/validating/validator.go and admission/plugin/webhook/matchconditions/matcher.go
of k8s.io/apiserver. Variables are composed as in admission/plugin/cel/composition.go: each is
evaluated when an expression reads it first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.api.shapes import object_of
from webhook.cel.errors import EvaluationError, LimitExceeded, NoAuthorizer, TimeUp
from webhook.cel.fast.operators import KNOWN
from webhook.cel.fast.policy import whole_form
from webhook.cel.run.meter import EXPRESSION_COST, MATCH_CONDITIONS_COST, Meter
from webhook.cel.run.values import NOTHING
from webhook.constraint.secrecy import without_secrets
from webhook.golang.strings import SPACES
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.cel.engine import Expression
    from webhook.cel.fast.policy import Part, Whole

_UNPAID: Final = Meter(0)
"""The cost meter before an evaluation begins."""

PREPARED_MAX: Final = 1_000
"""The most parameters of a policy for which variables that read only these are kept."""

MESSAGE_BYTES_MAX: Final = 5 * 1024
"""The longest message that a messageExpression may give (pkg/apis/cel/config.go)."""


@dataclass(frozen=True, slots=True)
class CompiledValidation:
    """A compiled validation with its messages."""

    expression: Expression
    message: str
    message_expression: Expression | None


def whole_of(
    parts: Mapping[Expression, Part],
    variables: Mapping[str, Expression],
    validations: Sequence[CompiledValidation],
) -> Whole | None:
    """Returns all validations as one function; None if that is impossible.

    ``parts`` has the checked form of each expression.
    """
    if not validations:
        return None
    pairs = [
        (
            parts[validation.expression],
            None if validation.message_expression is None else parts[validation.message_expression],
        )
        for validation in validations
    ]
    return whole_form({name: parts[variable] for name, variable in variables.items()}, pairs)


class Prepared:
    """The values of a policy's variables that read only parameters, kept by these parameters."""

    __slots__ = ("_compose", "_kept", "_whole")

    def __init__(self, whole: Whole, compose: Callable[[Any], Composed]) -> None:
        """``compose`` returns the policy's variables for parameters."""
        self._whole = whole
        self._compose = compose
        self._kept: dict[int, tuple[Any, tuple[Any, ...] | None]] = {}

    def values(self, params: Any, look: Callable[[], None] | None = None) -> tuple[Any, ...] | None:
        """Returns the values that the policy's function is given for parameters.

        None if one that the function needs is in error.
        """
        whole = self._whole
        if not whole.prepared:
            return ()
        kept = self._kept.get(id(params))
        if kept is not None:
            return kept[1]
        composed = self._compose(params)
        composed.meter = Meter(EXPRESSION_COST, look)
        values = []
        for name in whole.prepared:
            try:
                values.append(composed[name])
            except EvaluationError as error:
                pass_on(error)
                values.append(NOTHING)
        lacks = any(value is NOTHING for value in values[: whole.needed])
        prepared = None if lacks else tuple(values)
        if len(self._kept) >= PREPARED_MAX:
            self._kept.clear()
        # The entry holds the parameters, so that no other object gets their id.
        self._kept[id(params)] = (params, prepared)
        return prepared


def conditions_hold(
    conditions: Sequence[Expression], env: dict[str, Any], look: Callable[[], None] | None = None
) -> bool:
    """Whether all match conditions hold.

    There are three cases:

    - One is false: False, regardless of the others.
    - All are true: True.
    - Otherwise their errors are raised together, as an
      :class:`~webhook.cel.errors.EvaluationError`.
    """
    faults: dict[str, None] = {}  # a set in order: Go's aggregates have each text once
    unanswered: NoAuthorizer | None = None
    purse = Purse(MATCH_CONDITIONS_COST, look)
    for condition in conditions:
        try:
            if purse.pay(condition, env) is not True:
                return False
        except NoAuthorizer as error:
            unanswered = error
        except EvaluationError as error:
            pass_on(error)
            faults[failure_text(condition, env, error)] = None
    if unanswered is not None:
        raise unanswered
    if faults:
        texts = list(faults)
        raise EvaluationError(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
    return True


class Failed(NamedTuple):
    """A validation that is false or in error, and its message."""

    validation: CompiledValidation
    message: str
    error: EvaluationError | None = None

    @property
    def is_error(self) -> bool:
        """Whether the expression ended in an error, not with false."""
        return self.error is not None


def violations(
    validations: Sequence[CompiledValidation],
    composed: Composed,
    look: Callable[[], None] | None = None,
    *,
    fails: bool,
    cost: int = EXPRESSION_COST,
) -> list[str]:
    """Returns the messages of validations that are false; with ``fails`` also those of errors.

    ``fails`` is whether the policy's failurePolicy is Fail. ``cost`` bounds all validations together.
    """
    failed = failed_validations(validations, composed, look, cost=cost)
    return [item.message for item in failed if fails or not item.is_error]


def failed_validations(
    validations: Sequence[CompiledValidation],
    composed: Composed,
    look: Callable[[], None] | None = None,
    *,
    cost: int,
) -> list[Failed]:
    """Returns the validations that are false or in error; ``cost`` bounds all of them together."""
    failed = []
    purse = Purse(cost, look)
    for validation in validations:
        try:
            holds = purse.pay(validation.expression, composed.env)
        except EvaluationError as error:
            pass_on(error)
            text = failure_text(validation.expression, composed.env, error)
            failed.append(Failed(validation, text, error))
            if purse.left < 0:
                break  # nothing is left for those that follow
            continue
        if holds is not True:
            failed.append(Failed(validation, _message(validation, composed.env, purse)))
    return failed


def failure_text(expression: Expression, env: Mapping[str, Any], error: EvaluationError) -> str:
    """Returns an error in the API server's words, without the values of a Secret."""
    request = object_of(env.get("request"))
    about = {"kind": request.get("kind"), "object": env.get("object")}
    text = without_secrets(error.text, about | {"oldObject": env.get("oldObject")})
    return f"expression '{expression.source}' resulted in error: {text}"


class Purse:
    """The shared cost budget of several expressions; each also has its own limit."""

    __slots__ = ("_look", "left")

    def __init__(self, cost: int, look: Callable[[], None] | None) -> None:
        self.left = cost
        self._look = look

    def pay(self, expression: Expression, env: dict[str, Any]) -> Any:
        """Evaluates an expression, and charges the variables that it is the first to read."""
        meter = Meter(min(self.left, EXPRESSION_COST), self._look)
        composed = env.get("variables")
        if composed is not None:
            composed.meter = meter
        try:
            return expression.evaluate(env, meter)
        finally:
            self.left -= meter.limit - meter.left


def pass_on(error: EvaluationError) -> None:
    """Raises an error again if it is no fault of the expression, such as the review's deadline."""
    if isinstance(error, TimeUp):
        raise error


def _message(validation: CompiledValidation, env: dict[str, Any], purse: Purse) -> str:
    message = None
    if validation.message_expression is not None:
        try:
            message = purse.pay(validation.message_expression, env)
        except EvaluationError as error:
            pass_on(error)
    return message_of(validation, message)


def message_of(validation: CompiledValidation, value: Any) -> str:
    """Returns the message of a failed validation; ``value`` is that of its messageExpression.

    There are three cases, as in the API server: 1. the value, if it is one line and not too long.
    2. the ``message``, if there is one. 3. the expression itself.
    """
    text = value.strip(SPACES) if type(value) is str else ""
    if "\n" in text or len(text.encode("utf-8", "replace")) > MESSAGE_BYTES_MAX:
        text = ""
    source = validation.expression.source.strip(SPACES)
    return text or validation.message.strip(SPACES) or f"failed expression: {source}"


class Composed(dict[str, Any]):
    """``variables``: each is evaluated at its first use, and its value or error is cached.

    ``meter`` is charged, and belongs to the expression that reads the variable first.
    """

    __slots__ = ("_errors", "_variables", "env", "meter")

    # Compared by identity: there is one in an evaluation, and its values change.
    __eq__ = object.__eq__
    __hash__ = object.__hash__  # type: ignore[assignment]  # dict says that it has none

    def __init__(
        self,
        variables: dict[str, Expression],
        given: dict[str, Any],
        params: Any,
        known: dict[str, Any] | None = None,
    ) -> None:
        """``params`` is the value of ``params`` in variables.

        ``known`` has variables with values.
        """
        super().__init__(known or {})
        # Only variables read the parameters' resource by this name.
        self.env = {**given, "variables": self, "params": params}
        for name in KNOWN:
            if name in self:
                self.env[f"variables.{name}"] = self[name]
        self._variables = variables
        self._errors: dict[str, EvaluationError] = {}
        self.meter: Meter = _UNPAID

    def __missing__(self, name: str) -> Any:
        """Evaluates a variable at its first use."""
        error = self._errors.get(name)
        if error is not None:
            raise error
        try:
            value = self[name] = self._variables[name].evaluate(self.env, self.meter)
        except LimitExceeded as fault:
            self._errors[name] = fault  # another attempt has no more to spend
            raise
        except NoAuthorizer as fault:
            self._errors[name] = fault
            raise
        except EvaluationError as fault:
            text = f'composited variable "{name}" fails to evaluate: {fault.text}'
            error = self._errors[name] = EvaluationError(text)
            raise error from None
        return value

    def keys(self) -> Any:
        """Raises: an expression cannot list the variables."""
        raise TypeError("variables are not a map")
