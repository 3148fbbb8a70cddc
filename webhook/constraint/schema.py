"""The CRD of a template's constraints, and the check of constraints against it.

The CRD equals Gatekeeper's in every field, since clusters already have it and tools read it; two
printer columns for the conditions are added at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import gvk_of, name_of
from webhook.constraint import structural
from webhook.constraint.constraint import GROUP
from webhook.constraint.errors import InvalidConstraint, InvalidTemplate, SchemaViolation, shown
from webhook.constraint.names import POLICY_NAME_MAX, subdomain_faults
from webhook.constraint.schema_check import schema_faults
from webhook.constraint.schema_types import unsatisfiable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.constraint.several_targets import SeveralTargets
    from webhook.constraint.target import Target
    from webhook.constraint.template import Template

VERSIONS: Final = ("v1beta1", "v1alpha1")
"""The served versions of a constraint; the first one is stored."""

SCOPED_ACTIONS: Final = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "action": {"type": "string"},
            "enforcementPoints": {
                "type": "array",
                "items": {"type": "object", "properties": {"name": {"type": "string"}}},
            },
        },
    },
}

_COLUMNS: Final = (
    {
        "name": "enforcement-action",
        "description": "Type of enforcement action",
        "jsonPath": ".spec.enforcementAction",
        "type": "string",
    },
    {
        "name": "total-violations",
        "description": "Total number of violations",
        "jsonPath": ".status.totalViolations",
        "type": "integer",
    },
    {
        "name": "state",
        "description": "What the replicas together do about it: Active, Degraded or Error",
        # The first condition that holds: ours stand first, and exclude one another.
        "jsonPath": '.status.conditions[?(@.status=="True")].type',
        "type": "string",
    },
    {
        "name": "reason",
        "description": "Why the state is as it is, or empty: as NotAsked, RolledBack or Terminating",
        "jsonPath": '.status.conditions[?(@.type=="Enforced")].reason',
        "type": "string",
    },
    {
        "name": "enforced",
        "description": "How many replicas enforce which generation",
        "jsonPath": '.status.conditions[?(@.type=="Enforced")].message',
        "type": "string",
    },
)


def create_crd(template: Template, target: Target | SeveralTargets) -> dict[str, Any]:
    """Returns the CRD (``apiextensions.k8s.io/v1``) of a template's constraints.

    Raises :class:`~webhook.constraint.errors.InvalidTemplate` if the API server would refuse it.
    """
    schema = _schema(template, target)
    plural = template.kind.lower()
    faults = schema_faults(template, schema)
    if faults:
        raise InvalidTemplate(f"invalid ConstraintTemplate: {_aggregate(faults)}")
    names: dict[str, Any] = {
        "kind": template.kind,
        "listKind": f"{template.kind}List",
        "plural": plural,
        "singular": plural,
        "categories": ["constraint", "constraints"],
    }
    if template.short_names:
        names["shortNames"] = list(template.short_names)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{GROUP}",
            "labels": {**template.labels, "gatekeeper.sh/constraint": "yes"},
        },
        "spec": {
            "group": GROUP,
            "names": names,
            "scope": "Cluster",
            "conversion": {"strategy": "None"},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": version == VERSIONS[0],
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": list(_COLUMNS),
                }
                for version in VERSIONS
            ],
        },
    }


def _aggregate(faults: Sequence[str]) -> str:
    """Returns errors as one, in the form of Kubernetes' aggregates."""
    return faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"


def _schema(template: Template, target: Target | SeveralTargets) -> dict[str, Any]:
    spec: dict[str, Any] = {
        **target.spec_schema(),
        "match": target.match_schema(),
        "enforcementAction": {"type": "string", "default": "deny"},
        "scopedEnforcementActions": SCOPED_ACTIONS,
    }
    if template.schema is not None:
        spec["parameters"] = template.schema
    return {
        "type": "object",
        "properties": {
            "metadata": {
                "type": "object",
                "properties": {"name": {"type": "string", "maxLength": POLICY_NAME_MAX}},
            },
            "spec": {"type": "object", "properties": spec},
            "status": {"x-kubernetes-preserve-unknown-fields": True},
        },
    }


def crd_schema(crd: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the schema of a CRD from :func:`create_crd`."""
    schema: dict[str, Any] = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def unsatisfiable_fault(crd: Mapping[str, Any]) -> str:
    """Returns why no constraint could be valid by a CRD from :func:`create_crd`; empty if one can.

    Only admission checks this: templates that a cluster already has stay usable.
    """
    fault = next(unsatisfiable(crd_schema(crd), "spec.validation.openAPIV3Schema"), "")
    return f"invalid ConstraintTemplate: {fault}" if fault else ""


def validate_constraint(constraint: Mapping[str, Any], crd: Mapping[str, Any]) -> None:
    """Checks a constraint against its template's CRD, with the framework's messages.

    Raises :class:`~webhook.constraint.errors.InvalidConstraint` for its name, kind, version or an
    unknown field, :class:`~webhook.constraint.errors.SchemaViolation` if the schema refuses it.
    """
    name, gvk = name_of(constraint), gvk_of(constraint)
    if faults := subdomain_faults(name):
        raise InvalidConstraint(f"invalid Constraint: invalid name: {shown(chr(10).join(faults))}")
    kind = crd["spec"]["names"]["kind"]
    if gvk.kind != kind:
        raise InvalidConstraint(
            f'invalid Constraint: wrong kind "{gvk.kind}" for constraint "{name}"; want "{kind}"'
        )
    if gvk.version not in VERSIONS:
        raise InvalidConstraint(
            f'invalid Constraint: unsupported version "{gvk.version}" for Constraint "{name}"; '
            "supported versions: map[v1alpha1:true v1beta1:true]"
        )
    schema = crd_schema(crd)
    if faults := structural.faults(constraint, schema):
        text = _aggregate(list(dict.fromkeys(faults)))
        raise SchemaViolation(f"schema validation failed: {text}")
    if unknown := structural.unknown_fields(constraint, schema):
        raise InvalidConstraint(f"invalid Constraint: unknown fields: [{' '.join(unknown)}]")


def validate_match(constraint: Mapping[str, Any], target: Target | SeveralTargets) -> None:
    """Checks only the match of a constraint, not its parameters; raises InvalidConstraint."""
    spec = constraint.get("spec") or {}
    if type(spec) is not dict:
        raise InvalidConstraint("invalid Constraint: spec must be an object")
    match = spec.get("match")
    if match is not None and (faults := structural.faults(match, target.match_schema())):
        raise SchemaViolation(f"schema validation failed: {faults[0]}")
    target.validate_constraint(constraint)


def with_defaults(constraint: Mapping[str, Any], crd: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the constraint with the schema's defaults and without its status."""
    result: dict[str, Any] = structural.with_defaults(dict(constraint), crd_schema(crd))
    result.pop("status", None)
    return result
