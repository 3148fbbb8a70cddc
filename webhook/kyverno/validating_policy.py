"""Kyverno's ValidatingPolicy: what one of them says of an object."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook.admission_policies.kinds import InvalidAdmissionPolicy
from webhook.admission_policies.matching import compile_matching
from webhook.api.gvk import gvk_of, name_of, namespace_of, plural_of
from webhook.api.shapes import objects_of
from webhook.cel.check.types import BOOL, STRING
from webhook.cel.errors import EvaluationError, TimeUp
from webhook.cel.run.meter import Meter
from webhook.constraint.drivers.cel_review import variables_of
from webhook.constraint.drivers.cel_validator import Composed, conditions_hold
from webhook.constraint.secrecy import without_secrets
from webhook.kyverno.autogen import generated_specs
from webhook.kyverno.compiling import compiled, environment, object_in, objects_in
from webhook.kyverno.kinds import EXCEPTION_KINDS, NAMESPACED_POLICY, InvalidPolicy
from webhook.kyverno.library import VALUES
from webhook.kyverno.policy_exception import KyvernoException
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.api.gvk import GroupVersionKind
    from webhook.api.shapes import Json
    from webhook.cel.check.types import Type
    from webhook.cel.engine import Expression
    from webhook.kyverno.world import World

COST: Final = 10_000_000
"""What a policy's validations may cost: as an API server gives a ValidatingAdmissionPolicy."""

_IMAGES: Final = ("containers", "initContainers", "ephemeralContainers")
_ACTIONS: Final = ("Deny", "Warn", "Audit")
KUBERNETES: Final = "Kubernetes"
JSON: Final = "JSON"
_ELSEWHERE: Final = {
    "HTTP": "it is for requests of HTTP, which Kyverno's authorizer answers",
    "Envoy": "it is for requests of Envoy, which Kyverno's authorizer answers",
}
"""Evaluation modes that nothing here can give an input, and what they are for."""


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
class PolicyQuestion:
    """What a policy is asked about: a request, and the Namespace that its object is in."""

    request: Json
    namespace: Json | None
    world: World
    exceptions: Sequence[KyvernoException] = ()
    look: Callable[[], None] | None = None
    """Raises TimeUp when the review's time is up."""

    @property
    def at(self) -> float:
        """When, in seconds since 1970."""
        return self.world.now_ns / 1e9

    def without_exceptions(self) -> PolicyQuestion:
        """The same where nothing is excused."""
        return replace(self, exceptions=())


@dataclass(frozen=True, slots=True)
class _Validation:
    expression: Expression
    message: str
    message_expression: Expression | None


class _Rule:
    """One spec, compiled: that of the policy, or one for pod controllers."""

    def __init__(self, spec: Json, namespace: str) -> None:
        is_within = bool(namespace)
        self._namespace = namespace
        # Kyverno compares versions as they are written, whatever matchPolicy says.
        matched = {**object_in(spec, "matchConstraints"), "matchPolicy": "Exact"}
        self._matches_nothing = not spec.get("matchConstraints")
        try:
            self._matches = compile_matching(matched, "spec.matchConstraints")
        except InvalidAdmissionPolicy as error:
            raise InvalidPolicy(str(error)) from None
        self._named = objects_in(matched, "resourceRules")
        self._ignores = spec.get("failurePolicy") == "Ignore"
        types: dict[str, Type] = {}
        conditions = environment({}, namespaced=is_within)
        self._conditions = [
            compiled(one, "expression", conditions, BOOL, f"matchConditions[{at}]")
            for at, one in enumerate(objects_in(spec, "matchConditions"))
        ]
        self._variables: dict[str, Expression] = {}
        for at, one in enumerate(objects_in(spec, "variables")):
            if type(one.get("name")) is not str:
                raise InvalidPolicy(f"spec.variables[{at}].name is missing")
            known = environment(types, namespaced=is_within)
            expression = compiled(one, "expression", known, None, f"variables[{at}]")
            types[one["name"]] = expression.type
            self._variables[one["name"]] = expression
        with_variables = environment(types, namespaced=is_within)
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
        self._annotations = [
            (
                str(one.get("key") or ""),
                compiled(one, "valueExpression", with_variables, None, f"auditAnnotations[{at}]"),
            )
            for at, one in enumerate(objects_in(spec, "auditAnnotations"))
        ]

    def is_about(self, asked: PolicyQuestion) -> bool:
        """Whether a request is one that it constrains."""
        return not self._matches_nothing and self._matches(asked.request, asked.namespace)

    def constrains(self, gvk: GroupVersionKind) -> bool:
        """Whether it names the kind, or all kinds."""
        if self._matches_nothing:
            return False
        plural = plural_of(gvk.kind)
        return not self._named or any(
            {gvk.group, "*"} & set(one.get("apiGroups") or ())
            and {gvk.version, "*"} & set(one.get("apiVersions") or ())
            and {plural, f"{plural}/*", "*", "*/*"} & set(one.get("resources") or ())
            for one in self._named
        )

    def say(self, asked: PolicyQuestion, exceptions: Sequence[KyvernoException]) -> KyvernoVerdict:
        """What it says of a request that it is about."""
        given = variables_of({**asked.request, "namespaceObject": asked.namespace})
        given["images"] = _images(asked.request.get("object"))
        return self.judge(given, asked, exceptions)

    def judge(
        self, given: dict[str, Any], asked: PolicyQuestion, exceptions: Sequence[KyvernoException]
    ) -> KyvernoVerdict:
        """What it says of what its variables hold."""
        given |= {**VALUES, **asked.world.variables(self._namespace)}
        already = len(asked.world.missing)
        try:
            return self._judge(given, asked, exceptions)
        except TimeUp:
            raise
        except EvaluationError as error:
            about = {"kind": asked.request.get("kind"), "object": given["object"]}
            told = without_secrets(error.text, about | {"oldObject": given["oldObject"]})
            missing = tuple(dict.fromkeys(asked.world.missing[already:]))
            return KyvernoVerdict("error", told, missing)

    def _judge(
        self, given: dict[str, Any], asked: PolicyQuestion, exceptions: Sequence[KyvernoException]
    ) -> KyvernoVerdict:
        # Those that allow something do not excuse: the policy's own expressions read them.
        allowing: list[KyvernoException] = []
        for one in exceptions:
            if self._holds(one.conditions, given, asked):
                if not (one.images or one.values):
                    return KyvernoVerdict(one.result, f"excused by {one.title}", exception=one)
                allowing.append(one)
        given["exceptions"] = {
            "allowedImages": [image for one in allowing for image in one.images],
            "allowedValues": [value for one in allowing for value in one.values],
        }
        if not self._holds(self._conditions, given, asked):
            return SKIPPED
        composed = Composed(self._variables, given, None)
        meter = Meter(COST, asked.look)
        composed.meter = meter
        for at, validation in enumerate(self._validations):
            if validation.expression.evaluate(composed.env, meter) is not True:
                message = _message(validation, at, composed, meter)
                return KyvernoVerdict("fail", message, annotations=self._annotated(composed, meter))
        return KyvernoVerdict("pass", annotations=self._annotated(composed, meter))

    def _annotated(self, composed: Composed, meter: Meter) -> tuple[tuple[str, str], ...]:
        told = []
        for key, expression in self._annotations:
            value = expression.evaluate(composed.env, meter)
            if type(value) is not str:
                raise EvaluationError(f"auditAnnotation '{key}' is no string")
            if value:
                told.append((key, value))
        return tuple(told)

    def _holds(
        self, conditions: Sequence[Expression], given: dict[str, Any], asked: PolicyQuestion
    ) -> bool:
        """Whether they all hold; an error is a no where the policy ignores failures."""
        try:
            return conditions_hold(conditions, given, asked.look)
        except TimeUp:
            raise
        except EvaluationError:
            if self._ignores:
                return False
            raise


class ValidatingPolicy:
    """A policy with what it implies for pod controllers, compiled."""

    def __init__(self, document: Json) -> None:
        """Raises :class:`~webhook.kyverno.kinds.InvalidPolicy`."""
        self.document = document
        self.name = name_of(document)
        self.kind: str = document.get("kind") or ""
        self.namespace = ""
        if self.kind == NAMESPACED_POLICY:
            self.namespace = namespace_of(document) or "default"
        spec = object_in(document, "spec")
        if not spec.get("validations"):
            raise InvalidPolicy("spec.validations is empty: it would deny nothing")
        objects_in(object_in(spec, "matchConstraints"), "resourceRules")
        object_in(object_in(spec, "autogen"), "podControllers")
        evaluation = object_in(spec, "evaluation")
        self.mode = evaluation.get("mode") or KUBERNETES
        if self.mode not in {KUBERNETES, JSON}:
            why = _ELSEWHERE.get(str(self.mode), "it is neither Kubernetes nor JSON")
            raise InvalidPolicy(f"spec.evaluation.mode {self.mode}: {why}")
        self.at_admission = object_in(evaluation, "admission").get("enabled") is not False
        self.in_background = object_in(evaluation, "background").get("enabled") is not False
        self.actions = _actions(spec)
        self.fails = spec.get("failurePolicy") != "Ignore"
        self.matches_nothing = not spec.get("matchConstraints") and self.mode == KUBERNETES
        generated = generated_specs(spec) if self.mode == KUBERNETES else []
        self._rules = [_Rule(one, self.namespace) for one in (spec, *generated)]

    @property
    def title(self) -> str:
        """Its name, with the namespace of one that is in one."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def is_about(self, asked: PolicyQuestion) -> bool:
        """Whether it, or what it implies, constrains a request."""
        return self._in_place(asked) and any(rule.is_about(asked) for rule in self._rules)

    def _in_place(self, asked: PolicyQuestion) -> bool:
        return not self.namespace or asked.request.get("namespace") == self.namespace

    def constrains(self, gvk: GroupVersionKind) -> bool:
        """Whether a rule names the kind; its plural is the one that Kubernetes guesses."""
        return any(rule.constrains(gvk) for rule in self._rules)

    def say(self, asked: PolicyQuestion) -> KyvernoVerdict:
        """What it says of an admission request."""
        if not self._in_place(asked):
            return SKIPPED
        own = self._own(asked)
        for rule in self._rules:
            if rule.is_about(asked):
                verdict = rule.say(asked, own)
                if verdict is not SKIPPED:
                    return verdict
        return SKIPPED

    def say_of_json(self, document: Any, asked: PolicyQuestion) -> KyvernoVerdict:
        """What one of mode JSON says of a document, which no rule has to match."""
        given = {"object": document, "oldObject": None, "request": {}, "namespaceObject": None}
        return self._rules[0].judge({**given, "images": {}}, asked, self._own(asked))

    def _own(self, asked: PolicyQuestion) -> list[KyvernoException]:
        at = asked.at
        return [one for one in asked.exceptions if one.is_about(self.kind, self.name, at)]


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


def read_kyverno(document: Json) -> ValidatingPolicy | KyvernoException:
    """A policy or an exception; raises :class:`~webhook.kyverno.kinds.InvalidPolicy`."""
    is_exception = gvk_of(document).kind in EXCEPTION_KINDS
    return KyvernoException(document) if is_exception else ValidatingPolicy(document)


def fault_of(document: Json) -> str:
    """Why a policy, or an exception, cannot be used; "" where it can."""
    try:
        read_kyverno(document)
    except InvalidPolicy as error:
        return str(error)
    return ""
