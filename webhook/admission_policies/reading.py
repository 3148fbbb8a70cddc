"""Reads and compiles policies and bindings; refuses those that an API server would refuse."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

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
from webhook.cel.fast.operators import KNOWN
from webhook.cel.fast.policy import Part
from webhook.cel.kubernetes import admission, match_conditions, mutations
from webhook.constraint.drivers.cel_validator import (
    CompiledValidation,
    Composed,
    Prepared,
    message_of,
    whole_of,
)
from webhook.constraint.errors import shown
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.api.shapes import Json
    from webhook.cel.check.checker import Checked
    from webhook.cel.check.environment import Environment
    from webhook.cel.engine import Expression
    from webhook.cel.fast.policy import Whole

    PolicyDocument: TypeAlias = Mapping[str, Any]

PATCH_RESULTS: Final = {
    "ApplyConfiguration": Type(OBJECT, message=True),
    "JSONPatch": list_of(Type(JSON_PATCH, message=True)),
}
"""The result type of a mutation's expression, by patchType."""

_OBJECTS_AND_PARAMETERS: Final = frozenset({"object", "oldObject", "params"})
_INPUTS: Final = _OBJECTS_AND_PARAMETERS | {"request", "namespaceObject"}

_IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class FastForm(NamedTuple):
    """The functions that decide most requests; see :mod:`~webhook.admission_policies.verdict`.

    ``conditions`` returns the match conditions that are false, ``validations`` the validations.
    ``messages`` are those of validations without a value of their messageExpression.
    """

    conditions: Whole | None
    validations: Whole
    prepared: Prepared
    messages: tuple[str, ...]
    reads_request: bool
    """Whether anything is read but the objects, the operation and the parameters."""


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
    fast: FastForm | None = None


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
    validations = tuple(compiler.validation(item, at) for at, item in given)
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
        tuple(_reason(item, at) for at, item in given),
        annotations,
        policy_cost(compiler.checked, fails=fails),
        None if annotations else compiler.fast_form(conditions, validations),
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
    mutations = tuple(compiler.mutation(item, at) for at, item in _items(spec, "mutations"))
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
        policy_cost(compiler.checked, fails=fails),
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
        _param_ref(document, spec),
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
        _param_ref(document, spec),
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
        for entry in named if type(named) is list else ():
            _among(f"{field}.resourceRules[{number}].operations", entry, MUTATED_OPERATIONS)


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


def _param_ref(document: PolicyDocument, spec: Json) -> Json | None:
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
    if action is None and gvk_of(document).version == "v1alpha1":
        return {**given, "parameterNotFoundAction": "Deny"}  # the default of that version alone
    if action is None:
        raise InvalidAdmissionPolicy(f"{at}.parameterNotFoundAction: is required: Allow or Deny")
    _among(f"{at}.parameterNotFoundAction", action, ("Allow", "Deny"))
    return object_of(given)


def _items(spec: Json, name: str) -> list[tuple[str, Json]]:
    """Returns the objects of a list, each with its path."""
    given = spec.get(name) or []
    if type(given) is not list:
        raise InvalidAdmissionPolicy(f"spec.{name}: is not a list")
    items = [(f"spec.{name}[{number}]", item) for number, item in enumerate(given)]
    for at, item in items:
        if type(item) is not dict:
            raise InvalidAdmissionPolicy(f"{at}: is not an object")
    return items


def _among(field: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InvalidAdmissionPolicy(f"{field}: {shown(value)} is not one of {', '.join(allowed)}")


def _text(item: Json, name: str, at: str, *, required: bool = False) -> str:
    value = item.get(name)
    if value is None and not required:
        return ""
    if type(value) is not str or (required and not value.strip()):
        raise InvalidAdmissionPolicy(
            f"{at}.{name}: is required" if required else f"{at}.{name}: is not a text"
        )
    return value


def _reason(item: Json, at: str) -> str:
    reason = item.get("reason") or "Invalid"
    _among(f"{at}.reason", reason, REASONS)
    return str(reason)


class _Compiler:
    """Compiles the expressions of a policy in the order in which they may refer to each other."""

    def __init__(self, *, params: bool) -> None:
        self._params = params
        self._types: dict[str, Type] = {}
        self.variables: dict[str, Expression] = {}
        self.checked: list[tuple[str, Checked]] = []
        """The compiled expressions, each with its field."""
        self._parts: dict[Expression, Part] = {}

    def conditions(self, items: list[tuple[str, Json]]) -> tuple[Expression, ...]:
        """Compiles match conditions, which cannot use variables."""
        if len(items) > CONDITIONS_MAX:
            raise InvalidAdmissionPolicy(
                f"spec.matchConditions: has {len(items)}; {CONDITIONS_MAX} are allowed"
            )
        environment = match_conditions(params=self._params)
        compiled = {}
        for at, item in items:
            name = _text(item, "name", at, required=True)
            if name in compiled:
                raise InvalidAdmissionPolicy(f"{at}.name: {name!r} is there twice")
            compiled[name] = self._compiled(item, "expression", at, environment, (BOOL,))
        return tuple(compiled.values())

    def compose(self, items: list[tuple[str, Json]]) -> None:
        """Compiles variables; each may use the ones before it."""
        for at, item in items:
            name = _text(item, "name", at, required=True)
            if _IDENTIFIER.fullmatch(name) is None:
                raise InvalidAdmissionPolicy(f"{at}.name: {name!r} is not a name of CEL")
            if name in self.variables:
                raise InvalidAdmissionPolicy(f"{at}.name: {name!r} is there twice")
            expression = self._compiled(item, "expression", at, self._environment(), None)
            self._types[name] = DYN if expression.type.is_dyn else expression.type
            self.variables[name] = expression

    def validation(self, item: Json, at: str) -> CompiledValidation:
        """Compiles a validation."""
        message = _text(item, "message", at)
        if "\n" in message.strip():
            raise InvalidAdmissionPolicy(f"{at}.message: has more than one line")
        expression = self._compiled(item, "expression", at, self._environment(), (BOOL,))
        message_expression = None
        if item.get("messageExpression"):
            declared = self._environment(authorizer=False)
            message_expression = self._compiled(item, "messageExpression", at, declared, (STRING,))
        return CompiledValidation(expression, message, message_expression)

    def annotations(self, items: list[tuple[str, Json]]) -> dict[str, Expression]:
        """Compiles the annotations for the API server's audit log."""
        compiled = {}
        for at, item in items:
            key = _text(item, "key", at, required=True)
            if key in compiled:
                raise InvalidAdmissionPolicy(f"{at}.key: {key!r} is there twice")
            compiled[key] = self._compiled(
                item, "valueExpression", at, self._environment(), (STRING, NULL)
            )
        return compiled

    def fast_form(
        self, conditions: Sequence[Expression], validations: Sequence[CompiledValidation]
    ) -> FastForm | None:
        """Returns the functions of match conditions and of validations; None if one is impossible.

        They have no authorizer.
        """
        if self.variables.keys() & {*KNOWN}:
            return None
        tests = [CompiledValidation(condition, "", None) for condition in conditions]
        of_conditions = whole_of(self._parts, {}, tests)
        whole = whole_of(self._parts, self.variables, validations)
        if whole is None or (conditions and of_conditions is None):
            return None
        before = frozenset() if of_conditions is None else of_conditions.reads
        # Match conditions are not given the Namespace.
        if not (whole.reads <= _INPUTS and before <= _INPUTS - {"namespaceObject"}):
            return None
        return FastForm(
            of_conditions,
            whole,
            Prepared(whole, partial(Composed, self.variables, {})),
            tuple(message_of(validation, None) for validation in validations),
            not (whole.reads | before) <= _OBJECTS_AND_PARAMETERS,
        )

    def mutation(self, item: Json, at: str) -> PolicyMutation:
        """Compiles a mutation."""
        patch_type = item.get("patchType")
        _among(f"{at}.patchType", patch_type, PATCH_TYPES)
        field = "jsonPatch" if patch_type == "JSONPatch" else "applyConfiguration"
        other = "applyConfiguration" if patch_type == "JSONPatch" else "jsonPatch"
        if item.get(other) is not None:
            raise InvalidAdmissionPolicy(
                f"{at}.{other}: must not be given where patchType is {patch_type}"
            )
        given = item.get(field)
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
        item: Json,
        name: str,
        at: str,
        environment: Environment,
        expected: tuple[Type, ...] | None,
    ) -> Expression:
        text = _text(item, name, at, required=True)
        try:
            expression, checked = compile_checked(text, environment)
        except CompileError as error:
            raise InvalidAdmissionPolicy(f"{at}.{name}: {error}") from None
        if expected is not None and expression.type not in expected:
            types = " or ".join(str(type_) for type_ in expected)
            raise InvalidAdmissionPolicy(
                f"{at}.{name}: must evaluate to {types} but got {expression.type}"
            )
        self.checked.append((f"{at}.{name}", checked))
        self._parts[expression] = Part(checked, expression.has_exact_errors)
        return expression
