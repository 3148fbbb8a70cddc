"""Finds type errors in a policy's expressions, as Kubernetes warns of them.

The warnings are those of kube-controller-manager in ``status.typeChecking`` of a
ValidatingAdmissionPolicy (k8s.io/apiserver, admission/plugin/policy/validating/typechecking.go).
In templates, Waddle also checks objects that are read as ``variables.anyObject``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.shapes import object_of, objects_of
from webhook.cel.check.environment import Environment, accepted_functions
from webhook.cel.check.types import DYN, Type
from webhook.cel.engine import checked_expression
from webhook.cel.errors import CompileError
from webhook.cel.kubernetes import admission
from webhook.constraint.drivers.cel_source import (
    ANY_OBJECT,
    INVENTORY,
    PARAMS,
    CelSource,
    Named,
    Validation,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.api.gvk import GroupVersionKind
    from webhook.api.shapes import Json
    from webhook.cel.check.objects import ObjectType

KINDS_MAX: Final = 10
"""The most kinds that a policy is checked for, as in Kubernetes (maxTypesToCheck)."""


def type_warnings(
    source: CelSource,
    kinds: Mapping[GroupVersionKind, ObjectType],
    policy: Mapping[str, Any] | None = None,
) -> list[Json]:
    """Returns a warning for each expression that does not fit some kinds; it names all of them.

    ``policy`` is the spec of the ValidatingAdmissionPolicy whose source it is; None for a template.
    """
    checks = [(gvk, _Check(source, kinds[gvk], policy)) for gvk in sorted(kinds)[:KINDS_MAX]]
    warnings = []
    for field, expression in _expressions(source):
        problems = [
            f"{gvk}: {problem}\n"
            for gvk, check in checks
            if (problem := check.problem(expression)) is not None
        ]
        if problems:
            warnings.append({"fieldRef": f"spec.{field}", "warning": "\n".join(problems)})
    return warnings


def policy_type_warnings(
    policy: Mapping[str, Any], kinds: Mapping[GroupVersionKind, ObjectType]
) -> list[Json]:
    """Returns the warnings of a ValidatingAdmissionPolicy, as ``status.typeChecking`` has them.

    Parameters have no type here.
    """
    spec = object_of(policy.get("spec"))
    validations = (
        Validation(
            str(item.get("expression")), message_expression=str(item.get("messageExpression") or "")
        )
        for item in objects_of(spec.get("validations"))
    )
    variables = (
        Named(str(item.get("name")), str(item.get("expression")))
        for item in objects_of(spec.get("variables"))
    )
    source = CelSource(tuple(validations), tuple(variables), (), fails=True, generate_vap=None)
    return type_warnings(source, kinds, spec)


def _expressions(source: CelSource) -> list[tuple[str, str]]:
    expressions = []
    for index, validation in enumerate(source.validations):
        expressions.append((f"validations[{index}].expression", validation.expression))
        if validation.message_expression:
            expressions.append(
                (f"validations[{index}].messageExpression", validation.message_expression)
            )
    return expressions


class _Check:
    """Checks expressions for one kind."""

    def __init__(
        self, source: CelSource, of: ObjectType, policy: Mapping[str, Any] | None = None
    ) -> None:
        self._of = of
        self._policy = policy
        self._types: dict[str, Type] = {PARAMS: DYN, INVENTORY: DYN} if policy is None else {}
        for variable in source.variables:
            try:
                checked = checked_expression(variable.expression, self._environment(params=True))
            except CompileError:
                self._types[variable.name] = DYN
            else:
                self._types[variable.name] = checked.type
        self._declared = self._environment(params=False)

    def _environment(self, *, params: bool) -> Environment:
        """``params``: whether a template's expression may read the constraint's object."""
        is_policy = self._policy is not None
        params = bool(self._policy.get("paramKind")) if self._policy is not None else params
        plain = admission(self._types, params=params, authorizer=is_policy)
        objects = dict.fromkeys(("object", "oldObject"), self._of.type)
        composed = plain.variables["variables"].name
        any_object = {} if is_policy else {ANY_OBJECT: self._of.type}
        fields = {**plain.messages[composed], **any_object}
        return Environment(
            {**plain.variables, **objects},
            {**plain.messages, **self._of.messages, composed: fields},
            functions=accepted_functions(),
        )

    def problem(self, expression: str) -> str | None:
        """Returns the fault of an expression; None if it has none."""
        try:
            checked_expression(expression, self._declared)
        except CompileError as error:
            return str(error)
        return None
