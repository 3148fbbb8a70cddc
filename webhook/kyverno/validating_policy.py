"""Kyverno's ValidatingPolicy: what one of them says of an object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import gvk_of
from webhook.api.shapes import objects_of
from webhook.cel.check.types import BOOL, STRING
from webhook.cel.errors import EvaluationError, TimeUp
from webhook.cel.run.meter import Meter
from webhook.constraint.drivers.cel_validator import Composed
from webhook.kyverno.autogen import generated_specs
from webhook.kyverno.compiling import compiled, objects_in
from webhook.kyverno.kinds import EXCEPTION_KINDS, MUTATING_KINDS, InvalidPolicy
from webhook.kyverno.mutating_policy import KyvernoMutatingPolicy
from webhook.kyverno.policy import COST, KUBERNETES, CompiledSpec, KyvernoPolicy, fault_text
from webhook.kyverno.policy_exception import KyvernoException
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.api.shapes import Json
    from webhook.cel.engine import Expression
    from webhook.kyverno.policy import PolicyQuestion

_IMAGES: Final = ("containers", "initContainers", "ephemeralContainers")
_ACTIONS: Final = ("Deny", "Warn", "Audit")


@dataclass(frozen=True, slots=True)
class KyvernoVerdict:
    """What a policy says: ``pass``, ``fail``, ``error``, or ``skip`` where it is not about it.

    ``missing`` is what it asked for and was not given: then it is an error, and nothing is decided.
    ``exception`` is the one that excuses it.
    """

    result: str
    message: str = ""
    missing: tuple[str, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    exception: KyvernoException | None = None


SKIPPED: Final = KyvernoVerdict("skip")


@dataclass(frozen=True, slots=True)
class _Validation:
    expression: Expression
    message: str
    message_expression: Expression | None


class _Rule(CompiledSpec):
    """A spec with what it validates."""

    def __init__(self, spec: Json, namespace: str) -> None:
        super().__init__(spec, namespace)
        self._ignores = spec.get("failurePolicy") == "Ignore"
        with_variables = self.environment
        self._validations = [
            _Validation(
                compiled(one, "expression", with_variables, BOOL, f"validations[{at}]"),
                one.get("message") or "",
                compiled(one, "messageExpression", with_variables, STRING, f"validations[{at}]")
                if one.get("messageExpression")
                else None,
            )
            for at, one in enumerate(objects_in(spec, "validations"))
        ]

    def say(
        self, question: PolicyQuestion, exceptions: Sequence[KyvernoException]
    ) -> KyvernoVerdict:
        """What it says of a request that it is about."""
        images = {"images": _images(question.request.get("object"))}
        return self.judge(self.given(question) | images, question, exceptions)

    def judge(
        self,
        given: dict[str, Any],
        question: PolicyQuestion,
        exceptions: Sequence[KyvernoException],
    ) -> KyvernoVerdict:
        """What it says of what its variables hold."""
        already = len(question.world.missing)
        try:
            return self._judge(given, question, exceptions)
        except EvaluationError as error:
            return KyvernoVerdict("error", *fault_text(error, given, question, already))

    def _judge(
        self,
        given: dict[str, Any],
        question: PolicyQuestion,
        exceptions: Sequence[KyvernoException],
    ) -> KyvernoVerdict:
        one = self.excusing(given, question, exceptions)
        if one is not None:
            return KyvernoVerdict(one.result, f"excused by {one.title}", exception=one)
        if not self.holds(self.conditions, given, question):
            return SKIPPED
        composed = Composed(self.variables, given, None)
        meter = Meter(COST, question.look)
        composed.meter = meter
        for at, validation in enumerate(self._validations):
            if validation.expression.evaluate(composed.env, meter) is not True:
                message = _message(validation, at, composed, meter)
                return KyvernoVerdict("fail", message, annotations=self.annotated(composed, meter))
        return KyvernoVerdict("pass", annotations=self.annotated(composed, meter))

    def holds(
        self, conditions: Sequence[Expression], given: dict[str, Any], question: PolicyQuestion
    ) -> bool:
        """Whether conditions hold; an error is a no where the policy ignores failures."""
        try:
            return super().holds(conditions, given, question)
        except TimeUp:
            raise
        except EvaluationError:
            if self._ignores:
                return False
            raise


class ValidatingPolicy(KyvernoPolicy):
    """A policy with what it implies for pod controllers, compiled."""

    def __init__(self, document: Json) -> None:
        """Raises :class:`~webhook.kyverno.kinds.InvalidPolicy`."""
        super().__init__(document)
        if not self.spec.get("validations"):
            raise InvalidPolicy("spec.validations is empty: it would deny nothing")
        self.actions = _actions(self.spec)
        generated = generated_specs(self.spec) if self.mode == KUBERNETES else []
        self._rules = [_Rule(one, self.namespace) for one in (self.spec, *generated)]

    @property
    def specs(self) -> Sequence[CompiledSpec]:
        """Its own, and those that it implies for pod controllers."""
        return self._rules

    def say(self, question: PolicyQuestion) -> KyvernoVerdict:
        """What it says of an admission request."""
        if not self.is_in_place(question):
            return SKIPPED
        exceptions = self.exceptions_of(question)
        for rule in self._rules:
            if rule.is_about(question):
                verdict = rule.say(question, exceptions)
                if verdict is not SKIPPED:
                    return verdict
        return SKIPPED

    def say_of_json(self, document: Any, question: PolicyQuestion) -> KyvernoVerdict:
        """What one of mode JSON says of a document, which no rule has to match."""
        given = {"object": document, "oldObject": None, "request": {}, "namespaceObject": None}
        rule = self._rules[0]
        variables = rule.with_world({**given, "images": {}}, question)
        return rule.judge(variables, question, self.exceptions_of(question))


def _actions(spec: Json) -> tuple[str, ...]:
    actions = spec.get("validationActions") or ["Deny"]
    if type(actions) is not list or any(one not in _ACTIONS for one in actions):
        raise InvalidPolicy(f"spec.validationActions: none but {', '.join(_ACTIONS)} are known")
    return tuple(dict.fromkeys(actions))


def _message(one: _Validation, at: int, composed: Composed, meter: Meter) -> str:
    if one.message_expression is not None:
        try:
            message = one.message_expression.evaluate(composed.env, meter)
        except TimeUp:
            raise
        except EvaluationError as error:
            return f"failed to evaluate message expression: {error.text}"
        if type(message) is str and message:
            return message
    return one.message or f"CEL expression validation failed at index {at}"


def _images(document: Any) -> Json:
    """The images of a Pod or its controller, by the lists that have them."""
    spec = document.get("spec") if isinstance(document, dict) else None
    for name in ("jobTemplate", "template"):
        while isinstance(spec, dict) and isinstance(spec.get(name), dict):
            spec = spec[name].get("spec")
    listed = spec if isinstance(spec, dict) else {}
    return {
        name: [
            one["image"]
            for one in objects_of(listed.get(name))
            if isinstance(one.get("image"), str)
        ]
        for name in _IMAGES
    }


def read_kyverno(document: Json) -> ValidatingPolicy | KyvernoMutatingPolicy | KyvernoException:
    """A policy or an exception; raises :class:`~webhook.kyverno.kinds.InvalidPolicy`."""
    kind = gvk_of(document).kind
    if kind in EXCEPTION_KINDS:
        return KyvernoException(document)
    return KyvernoMutatingPolicy(document) if kind in MUTATING_KINDS else ValidatingPolicy(document)


def fault_of(document: Json) -> str:
    """Why a policy, or an exception, cannot be used; "" where it can."""
    try:
        read_kyverno(document)
    except InvalidPolicy as error:
        return str(error)
    return ""
