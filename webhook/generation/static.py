"""Exports policies and bindings as files for an API server, to enforce them without a webhook.

Manifest-based admission control requires names with a suffix of their own, and objects without
references into the cluster. So each constraint has a policy with its parameters inserted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from webhook.admission_policies.kinds import BINDING, GROUP, POLICY
from webhook.api.names import IGNORE
from webhook.api.shapes import Json
from webhook.generation.literal import string, strings
from webhook.generation.plan import Enforced, Options, Planner
from webhook.generation.policy import constraint_name
from webhook.generation.scope import PolicyScope
from webhook.values import dataclass

SUFFIX: Final = ".static.k8s.io"
"""The ending that the API server requires of the names."""

VERSION: Final = "v1"
"""The only version that the API server reads from files."""

_CONFIGURATIONS: Final = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")

NO_CEL: Final = (
    "its template has no CEL (K8sNativeValidation), or is not to have a policy (generateVAP)"
)
NOT_HERE: Final = "it enforces nothing at the API server"


@dataclass(frozen=True, slots=True)
class Guarded:
    """The guarded objects, and the users and groups that may still change them."""

    name: str
    namespace: str
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


@dataclass(slots=True)
class StaticExport:
    """The exported objects, and the constraints that cannot be exported, each with its reason."""

    objects: list[Json] = field(default_factory=list)
    without: dict[str, str] = field(default_factory=dict)


def default_scope(namespace: str, excluded: Sequence[str]) -> PolicyScope:
    """Returns the scope without a webhook configuration; excludes what a cluster's repair needs."""
    spared = [namespace, "kube-system", "kube-node-lease", "kube-public"]
    return PolicyScope(
        namespace_selector={
            "matchExpressions": [
                {"key": IGNORE, "operator": "DoesNotExist"},
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": spared},
            ]
        },
        excluded=tuple(excluded),
    )


def static_export(
    templates: Mapping[str, Mapping[str, Any]],
    constraints: Mapping[tuple[str, str], Enforced],
    scope: PolicyScope,
    withdrawn: Callable[[Mapping[str, Any]], str],
) -> StaticExport:
    """Exports constraints as policies; ``templates`` are given by name."""
    plan = Planner(Options(alone=True), VERSION).plan(
        templates, constraints, scope, lambda _: "", withdrawn
    )
    export = StaticExport()
    for key in sorted(constraints):
        generated = plan.constraints.get(key)
        if generated is None:
            export.without["/".join(key)] = NO_CEL
            continue
        bound = plan.bindings.get(generated.binding)
        if why := generated.error or generated.withdrawn or ("" if bound else NOT_HERE):
            export.without["/".join(key)] = why
            continue
        assert bound is not None
        policy = plan.policies[bound["spec"]["policyName"]]
        name = f"{constraint_name(*key)}{SUFFIX}"  # of two names with at most 63 characters each
        export.objects.append(_object(POLICY, name, policy["spec"]))
        export.objects.append(_object(BINDING, name, {**bound["spec"], "policyName": name}))
    return export


def _object(kind: str, name: str, spec: Mapping[str, Any]) -> Json:
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": kind,
        "metadata": {"name": name},
        "spec": dict(spec),
    }


def guards(guarded: Guarded) -> list[Json]:
    """Returns a policy that lets only named users change our webhook configurations or namespace.

    Waddle itself may still write the CA bundle and the rules. API servers send no webhook requests
    on webhook configurations, and only policies from files apply to them.
    """
    configurations = [
        f"{guarded.name}-{kind}-webhook-configuration" for kind in ("validating", "mutating")
    ]
    user = f"system:serviceaccount:{guarded.namespace}:{guarded.name}"
    allowed = f"request.userInfo.username in {strings(guarded.users)}"
    if guarded.groups:
        allowed += (
            " || has(request.userInfo.groups) && "
            f"request.userInfo.groups.exists(group, group in {strings(guarded.groups)})"
        )
    named = ", ".join((*guarded.users, *guarded.groups))
    name = f"{guarded.name}-guard{SUFFIX}"
    policy = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "matchPolicy": "Equivalent",
            "namespaceSelector": {},
            "objectSelector": {},
            "resourceRules": [
                _rule(GROUP, ("UPDATE", "DELETE"), *_CONFIGURATIONS),
                _rule("", ("DELETE",), "namespaces"),
            ],
        },
        # Deleting a collection has no name in the request.
        "matchConditions": [
            {
                "name": "of-waddle",
                "expression": 'request.resource.resource == "namespaces" ? '
                f"oldObject.metadata.name == {string(guarded.namespace)} : "
                f"oldObject.metadata.name in {strings(configurations)}",
            }
        ],
        "validations": [
            {
                "expression": f'request.operation == "UPDATE" && request.userInfo.username == '
                f"{string(user)} || {allowed}",
                "message": f"only {named} may change or delete this: Waddle is asked by it",
                "reason": "Forbidden",
            }
        ],
    }
    binding = {"policyName": name, "validationActions": ["Deny"]}
    return [_object(POLICY, name, policy), _object(BINDING, name, binding)]


def _rule(group: str, operations: Sequence[str], *resources: str) -> Json:
    return {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": list(operations),
        "resources": list(resources),
        "scope": "*",
    }


def admission_configuration(folder: str) -> Json:
    """Returns the file of `--admission-control-config-file`, for policies in a folder."""
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": [
            {
                "name": POLICY,
                "configuration": {
                    "apiVersion": "apiserver.config.k8s.io/v1",
                    "kind": f"{POLICY}Configuration",
                    "staticManifestsDir": folder,
                },
            }
        ],
    }
