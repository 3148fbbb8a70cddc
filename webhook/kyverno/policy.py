"""Parts that Kyverno's policies in CEL share: places, matching, and the variables of expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.admission_policies.kinds import InvalidAdmissionPolicy
from webhook.admission_policies.matching import Matching, requested_resource
from webhook.api.gvk import name_of, namespace_of, plural_of, text
from webhook.api.shapes import object_of, objects_of
from webhook.cel.check.types import BOOL, NULL, STRING
from webhook.cel.cost import cost_warning
from webhook.cel.errors import EvaluationError
from webhook.cel.fast.policy import Part
from webhook.cel.run.meter import MATCH_CONDITIONS_COST, Meter
from webhook.constraint.drivers.cel_review import objects_of as objects_of_review
from webhook.constraint.drivers.cel_review import variables_of
from webhook.constraint.drivers.cel_validator import conditions_hold, pass_on
from webhook.constraint.secrecy import without_secrets
from webhook.kyverno.compiling import compiled, environment, object_in, objects_in
from webhook.kyverno.kinds import CLUSTER_KINDS, JSON_MODE, InvalidPolicy
from webhook.kyverno.library import VALUES, allowed_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.admission_policies.matching import RequestedResource
    from webhook.api.gvk import GroupVersionKind
    from webhook.api.shapes import Json
    from webhook.cel.check.checker import Checked
    from webhook.cel.check.environment import Environment
    from webhook.cel.check.types import Type
    from webhook.cel.engine import Expression
    from webhook.constraint.drivers.cel_validator import Composed
    from webhook.kyverno.policy_exception import KyvernoException
    from webhook.kyverno.world import World

COST: Final = 10_000_000
"""The cost limit of a policy, in CEL's units: that of an API server for its own policies."""

KUBERNETES: Final = "Kubernetes"
JSON: Final = JSON_MODE
_IMAGES: Final = ("containers", "initContainers", "ephemeralContainers")

NOTHING_ALLOWED: Final = allowed_values((), ())
"""The values that exceptions allow, without any exception."""

_ELSEWHERE: Final = {
    "HTTP": "it is for requests of HTTP, which Kyverno's authorizer answers",
    "Envoy": "it is for requests of Envoy, which Kyverno's authorizer answers",
}
"""Evaluation modes without an input here, and their use."""


# Made for each request: a plain class takes half the time of a frozen dataclass.
class PolicyQuestion:
    """The input of a policy: a request, and the Namespace of its object; never changed.

    ``look`` raises TimeUp when the review's time is up. ``resource`` is what the request is about,
    as rules read it; ``objects`` are those of :func:`objects_read`.
    ``meter`` is for evaluations of one rule after the other, each with the whole limit.
    """

    __slots__ = (
        "_given",
        "exceptions",
        "look",
        "meter",
        "namespace",
        "objects",
        "request",
        "resource",
        "world",
    )

    def __init__(
        self,
        request: Json,
        namespace: Json | None,
        world: World,
        exceptions: Sequence[KyvernoException] = (),
        look: Callable[[], None] | None = None,
    ) -> None:
        self.request = request
        self.namespace = namespace
        self.world = world
        self.exceptions = exceptions
        self.look = look
        self.resource = requested_resource(request)
        self.objects = objects_read(request)
        self.meter = Meter(COST, look)
        self._given: dict[str | tuple[str, str], dict[str, Any]] = {}

    def given(self, namespace: str) -> dict[str, Any]:
        """Returns the variables of expressions in a policy of this namespace; never changed.

        Those of the policy itself and of exceptions are not among them.
        """
        known = self._given.get(namespace)
        if known is None:
            variables = variables_of({**self.request, "namespaceObject": self.namespace})
            objects = {name: variables[name] for name in ("object", "oldObject")}
            variables["request"] = {**variables["request"], **objects}
            known = self._given[namespace] = self.with_world(variables | self.objects, namespace)
        return known

    def given_with_images(self, namespace: str) -> dict[str, Any]:
        """Returns :meth:`given` with images, and with empty values of exceptions."""
        key = namespace, "images"
        known = self._given.get(key)
        if known is None:
            more = {"images": _images(self.request.get("object")), "exceptions": NOTHING_ALLOWED}
            known = self._given[key] = {**self.given(namespace), **more}
        return known

    def with_world(self, given: dict[str, Any], namespace: str) -> dict[str, Any]:
        """Adds the variables of Kyverno's libraries."""
        return {**given, **VALUES, **self.world.variables(namespace)}

    @property
    def at(self) -> float:
        """When, in seconds since 1970."""
        return self.world.now_ns / 1e9

    def without_exceptions(self) -> PolicyQuestion:
        """Returns the same question as if no exception existed."""
        return PolicyQuestion(self.request, self.namespace, self.world, (), self.look)

    def about(self, obj: Json) -> PolicyQuestion:
        """Returns the question about another object of the request."""
        request = {**self.request, "object": obj}
        return PolicyQuestion(request, self.namespace, self.world, self.exceptions, self.look)


def objects_read(request: Json) -> Json:
    """Returns the object and the old object of a request, as expressions read them.

    In Kyverno one that is missing is an empty map, but null in ``request``.
    """
    objects = objects_of_review(request)
    if objects["object"] is None:
        objects["object"] = {}
    if objects["oldObject"] is None:
        objects["oldObject"] = {}
    return objects


def _images(document: Any) -> Json:
    """Returns the images of a Pod or its controller, by the lists that have them."""
    spec = document.get("spec") if isinstance(document, dict) else None
    for name in ("jobTemplate", "template"):
        while isinstance(spec, dict) and isinstance(spec.get(name), dict):
            spec = spec[name].get("spec")
    listed = spec if isinstance(spec, dict) else {}
    return {
        name: [
            item["image"]
            for item in objects_of(listed.get(name))
            if isinstance(item.get("image"), str)
        ]
        for name in _IMAGES
    }


class CompiledSpec:
    """One spec, compiled: that of the policy, or one for pod controllers.

    ``conditions_read_variables`` is whether match conditions may: those of mutating policies do.
    """

    def __init__(
        self, spec: Json, namespace: str, *, conditions_read_variables: bool = False
    ) -> None:
        self.namespace = namespace
        # Kyverno compares versions literally, regardless of matchPolicy.
        matched = {**object_in(spec, "matchConstraints"), "matchPolicy": "Exact"}
        self._checked: list[tuple[str, Checked]] = []
        """Fields and their checked expressions, until their cost is estimated."""
        self._matches_nothing = not spec.get("matchConstraints")
        try:
            self._matches = Matching(matched, "spec.matchConstraints")
        except InvalidAdmissionPolicy as error:
            raise InvalidPolicy(str(error)) from None
        self._named = objects_in(matched, "resourceRules")
        self.types: dict[str, Type] = {}
        self.variables: dict[str, Expression] = {}
        self.parts: dict[Expression, Part] = {}
        """The expressions, until they are compiled into one function."""
        if not conditions_read_variables:
            self.conditions = self._conditions(spec)
        for at, variable in enumerate(objects_in(spec, "variables")):
            if type(variable.get("name")) is not str:
                raise InvalidPolicy(f"spec.variables[{at}].name is missing")
            expression = self.compiled(
                variable, "expression", self.environment, (), f"variables[{at}]"
            )
            self.types[variable["name"]] = expression.type
            self.variables[variable["name"]] = expression
        if conditions_read_variables:
            self.conditions = self._conditions(spec)
        self._annotations = [
            (
                str(annotation.get("key") or ""),
                self.compiled(
                    annotation,
                    "valueExpression",
                    self.environment,
                    (STRING, NULL),
                    f"auditAnnotations[{at}]",
                ),
            )
            for at, annotation in enumerate(objects_in(spec, "auditAnnotations"))
        ]

    @property
    def environment(self) -> Environment:
        """Returns the environment of an expression, with the variables that are known so far."""
        return environment(self.types, namespaced=bool(self.namespace))

    def compiled(
        self, item: Json, field: str, known: Environment, results: Sequence[Type], noun: str
    ) -> Expression:
        """Compile the expression of a field of the spec, as :func:`compiled` does."""
        expression, checked = compiled(item, field, known, results, noun)
        self.parts[expression] = Part(checked, expression.has_exact_errors)
        self._checked.append((noun, checked))
        return expression

    def cost_warnings(self) -> tuple[str, ...]:
        """Warns of expressions beyond the cost limit, and forgets the checked ones.

        Call it once, after all expressions are compiled.
        """
        conditions = [
            expression for at, expression in self._checked if at.startswith("matchConditions")
        ]
        others = [
            expression for at, expression in self._checked if not at.startswith("matchConditions")
        ]
        self._checked, self.parts = [], {}  # they are large
        warned = (
            ("matchConditions", conditions, MATCH_CONDITIONS_COST, "all match conditions"),
            ("spec", others, COST, "all expressions but match conditions"),
        )
        return tuple(
            f"{field}: {text}. Write fewer loops within loops"
            for field, parts, limit, noun in warned
            if (text := cost_warning(parts, limit, noun, "Waddle"))
        )

    def _conditions(self, spec: Json) -> list[Expression]:
        return [
            self.compiled(
                condition, "expression", self.environment, (BOOL,), f"matchConditions[{at}]"
            )
            for at, condition in enumerate(objects_in(spec, "matchConditions"))
        ]

    def is_about(self, question: PolicyQuestion) -> bool:
        """Returns whether a request matches."""
        return self.names_resource(question.resource) and self.selects(question)

    def names_resource(self, resource: RequestedResource) -> bool:
        """Returns whether its rules name the requested resource."""
        return not self._matches_nothing and self._matches.names(resource)

    def selects(self, question: PolicyQuestion) -> bool:
        """Whether its selectors take in a request that its rules name."""
        return self._matches.selects(question.resource, question.request, question.namespace)

    @property
    def reads_names(self) -> bool:
        """Returns whether a rule is limited to objects of some names."""
        return self._matches.reads_names

    @property
    def has_selectors(self) -> bool:
        """Whether there is a selector of namespaces or objects."""
        return self._matches.has_selectors

    def constrains(self, gvk: GroupVersionKind) -> bool:
        """Whether it names the kind, or all kinds."""
        plural = plural_of(gvk.kind)
        return self._has_rule(gvk.group, gvk.version, {plural, f"{plural}/*", "*", "*/*"})

    def names(self, request: Mapping[str, Any]) -> bool:
        """Whether a rule names the resource of a request."""
        resource = object_of(request.get("resource"))
        name, part = text(resource, "resource"), text(request, "subResource")
        resources = {f"{name}/{part}", f"{name}/*", f"*/{part}"} if part else {name, "*"}
        group, version = text(resource, "group"), text(resource, "version")
        return self._has_rule(group, version, {*resources, "*/*"})

    def _has_rule(self, group: str, version: str, resources: set[str]) -> bool:
        if self._matches_nothing:
            return False
        return not self._named or any(
            {group, "*"} & set(rule.get("apiGroups") or ())
            and {version, "*"} & set(rule.get("apiVersions") or ())
            and resources & set(rule.get("resources") or ())
            for rule in self._named
        )

    def excusing(
        self,
        given: dict[str, Any],
        question: PolicyQuestion,
        exceptions: Sequence[KyvernoException],
    ) -> KyvernoException | None:
        """Returns the exception that excuses it.

        Values allowed by others are put into ``given``.
        """
        allowing: list[KyvernoException] = []
        for exception in exceptions:
            if self.holds(exception.conditions, given, question):
                if not (exception.images or exception.values):
                    return exception
                allowing.append(exception)
        given["exceptions"] = allowed_values(
            [image for excusing in allowing for image in excusing.images],
            [value for excusing in allowing for value in excusing.values],
        )
        return None

    def holds(
        self, conditions: Sequence[Expression], given: dict[str, Any], question: PolicyQuestion
    ) -> bool:
        """Returns whether conditions hold; raises :class:`~webhook.cel.errors.EvaluationError`."""
        return conditions_hold(conditions, given, question.look)

    @property
    def has_annotations(self) -> bool:
        """Whether there are audit annotations."""
        return bool(self._annotations)

    def annotated(self, composed: Composed, meter: Meter) -> tuple[tuple[str, str], ...]:
        """Returns the non-empty audit annotations; raises the same error."""
        annotations = []
        for key, expression in self._annotations:
            value = expression.evaluate(composed.env, meter)
            if type(value) is not str:
                raise EvaluationError(f"auditAnnotation '{key}' is no string")
            if value:
                annotations.append((key, value))
        return tuple(annotations)


def fault_text(
    error: EvaluationError, given: dict[str, Any], question: PolicyQuestion, already: int
) -> tuple[str, tuple[str, ...]]:
    """Returns an error's text without a Secret's values, and the missing facts.

    ``already`` is the number of facts missing before. Raises the error again after a timeout.
    """
    pass_on(error)
    about = {"kind": question.request.get("kind"), "object": given["object"]}
    text = without_secrets(error.text, about | {"oldObject": given["oldObject"]})
    return text, tuple(dict.fromkeys(question.world.missing[already:]))


class KyvernoPolicy:
    """The place of a policy, and its conditions."""

    notes: Sequence[str] = ()
    """The parts of a policy that probably have another effect than they seem to have."""

    def __init__(self, document: Json) -> None:
        """Raises :class:`~webhook.kyverno.kinds.InvalidPolicy`."""
        self.document = document
        self.name = name_of(document)
        self.kind: str = document.get("kind") or ""
        self.namespace = ""
        if self.kind not in CLUSTER_KINDS:
            self.namespace = namespace_of(document) or "default"
        self.spec = spec = object_in(document, "spec")
        objects_in(object_in(spec, "matchConstraints"), "resourceRules")
        objects_in(spec, "matchConditions")
        objects_in(spec, "mutations")
        object_in(object_in(spec, "autogen"), "podControllers")
        evaluation = object_in(spec, "evaluation")
        self.mode = evaluation.get("mode") or KUBERNETES
        if str(self.mode) not in {KUBERNETES, JSON}:
            why = _ELSEWHERE.get(str(self.mode), "it is neither Kubernetes nor JSON")
            raise InvalidPolicy(f"spec.evaluation.mode {self.mode}: {why}")
        self.at_admission = object_in(evaluation, "admission").get("enabled") is not False
        self.in_background = object_in(evaluation, "background").get("enabled") is not False
        self.fails = spec.get("failurePolicy") != "Ignore"
        self.matches_nothing = not spec.get("matchConstraints") and self.mode == KUBERNETES

    @property
    def specs(self) -> Sequence[CompiledSpec]:
        """Its own, and those that it implies for pod controllers."""
        raise NotImplementedError

    @property
    def title(self) -> str:
        """Returns its name, with the namespace of a namespaced policy."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def is_about(self, question: PolicyQuestion) -> bool:
        """Returns whether it, or a policy that it implies, matches a request."""
        return self.is_in_place(question) and any(spec.is_about(question) for spec in self.specs)

    def is_in_place(self, question: PolicyQuestion) -> bool:
        """Returns whether a request is in the namespace of a namespaced policy."""
        return not self.namespace or question.request.get("namespace") == self.namespace

    def constrains(self, gvk: GroupVersionKind) -> bool:
        """Whether a rule names the kind; its plural is the one that Kubernetes guesses."""
        return any(spec.constrains(gvk) for spec in self.specs)

    def exceptions_of(self, question: PolicyQuestion) -> list[KyvernoException]:
        """Returns the exceptions that name the policy, and have not expired."""
        if not question.exceptions:
            return []
        at = question.at
        return [
            exception
            for exception in question.exceptions
            if exception.is_about(self.kind, self.name, at)
        ]
