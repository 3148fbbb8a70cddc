"""Evaluates Kyverno's ValidatingPolicy on an object."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import gvk_of
from webhook.cel.check.types import BOOL, STRING
from webhook.cel.errors import EvaluationError, TimeUp
from webhook.cel.fast.operators import KNOWN
from webhook.cel.run.meter import EXPRESSION_COST, Meter
from webhook.constraint.drivers.cel_validator import (
    CompiledValidation,
    Composed,
    Prepared,
    whole_of,
)
from webhook.kyverno.autogen import autogen_warnings, generated_specs, template_advice
from webhook.kyverno.compiling import null_warnings, objects_in
from webhook.kyverno.kinds import EXCEPTION_KINDS, MUTATING_KINDS, InvalidPolicy
from webhook.kyverno.mutating_policy import KyvernoMutatingPolicy
from webhook.kyverno.policy import (
    COST,
    KUBERNETES,
    NOTHING_ALLOWED,
    CompiledSpec,
    KyvernoPolicy,
    fault_text,
)
from webhook.kyverno.policy_exception import KyvernoException
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.admission_policies.matching import RequestedResource
    from webhook.api.shapes import Json
    from webhook.cel.engine import Expression
    from webhook.cel.fast.policy import Whole
    from webhook.kyverno.policy import PolicyQuestion

_ACTIONS: Final = ("Deny", "Warn", "Audit")


@dataclass(frozen=True, slots=True)
class KyvernoVerdict:
    """The verdict of a policy: ``pass``, ``fail``, ``error``, or ``skip`` if it does not match.

    ``missing`` are facts that the policy needed and did not get: the verdict is then an error, and
    undecided. ``exception`` is the exception that excuses it.
    """

    result: str
    message: str = ""
    missing: tuple[str, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    exception: KyvernoException | None = None


SKIPPED: Final = KyvernoVerdict("skip")
_OBJECTS: Final = frozenset(("object", "oldObject"))
PASSED: Final = KyvernoVerdict("pass")


class Rule(CompiledSpec):
    """A spec with its validations.

    One generated function for all validations runs first. If it cannot decide, each expression is
    evaluated by itself, which is exact.
    """

    def __init__(self, spec: Json, namespace: str) -> None:
        super().__init__(spec, namespace)
        self._ignores = spec.get("failurePolicy") == "Ignore"
        known = self.environment
        self._validations = [
            CompiledValidation(
                self.compiled(validation, "expression", known, (BOOL,), f"validations[{at}]"),
                validation.get("message") or "",
                self.compiled(
                    validation, "messageExpression", known, (STRING,), f"validations[{at}]"
                )
                if validation.get("messageExpression")
                else None,
            )
            for at, validation in enumerate(objects_in(spec, "validations"))
        ]
        self._failures = [
            KyvernoVerdict("fail", _message_of(validation, at))
            for at, validation in enumerate(self._validations)
        ]
        self._whole = self._together()
        self._prepared = self._constants()
        self._run_on_objects = self._on_objects(self._whole)
        self._fail_conditions = None
        if self.conditions:
            conditions = [CompiledValidation(item, "", None) for item in self.conditions]
            self._fail_conditions = self._on_objects(whole_of(self.parts, {}, conditions))
            if self._fail_conditions is None:
                self._run_on_objects = None

    @staticmethod
    def _on_objects(whole: Whole | None) -> Callable[..., Sequence[tuple[int, Any]]] | None:
        """Returns the function of expressions that read no more than objects and the operation."""
        return whole.run if whole is not None and whole.reads <= _OBJECTS else None

    def _together(self) -> Whole | None:
        """Returns all validations as one function; None if that is impossible."""
        if self.has_annotations or self.variables.keys() & {*KNOWN}:
            return None
        return whole_of(self.parts, self.variables, self._validations)

    def _constants(self) -> tuple[Any, ...]:
        """Returns the values of constant variables, without which nothing is evaluated at once."""
        if self._whole is None:
            return ()
        prepared = Prepared(self._whole, lambda _: Composed(self.variables, {}, None))
        values = prepared.values(None)
        if values is None:
            self._whole = None
        return values or ()

    @property
    def reads_objects_alone(self) -> bool:
        """Whether it reads no more than objects and the operation."""
        return self._run_on_objects is not None

    def by_objects(self, operation: str, objects: Json, meter: Meter) -> KyvernoVerdict | None:
        """Evaluates a rule that reads no more than objects and the operation, by generated code.

        Returns the verdict of :meth:`say` without exceptions, or None if that must decide.
        """
        run, fail_conditions = self._run_on_objects, self._fail_conditions
        if run is None:
            return None
        try:
            if fail_conditions is not None:
                meter.rewind(EXPRESSION_COST)
                if fail_conditions(None, None, operation, objects, meter, ()):
                    return SKIPPED
            meter.rewind(COST)
            failed = run(None, None, operation, objects, meter, self._prepared)
        except TimeUp:
            raise
        except Exception:  # noqa: BLE001  # the single expressions then report the error
            return None
        return self._verdict_of(failed) if failed else PASSED

    def say(
        self, question: PolicyQuestion, exceptions: Sequence[KyvernoException] = ()
    ) -> KyvernoVerdict:
        """Evaluates a rule for a request that it matches."""
        if not exceptions:
            operation = question.resource.operation
            verdict = self.by_objects(operation, question.objects, question.meter)
            if verdict is not None:
                return verdict
        return self.judge(question.given_with_images(self.namespace), question, exceptions)

    def judge(
        self,
        given: dict[str, Any],
        question: PolicyQuestion,
        exceptions: Sequence[KyvernoException],
    ) -> KyvernoVerdict:
        """Evaluates a rule with its variables."""
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
        if exceptions:
            given = {**given}
            exception = self.excusing(given, question, exceptions)
            if exception is not None:
                return KyvernoVerdict(
                    exception.result, f"excused by {exception.title}", exception=exception
                )
        if self.conditions and not self.holds(self.conditions, given, question):
            return SKIPPED
        # Validations that read objects only ran before, unless there are exceptions.
        ran = self._run_on_objects is not None and not exceptions
        if self._whole is not None and not ran and question.request:
            verdict = self._at_once(self._whole, given, question)
            if verdict is not None:
                return verdict
        composed = Composed(self.variables, given, None)
        meter = Meter(COST, question.look)
        composed.meter = meter
        already = len(question.world.missing)
        for at, validation in enumerate(self._validations):
            try:
                holds = validation.expression.evaluate(composed.env, meter) is True
            except EvaluationError as error:
                text, missing = fault_text(error, given, question, already)
                text = f"validations[{at}].expression resulted in error: {text}"
                return KyvernoVerdict("error", text, missing)
            if not holds:
                message = _message(validation, at, composed, meter)
                return KyvernoVerdict("fail", message, annotations=self.annotated(composed, meter))
        return KyvernoVerdict("pass", annotations=self.annotated(composed, meter))

    def _at_once(
        self, whole: Whole, given: dict[str, Any], question: PolicyQuestion
    ) -> KyvernoVerdict | None:
        """Evaluates all validations in one call; None if only the exact form can decide."""
        already = len(question.world.missing)
        operation = question.request.get("operation") or ""
        try:
            failed = whole.run(
                None, None, operation, given, Meter(COST, question.look), self._prepared
            )
        except TimeUp:
            raise
        except Exception:  # noqa: BLE001  # the single expressions then report the proper error
            del question.world.missing[already:]
            return None
        return self._verdict_of(failed) if failed else PASSED

    def _verdict_of(self, failed: Sequence[tuple[int, Any]]) -> KyvernoVerdict | None:
        """Returns the verdict of failed validations; None if only the exact form has a message."""
        number, message = failed[0]
        if type(message) is str and message:
            return KyvernoVerdict("fail", message)
        if message is None and self._validations[number].message_expression is not None:
            return None
        return self._failures[number]

    def holds(
        self, conditions: Sequence[Expression], given: dict[str, Any], question: PolicyQuestion
    ) -> bool:
        """Returns whether conditions hold; an error counts as no if the policy ignores failures."""
        try:
            return super().holds(conditions, given, question)
        except TimeUp:
            raise
        except EvaluationError:
            if self._ignores:
                return False
            raise


class ValidatingPolicy(KyvernoPolicy):
    """A compiled policy with its generated rules for pod controllers."""

    def __init__(self, document: Json) -> None:
        """Raises :class:`~webhook.kyverno.kinds.InvalidPolicy`."""
        super().__init__(document)
        if not self.spec.get("validations"):
            raise InvalidPolicy("spec.validations is empty: it would deny nothing")
        self.actions = _actions(self.spec)
        generated = generated_specs(self.spec) if self.mode == KUBERNETES else []
        self._rules = [Rule(spec, self.namespace) for spec in (self.spec, *generated)]
        warnings, *_ = [rule.cost_warnings() for rule in self._rules]
        if self.mode == KUBERNETES:
            warnings += null_warnings(self.spec) + autogen_warnings(self.spec)
        self.notes = warnings

    @property
    def specs(self) -> Sequence[CompiledSpec]:
        """Its own, and those that it implies for pod controllers."""
        return self._rules

    @property
    def reads_objects_alone(self) -> bool:
        """Whether its rules read no more than objects and the operation."""
        return all(rule.reads_objects_alone for rule in self._rules)

    def rules_for(self, resource: RequestedResource) -> list[Rule]:
        """Returns the rules that name a resource: its own, and those for pod controllers."""
        return [rule for rule in self._rules if rule.names_resource(resource)]

    def say(self, question: PolicyQuestion) -> KyvernoVerdict:
        """Evaluates the policy for an admission request."""
        rules = self.selected(self.rules_for(question.resource), question)
        return self.verdict_by(rules, question)

    def has_selectors(self, rules: Sequence[Rule]) -> bool:
        """Whether its namespace, or selectors of these rules, may leave a request out."""
        return bool(self.namespace) or any(rule.has_selectors for rule in rules)

    def selected(self, rules: Sequence[Rule], question: PolicyQuestion) -> list[Rule]:
        """Returns its rules in the policy's namespace whose selectors match a request."""
        if not self.is_in_place(question):
            return []
        return [rule for rule in rules if rule.selects(question)]

    def verdict_by(self, rules: Sequence[Rule], question: PolicyQuestion) -> KyvernoVerdict:
        """Evaluates those of its rules that match a request."""
        exceptions = self.exceptions_of(question) if question.exceptions else ()
        for rule in rules:
            verdict = rule.say(question, exceptions)
            if verdict.result == "error" and rule is not self._rules[0]:
                advice = template_advice(question.resource.resource, question.objects.get("object"))
                return replace(verdict, message=f"{verdict.message}{advice}")
            if verdict is not SKIPPED:
                return verdict
        return SKIPPED

    def verdict_of_json(self, document: Any, question: PolicyQuestion) -> KyvernoVerdict:
        """Evaluates a policy of mode JSON for a document, which no rule has to match."""
        given = {"object": document, "oldObject": None, "request": {}, "namespaceObject": None}
        rule = self._rules[0]
        world = question.with_world(given, rule.namespace)
        variables = {**world, "images": {}, "exceptions": NOTHING_ALLOWED}
        return rule.judge(variables, question, self.exceptions_of(question))


def _actions(spec: Json) -> tuple[str, ...]:
    actions = spec.get("validationActions") or ["Deny"]
    if type(actions) is not list or any(action not in _ACTIONS for action in actions):
        raise InvalidPolicy(f"spec.validationActions: none but {', '.join(_ACTIONS)} are known")
    return tuple(dict.fromkeys(actions))


def _message(validation: CompiledValidation, at: int, composed: Composed, meter: Meter) -> str:
    if validation.message_expression is not None:
        try:
            message = validation.message_expression.evaluate(composed.env, meter)
        except TimeUp:
            raise
        except EvaluationError as error:
            return f"failed to evaluate message expression: {error.text}"
        if type(message) is str and message:
            return message
    return _message_of(validation, at)


def _message_of(validation: CompiledValidation, at: int) -> str:
    """Returns the message of a validation whose messageExpression, if any, gives none."""
    text = validation.message if validation.message_expression is None else ""
    return text or f"CEL expression validation failed at index {at}"


def read_kyverno(document: Json) -> ValidatingPolicy | KyvernoMutatingPolicy | KyvernoException:
    """Returns a policy or an exception; raises :class:`~webhook.kyverno.kinds.InvalidPolicy`."""
    kind = gvk_of(document).kind
    if kind in EXCEPTION_KINDS:
        return KyvernoException(document)
    return KyvernoMutatingPolicy(document) if kind in MUTATING_KINDS else ValidatingPolicy(document)


def fault_of(document: Json) -> str:
    """Returns why a policy or an exception is unusable; "" if it is usable."""
    try:
        read_kyverno(document)
    except InvalidPolicy as error:
        return str(error)
    return ""
