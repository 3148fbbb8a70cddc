"""Generates a ValidatingAdmissionPolicy from a template, or with one constraint inserted.

Names, variables and the order of conditions are Gatekeeper's (v3.23, pkg/drivers/k8scel/transform).
Fields that the API server would default are already set, so that the cluster's object can be
compared with the planned one.

A template's policy takes the constraint as its parameters. It never fails closed: an API server
that does not serve the constraints' kind (yet) would refuse every matching request, including the
ones that make it serve the kind. Errors of its evaluation are left to the webhook.

A policy of one constraint needs no such parameters, and has the template's ``failurePolicy``.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from webhook.admission_policies.kinds import CONDITIONS_MAX, GROUP, POLICY
from webhook.cel.syntax.identifiers import is_identifier
from webhook.constraint import constraint as constraints
from webhook.constraint.drivers.cel_source import ANY_OBJECT, INVENTORY, PARAMS, read_source
from webhook.constraint.names import qualified_name_faults
from webhook.constraint.targets.admission import NAME as ADMISSION
from webhook.constraint.template import CEL, read_template
from webhook.generation import conditions
from webhook.generation.literal import literal
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.api.shapes import Json
    from webhook.constraint.drivers.cel_source import CelSource
    from webhook.generation.scope import PolicyScope


def fault_of_texts(source: CelSource) -> str:
    """Returns a name or message that no policy may have; or an empty text.

    Kubernetes refuses it in pkg/apis/admissionregistration/validation; the webhook accepts it.
    """
    for variable in source.variables:
        if not is_identifier(variable.name):
            return f'its variable is named "{variable.name}", which is not an identifier of CEL'
    for condition in source.match_conditions:
        faults = qualified_name_faults(condition.name)
        if faults:
            return f'its match condition is named "{condition.name}": {faults[0]}'
    for index, validation in enumerate(source.validations):
        message = validation.message.strip()
        if "\n" in message or "\r" in message:
            return (
                f"the message of validations[{index}] has line breaks, which that of a "
                "ValidatingAdmissionPolicy may not have"
            )
    return ""


NAME_PREFIX: Final = "gatekeeper-"
OBJECT_NAME_MAX: Final = 253

_ANY_OBJECT: Final = (
    'has(request.operation) && request.operation == "DELETE" && object == null ? oldObject : object'
)
_PARAMETERS: Final = (
    "has(params.spec) && has(params.spec.parameters) ? params.spec.parameters : null"
)

IGNORES: Final = (
    "its errors are left to the webhook: a policy with parameters that fails closed would refuse "
    "every request while the API server does not serve the constraints' kind; "
    "--vap-generation-mode=constraint makes policies that fail closed"
)


class NotExpressible(Exception):
    """No API server policy can express it; the text has the reason."""


@dataclass(frozen=True, slots=True)
class PolicyCode:
    """The CEL of a template, with its kind and operations."""

    kind: str
    operations: tuple[str, ...]
    source: CelSource
    fails_expressly: bool


def read_code(template: Mapping[str, Any], *, fails: bool = True) -> PolicyCode | None:
    """Returns the CEL of a usable template; None without CEL.

    ``fails`` is the default of failurePolicy.
    """
    whole = read_template(template)
    read = next((part for part in whole.parts if part.target == ADMISSION), None)
    if read is None:
        return None  # it does not match API server requests
    code = next((candidate for candidate in read.code if candidate.engine == CEL), None)
    if code is None:
        return None
    source = read_source(code.source, fails=fails)
    expressly = type(code.source) is dict and code.source.get("failurePolicy") == "Fail"
    return PolicyCode(read.kind, tuple(sorted(read.operations)), source, expressly)


def template_policy_name(template: str) -> str:
    """Returns the name of a template's policy."""
    return f"{NAME_PREFIX}{template}"


def constraint_name(kind: str, name: str) -> str:
    """Returns the name of a constraint's binding, and of its own policy if it has one."""
    whole = f"{NAME_PREFIX}{kind.lower()}-{name}"
    if len(whole) <= OBJECT_NAME_MAX:
        return whole
    digest = hashlib.sha256(whole.encode()).hexdigest()[:8]
    return f"{whole[: OBJECT_NAME_MAX - len(digest) - 1].rstrip('-.')}-{digest}"


def template_policy(
    template: Mapping[str, Any], code: PolicyCode, scope: PolicyScope, version: str
) -> tuple[Json, str]:
    """Returns the policy of a template, and warnings.

    Raises :class:`NotExpressible` and :class:`~webhook.generation.scope.NoOperation`.
    """
    _check(code, alone=False)
    spec, warning = _spec(code, scope, conditions.of_parameters(), _PARAMETERS)
    kind: Json = {"apiVersion": f"{constraints.GROUP}/v1beta1", "kind": code.kind}
    warnings = [warning, IGNORES if code.fails_expressly else ""]
    name = template_policy_name(template["metadata"]["name"])
    spec = {**spec, "failurePolicy": "Ignore", "paramKind": kind}
    return document(POLICY, name, template, spec, version), "; ".join(filter(None, warnings))


def constraint_policy(
    constraint: Mapping[str, Any], code: PolicyCode, scope: PolicyScope, version: str
) -> tuple[Json, str]:
    """Returns the policy of a template with one constraint inserted; raises the same errors."""
    given = constraint.get("spec") or {}
    _check(code, alone=True)
    matched = conditions.of_match(given.get("match") or {})
    spec, warning = _spec(code, scope, matched, literal(given.get("parameters")))
    name = constraint_name(constraint["kind"], constraint["metadata"]["name"])
    spec = {**spec, "failurePolicy": "Fail" if code.source.fails else "Ignore"}
    return document(POLICY, name, constraint, spec, version), warning


def document(
    kind: str, name: str, owner: Mapping[str, Any], spec: Mapping[str, Any], version: str
) -> Json:
    """Returns an object of the API group, owned by a template or constraint."""
    metadata = owner["metadata"]
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata.get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": kind,
        "metadata": {"name": name, "ownerReferences": [reference]},
        "spec": dict(spec),
    }


def _spec(
    code: PolicyCode, scope: PolicyScope, matched: list[Json], parameters: str
) -> tuple[Json, str]:
    source = code.source
    if not source.validations:
        raise NotExpressible("it has no validations")
    if fault := fault_of_texts(source):
        raise NotExpressible(fault)
    match_constraints, warning = scope.match_constraints(code.operations)
    all_conditions = [
        *(
            {"name": condition.name, "expression": condition.expression}
            for condition in source.match_conditions
        ),
        *matched,
        conditions.not_released(),
        *conditions.globally_excluded(scope.excluded),
        *conditions.globally_exempted(scope.exempted),
        *(
            {"name": condition["name"], "expression": condition["expression"]}
            for condition in scope.conditions
        ),
    ]
    _check_conditions(all_conditions)
    variables = [(ANY_OBJECT, _ANY_OBJECT), (PARAMS, parameters)]
    variables += [(variable.name, variable.expression) for variable in source.variables]
    return {
        "matchConstraints": match_constraints,
        "matchConditions": all_conditions,
        "variables": [{"name": name, "expression": text} for name, text in variables],
        "validations": [
            {
                name: value
                for name, value in (
                    ("expression", validation.expression),
                    ("message", validation.message if validation.message.strip() else ""),
                    ("messageExpression", validation.message_expression),
                )
                if value
            }
            for validation in source.validations
        ],
    }, warning


def _check_conditions(all_conditions: list[Json]) -> None:
    if len(all_conditions) > CONDITIONS_MAX:
        raise NotExpressible(
            f"it would have {len(all_conditions)} match conditions, and may have {CONDITIONS_MAX}"
        )
    names = [condition["name"] for condition in all_conditions]
    for name in names:
        if names.count(name) > 1:
            raise NotExpressible(f"two match conditions are named {name}")


def _check(code: PolicyCode, *, alone: bool) -> None:
    """Raises for expressions that only the webhook can evaluate."""
    # Checked before compiling: very few templates read it.
    reads = INVENTORY in repr(code.source)
    if code.source.match_conditions or alone or reads:
        # Imported here, so that users without templates in CEL need not load the engine.
        from webhook.generation import checks  # noqa: PLC0415

        fault = checks.fault_of_inventory(code.source) if reads else ""
        if not fault:
            fault = checks.fault_of_conditions(code.source)
        if not fault and alone:
            fault = checks.fault_of_variables(code.source)
        if fault:
            raise NotExpressible(fault)
