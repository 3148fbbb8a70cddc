"""Evaluates a generated policy on a request as an API server does.

Rules are compared with the usual plural of a kind if the request names no resource.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webhook.api.gvk import labels_of
from webhook.api.shapes import Json
from webhook.cel.check.types import BOOL, DYN, STRING, Type
from webhook.cel.engine import Expression, compile_expression
from webhook.cel.errors import CompileError, EvaluationError
from webhook.cel.kubernetes import admission, match_conditions
from webhook.cel.run.meter import POLICY_COST
from webhook.constraint.drivers.cel_review import variables_of
from webhook.constraint.drivers.cel_validator import (
    CompiledValidation,
    Composed,
    conditions_hold,
    violations,
)
from webhook.constraint.selector import compile_selector
from webhook.values import dataclass


class UnusablePolicy(Exception):
    """An API server would refuse an expression; the text says which and why."""


@dataclass(frozen=True, slots=True)
class GeneratedVerdict:
    """The verdict of a policy: its messages, and whether errors were left to the webhook."""

    messages: tuple[str, ...] = ()
    ignored: bool = False


class GeneratedPolicy:
    """A compiled policy."""

    def __init__(self, policy: Json) -> None:
        """Raises :class:`UnusablePolicy`."""
        spec = policy["spec"]
        self._constraints = spec["matchConstraints"]
        self._fails = spec["failurePolicy"] == "Fail"
        params = "paramKind" in spec
        conditions = match_conditions(params=params)
        self._conditions = [
            _compiled(
                condition["expression"], conditions, BOOL, f"match condition {condition['name']}"
            )
            for condition in spec["matchConditions"]
        ]
        types: dict[str, Type] = {}
        self._variables: dict[str, Expression] = {}
        for variable in spec["variables"]:
            environment = admission(types, params=params)
            expression = _compiled(
                variable["expression"], environment, None, f"variable {variable['name']}"
            )
            types[variable["name"]] = DYN if expression.type.is_dyn else expression.type
            self._variables[variable["name"]] = expression
        environment = admission(types, params=params)
        self._validations = [
            CompiledValidation(
                _compiled(validation["expression"], environment, BOOL, "validation"),
                validation.get("message", ""),
                _compiled(validation["messageExpression"], environment, STRING, "messageExpression")
                if validation.get("messageExpression")
                else None,
            )
            for validation in spec["validations"]
        ]

    def say(
        self, binding: Json, constraint: Json, request: Json, namespace: Json | None
    ) -> GeneratedVerdict:
        """Evaluates the policy on a request; ``namespace`` is its Namespace, or None."""
        place = namespace if request.get("namespace") and not _is_namespace(request) else None
        matched = (self._constraints, binding["spec"]["matchResources"])
        if not all(_is_about(match, request, place) for match in matched):
            return GeneratedVerdict()
        given = variables_of({**request, "namespaceObject": place})
        within = {**given, "params": constraint, "namespaceObject": None, "authorizer": None}
        try:
            if not conditions_hold(self._conditions, within):
                return GeneratedVerdict()
        except EvaluationError as error:
            return (
                GeneratedVerdict((error.text,)) if self._fails else GeneratedVerdict(ignored=True)
            )
        composed = Composed(self._variables, given, constraint)
        failures = violations(self._validations, composed, fails=True, cost=POLICY_COST)
        if self._fails:
            return GeneratedVerdict(tuple(failures))
        again = Composed(self._variables, given, constraint)
        kept = tuple(violations(self._validations, again, fails=False, cost=POLICY_COST))
        return GeneratedVerdict(kept, ignored=len(kept) < len(failures))


def _compiled(text: str, environment: Any, expected: Type | None, noun: str) -> Expression:
    try:
        expression = compile_expression(text, environment)
    except CompileError as error:
        raise UnusablePolicy(f"{noun}: {error}") from None
    if expected is not None and expression.type != expected:
        raise UnusablePolicy(f"{noun}: must evaluate to {expected} but got {expression.type}")
    return expression


def _is_about(resources: Json, request: Json, namespace: Json | None) -> bool:
    """Whether rules and selectors match a request."""
    rules = resources.get("resourceRules")
    if rules and not any(_covers(rule, request) for rule in rules):
        return False
    return _selects_namespace(resources, request, namespace) and _selects_object(resources, request)


def _is_namespace(request: Json) -> bool:
    kind = request["kind"]
    return bool(kind["kind"] == "Namespace" and not kind["group"])


def _covers(rule: Json, request: Json) -> bool:
    kind = request["kind"]
    clustered = _is_namespace(request) or not request.get("namespace")
    scope = rule.get("scope", "*")
    return (
        _among(rule["operations"], request["operation"])
        and _among(rule["apiGroups"], kind["group"])
        and _among(rule["apiVersions"], kind["version"])
        and (scope == "*" or (scope == "Cluster") is clustered)
        and _names_resource(rule["resources"], request)
    )


def _among(listed: Sequence[str], name: str) -> bool:
    return "*" in listed or name in listed


def _names_resource(listed: Sequence[str], request: Json) -> bool:
    plural = (request.get("resource") or {}).get(
        "resource"
    ) or f"{request['kind']['kind'].lower()}s"
    sub = request.get("subResource") or ""
    for entry in listed:
        name, _, resource = entry.partition("/")
        if name in {"*", plural} and resource in ({"*", sub} if sub else {"*", ""}):
            return True
    return False


def _selects_namespace(resources: Json, request: Json, namespace: Json | None) -> bool:
    selector = resources.get("namespaceSelector") or {}
    if _is_namespace(request):
        document = request.get("object") or request.get("oldObject")
        return _selects(selector, document)
    return not request.get("namespace") or _selects(selector, namespace)


def _selects_object(resources: Json, request: Json) -> bool:
    selector = resources.get("objectSelector") or {}
    documents = (request.get("object"), request.get("oldObject"))
    return any(_selects(selector, document) for document in documents if document is not None)


def _selects(selector: Json, document: Mapping[str, Any] | None) -> bool:
    return compile_selector(selector)({} if document is None else labels_of(document))
