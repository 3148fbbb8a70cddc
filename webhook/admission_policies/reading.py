"""Reads and compiles policies and bindings; refuses those that an API server would refuse."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook.admission_policies.costs import FREE, PolicyCost, policy_cost
from webhook.admission_policies.kinds import (
    ACTIONS,
    CONDITIONS_MAX,
    GROUP,
    MUTATED_OPERATIONS,
    MUTATING_POLICY,
    PATCH_TYPES,
    POLICY,
    REASONS,
    REINVOCATIONS,
    VERSIONS,
    InvalidAdmissionPolicy,
)
from webhook.admission_policies.matching import Matching, check_selector
from webhook.api.gvk import GroupVersionKind, gvk_of, name_of
from webhook.api.shapes import object_of
from webhook.cel.check.environment import JSON_PATCH, OBJECT
from webhook.cel.check.types import BOOL, DYN, NULL, STRING, Type, list_of
from webhook.cel.engine import compile_checked
from webhook.cel.errors import CompileError
from webhook.cel.kubernetes import admission, match_conditions, mutations
from webhook.constraint.drivers.cel_validator import CompiledValidation
from webhook.constraint.errors import shown
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.api.shapes import Json
    from webhook.cel.check.checker import Checked
    from webhook.cel.check.environment import Environment
    from webhook.cel.engine import Expression

    PolicyDocument: TypeAlias = Mapping[str, Any]

PATCH_RESULTS: Final = {
    "ApplyConfiguration": Type(OBJECT, message=True),
    "JSONPatch": list_of(Type(JSON_PATCH, message=True)),
}
"""The result type of a mutation's expression, by patchType."""

_IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True, slots=True)
class AdmissionPolicy:
    """A compiled ValidatingAdmissionPolicy."""

    name: str
    document: PolicyDocument
    matches: Matching
    fails: bool
    param_kind: GroupVersionKind | None
    conditions: tuple[Expression, ...]
    variables: dict[str, Expression]
    validations: tuple[CompiledValidation, ...]
    reasons: tuple[str, ...]
    """The reason of each validation."""
    audit_annotations: Mapping[str, Expression]
    cost: PolicyCost = FREE


@dataclass(frozen=True, slots=True)
class PolicyMutation:
    """One compiled mutation; ``patch_type`` decides the result type of its expression."""

    patch_type: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class MutatingPolicy:
    """A compiled MutatingAdmissionPolicy.

    ``reinvokes`` is whether it runs again after other policies have changed the object.
    """

    name: str
    document: PolicyDocument
    matches: Matching
    fails: bool
    param_kind: GroupVersionKind | None
    conditions: tuple[Expression, ...]
    variables: dict[str, Expression]
    mutations: tuple[PolicyMutation, ...]
    reinvokes: bool
    cost: PolicyCost = FREE


@dataclass(frozen=True, slots=True)
class AdmissionBinding:
    """A compiled binding of either kind of policy.

    ``actions`` are its ``validationActions``; the binding of a mutating policy has none.
    """

    name: str
    document: PolicyDocument
    policy: str
    matches: Matching
    actions: tuple[str, ...]
    param_ref: Json | None
    policy_kind: str = POLICY


def read_policy(document: PolicyDocument) -> AdmissionPolicy:
    """Reads a ValidatingAdmissionPolicy.

    Raises :class:`~webhook.admission_policies.kinds.InvalidAdmissionPolicy`, whose text begins with
    the field.
    """
    spec, param_kind, fails, constraints = _policy(document)
    compiler = _Compiler(params=param_kind is not None)
    conditions = compiler.conditions(_items(spec, "matchConditions"))
    compiler.compose(_items(spec, "variables"))
    given = _items(spec, "validations")
    validations = tuple(compiler.validation(one, at) for at, one in given)
    annotations = compiler.annotations(_items(spec, "auditAnnotations"))
    if not validations and not annotations:
        raise InvalidAdmissionPolicy(
            "spec.validations: is required, unless there are spec.auditAnnotations"
        )
    return AdmissionPolicy(
        name_of(document),
        document,
        Matching(constraints, "spec.matchConstraints"),
        fails,
        param_kind,
        conditions,
        compiler.variables,
        validations,
        tuple(_reason(one, at) for at, one in given),
        annotations,
        policy_cost(compiler.parts, fails=fails),
    )


def read_mutating_policy(document: PolicyDocument) -> MutatingPolicy:
    """Reads a MutatingAdmissionPolicy; raises like :func:`read_policy`."""
    spec, param_kind, fails, constraints = _policy(document)
    _check_operations(constraints, "spec.matchConstraints")
    reinvocation = spec.get("reinvocationPolicy")
    if reinvocation is None:
        raise InvalidAdmissionPolicy(
            f"spec.reinvocationPolicy: is required: {' or '.join(REINVOCATIONS)}"
        )
    _among("spec.reinvocationPolicy", reinvocation, REINVOCATIONS)
    compiler = _Compiler(params=param_kind is not None)
    conditions = compiler.conditions(_items(spec, "matchConditions"))
    compiler.compose(_items(spec, "variables"))
    mutations = tuple(compiler.mutation(one, at) for at, one in _items(spec, "mutations"))
    if not mutations:
        raise InvalidAdmissionPolicy("spec.mutations: is required: at least one")
    return MutatingPolicy(
        name_of(document),
        document,
        Matching(constraints, "spec.matchConstraints"),
        fails,
        param_kind,
        conditions,
        compiler.variables,
        mutations,
        reinvocation == "IfNeeded",
        policy_cost(compiler.parts, fails=fails),
    )


def read_binding(document: PolicyDocument) -> AdmissionBinding:
    """Reads a ValidatingAdmissionPolicyBinding; raises like :func:`read_policy`."""
    spec, policy, resources = _bound(document)
    actions = spec.get("validationActions")
    if type(actions) is not list or not actions:
        raise InvalidAdmissionPolicy(
            f"spec.validationActions: is required: some of {', '.join(ACTIONS)}"
        )
    for action in actions:
        _among("spec.validationActions", action, ACTIONS)
    if len(set(actions)) < len(actions):
        raise InvalidAdmissionPolicy("spec.validationActions: names an action twice")
    if {"Deny", "Warn"} <= set(actions):
        raise InvalidAdmissionPolicy(
            "spec.validationActions: Deny and Warn cannot be together: a client is answered once"
        )
    return AdmissionBinding(
        name_of(document),
        document,
        policy,
        Matching(resources, "spec.matchResources"),
        tuple(actions),
        _param_ref(spec),
    )


def read_mutating_binding(document: PolicyDocument) -> AdmissionBinding:
    """Reads a MutatingAdmissionPolicyBinding; raises like :func:`read_policy`."""
    spec, policy, resources = _bound(document)
    _check_operations(resources, "spec.matchResources")
    if spec.get("validationActions") is not None:
        raise InvalidAdmissionPolicy(
            "spec.validationActions: a binding of a MutatingAdmissionPolicy has none"
        )
    return AdmissionBinding(
        name_of(document),
        document,
        policy,
        Matching(resources, "spec.matchResources"),
        (),
        _param_ref(spec),
        MUTATING_POLICY,
    )


def _policy(document: PolicyDocument) -> tuple[Json, GroupVersionKind | None, bool, Json]:
    """Returns spec, paramKind, whether failurePolicy is Fail, and matchConstraints."""
    spec = _spec(document)
    param_kind = _param_kind(spec)
    failure = spec.get("failurePolicy") or "Fail"
    _among("spec.failurePolicy", failure, ("Fail", "Ignore"))
    constraints = spec.get("matchConstraints")
    if type(constraints) is not dict or not constraints.get("resourceRules"):
        raise InvalidAdmissionPolicy(
            "spec.matchConstraints.resourceRules: is required: add a rule for what is reviewed"
        )
    return spec, param_kind, failure == "Fail", constraints


def _bound(document: PolicyDocument) -> tuple[Json, str, Json]:
    """Returns spec, policyName and matchResources of any binding."""
    spec = _spec(document)
    policy = spec.get("policyName")
    if type(policy) is not str or not policy:
        raise InvalidAdmissionPolicy("spec.policyName: is required: the name of a policy")
    resources = spec.get("matchResources") or {}
    if type(resources) is not dict:
        raise InvalidAdmissionPolicy("spec.matchResources: is not an object")
    return spec, policy, resources


def _check_operations(resources: Json, field: str) -> None:
    """Refuses operations without an object to change."""
    rules = resources.get("resourceRules")
    for number, rule in enumerate(rules if type(rules) is list else ()):
        named = rule.get("operations") if type(rule) is dict else None
        for one in named if type(named) is list else ():
            _among(f"{field}.resourceRules[{number}].operations", one, MUTATED_OPERATIONS)


def _spec(document: PolicyDocument) -> Json:
    if not name_of(document):
        raise InvalidAdmissionPolicy("metadata.name: is required")
    spec = document.get("spec")
    if type(spec) is not dict:
        raise InvalidAdmissionPolicy("spec: is required")
    gvk = gvk_of(document)
    if gvk.group == GROUP and gvk.version not in VERSIONS:
        raise InvalidAdmissionPolicy(
            f"apiVersion: {gvk.version!r} is not one of {', '.join(VERSIONS)}"
        )
    return spec


def _param_kind(spec: Json) -> GroupVersionKind | None:
    given = spec.get("paramKind")
    if given is None:
        return None
    if type(given) is not dict or not given.get("apiVersion") or not given.get("kind"):
        raise InvalidAdmissionPolicy("spec.paramKind: needs an apiVersion and a kind")
    return gvk_of(given)


def _param_ref(spec: Json) -> Json | None:
    given = spec.get("paramRef")
    if given is None:
        return None
    at = "spec.paramRef"
    if type(given) is not dict:
        raise InvalidAdmissionPolicy(f"{at}: is not an object")
    if bool(given.get("name")) == (given.get("selector") is not None):
        raise InvalidAdmissionPolicy(f"{at}: needs a name or a selector, not both")
    if given.get("selector") is not None:
        check_selector(given["selector"], f"{at}.selector")
    action = given.get("parameterNotFoundAction")
    if action is None:
        raise InvalidAdmissionPolicy(f"{at}.parameterNotFoundAction: is required: Allow or Deny")
    _among(f"{at}.parameterNotFoundAction", action, ("Allow", "Deny"))
    return object_of(given)


def _items(spec: Json, name: str) -> list[tuple[str, Json]]:
    """Returns the objects of a list, each with its path."""
    given = spec.get(name) or []
    if type(given) is not list:
        raise InvalidAdmissionPolicy(f"spec.{name}: is not a list")
    items = [(f"spec.{name}[{number}]", one) for number, one in enumerate(given)]
    for at, one in items:
        if type(one) is not dict:
            raise InvalidAdmissionPolicy(f"{at}: is not an object")
    return items


def _among(field: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InvalidAdmissionPolicy(f"{field}: {shown(value)} is not one of {', '.join(allowed)}")


def _text(one: Json, name: str, at: str, *, required: bool = False) -> str:
    value = one.get(name)
    if value is None and not required:
        return ""
    if type(value) is not str or (required and not value.strip()):
        raise InvalidAdmissionPolicy(
            f"{at}.{name}: is required" if required else f"{at}.{name}: is not a text"
        )
    return value


def _reason(one: Json, at: str) -> str:
    reason = one.get("reason") or "Invalid"
    _among(f"{at}.reason", reason, REASONS)
    return str(reason)


class _Compiler:
    """Compiles the expressions of a policy in the order in which they may refer to each other."""

    def __init__(self, *, params: bool) -> None:
        self._params = params
        self._types: dict[str, Type] = {}
        self.variables: dict[str, Expression] = {}
        self.parts: list[tuple[str, Checked]] = []
        """The compiled expressions, each with its field."""

    def conditions(self, items: list[tuple[str, Json]]) -> tuple[Expression, ...]:
        """Compiles match conditions, which cannot use variables."""
        if len(items) > CONDITIONS_MAX:
            raise InvalidAdmissionPolicy(
                f"spec.matchConditions: has {len(items)}; {CONDITIONS_MAX} are allowed"
            )
        environment = match_conditions(params=self._params)
        made = {}
        for at, one in items:
            name = _text(one, "name", at, required=True)
            if name in made:
                raise InvalidAdmissionPolicy(f"{at}.name: {name!r} is there twice")
            made[name] = self._compiled(one, "expression", at, environment, (BOOL,))
        return tuple(made.values())

    def compose(self, items: list[tuple[str, Json]]) -> None:
        """Compiles variables; each may use the ones before it."""
        for at, one in items:
            name = _text(one, "name", at, required=True)
            if _IDENTIFIER.fullmatch(name) is None:
                raise InvalidAdmissionPolicy(f"{at}.name: {name!r} is not a name of CEL")
            if name in self.variables:
                raise InvalidAdmissionPolicy(f"{at}.name: {name!r} is there twice")
            expression = self._compiled(one, "expression", at, self._environment(), None)
            self._types[name] = DYN if expression.type.is_dyn else expression.type
            self.variables[name] = expression

    def validation(self, one: Json, at: str) -> CompiledValidation:
        """Compiles a validation."""
        message = _text(one, "message", at)
        if "\n" in message.strip():
            raise InvalidAdmissionPolicy(f"{at}.message: has more than one line")
        expression = self._compiled(one, "expression", at, self._environment(), (BOOL,))
        message_expression = None
        if one.get("messageExpression"):
            declared = self._environment(authorizer=False)
            message_expression = self._compiled(one, "messageExpression", at, declared, (STRING,))
        return CompiledValidation(expression, message, message_expression)

    def annotations(self, items: list[tuple[str, Json]]) -> dict[str, Expression]:
        """Compiles the annotations for the API server's audit log."""
        made = {}
        for at, one in items:
            key = _text(one, "key", at, required=True)
            if key in made:
                raise InvalidAdmissionPolicy(f"{at}.key: {key!r} is there twice")
            made[key] = self._compiled(
                one, "valueExpression", at, self._environment(), (STRING, NULL)
            )
        return made

    def mutation(self, one: Json, at: str) -> PolicyMutation:
        """Compiles a mutation."""
        patch_type = one.get("patchType")
        _among(f"{at}.patchType", patch_type, PATCH_TYPES)
        field = "jsonPatch" if patch_type == "JSONPatch" else "applyConfiguration"
        other = "applyConfiguration" if patch_type == "JSONPatch" else "jsonPatch"
        if one.get(other) is not None:
            raise InvalidAdmissionPolicy(
                f"{at}.{other}: must not be given where patchType is {patch_type}"
            )
        given = one.get(field)
        if type(given) is not dict:
            raise InvalidAdmissionPolicy(
                f"{at}.{field}: is required where patchType is {patch_type}"
            )
        environment = mutations(self._types, params=self._params)
        expected = PATCH_RESULTS[str(patch_type)]
        return PolicyMutation(
            str(patch_type),
            self._compiled(given, "expression", f"{at}.{field}", environment, (expected,)),
        )

    def _environment(self, *, authorizer: bool = True) -> Environment:
        return admission(self._types, params=self._params, authorizer=authorizer)

    def _compiled(
        self,
        one: Json,
        name: str,
        at: str,
        environment: Environment,
        expected: tuple[Type, ...] | None,
    ) -> Expression:
        text = _text(one, name, at, required=True)
        try:
            expression, checked = compile_checked(text, environment)
        except CompileError as error:
            raise InvalidAdmissionPolicy(f"{at}.{name}: {error}") from None
        if expected is not None and expression.type not in expected:
            types = " or ".join(str(one) for one in expected)
            raise InvalidAdmissionPolicy(
                f"{at}.{name}: must evaluate to {types} but got {expression.type}"
            )
        self.parts.append((f"{at}.{name}", checked))
        return expression
