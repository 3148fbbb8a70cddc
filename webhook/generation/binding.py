"""Generates a ValidatingAdmissionPolicyBinding from a constraint.

It is Gatekeeper's binding with two additions. ``match.scope`` becomes a rule of the binding. A
constraint for generated resources only gets no binding, since no request contains those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from webhook.admission_policies.kinds import BINDING
from webhook.api.shapes import Json
from webhook.constraint.enforcement import VAP, points_of
from webhook.generation.policy import (
    NotExpressible,
    constraint_name,
    document,
    template_policy_name,
)

_ACTIONS: Final = {"deny": "Deny", "warn": "Warn", "dryrun": "Audit"}
_SCOPES: Final = frozenset({"Cluster", "Namespaced"})


def vap_actions(constraint: Mapping[str, Any], action: str, *, by_default: bool) -> tuple[str, ...]:
    """Returns the actions of a constraint in the API server; none if it does not apply there.

    ``action`` is the enforcement action in force. Raises
    :class:`~webhook.constraint.errors.InvalidConstraint`.
    """
    if action == "scoped":
        return points_of(constraint, (VAP,)).get(VAP, ())
    return (action,) if by_default else ()


def binding(
    constraint: Mapping[str, Any], actions: Sequence[str], version: str, *, alone: bool
) -> Json:
    """Returns the binding; ``alone`` is whether the policy belongs to this constraint only.

    Raises :class:`~webhook.generation.policy.NotExpressible`.
    """
    kind, name = constraint["kind"], constraint["metadata"]["name"]
    match = (constraint.get("spec") or {}).get("match") or {}
    if (match.get("source") or "All") == "Generated":
        raise NotExpressible("it is for generated resources, which no request is about")
    constraint_id = constraint_name(kind, name)
    resources: Json = {
        "matchPolicy": "Equivalent",
        "namespaceSelector": match.get("namespaceSelector") or {},
        "objectSelector": match.get("labelSelector") or {},
    }
    if match.get("scope") in _SCOPES:
        resources["resourceRules"] = [
            {
                "apiGroups": ["*"],
                "apiVersions": ["*"],
                "operations": ["*"],
                "resources": ["*/*"],
                "scope": match["scope"],
            }
        ]
    spec: Json = {
        "policyName": constraint_id if alone else template_policy_name(kind.lower()),
        "matchResources": resources,
        "validationActions": _validation_actions(actions),
    }
    if not alone:
        spec["paramRef"] = {"name": name, "parameterNotFoundAction": "Allow"}
    return document(BINDING, constraint_id, constraint, spec, version)


def _validation_actions(actions: Sequence[str]) -> list[str]:
    """Returns the actions as Kubernetes names them.

    Drops Warn beside Deny, as Kubernetes refuses both.
    """
    chosen = []
    for action in actions:
        if action not in _ACTIONS:
            raise NotExpressible(
                f"invalid enforcement action: unrecognized enforcement action {action}, must be "
                "`warn`, `deny` or `dryrun`"
            )
        chosen.append(_ACTIONS[action])
    if "Deny" in chosen:
        chosen = [name for name in chosen if name != "Warn"]
    return list(dict.fromkeys(chosen))
