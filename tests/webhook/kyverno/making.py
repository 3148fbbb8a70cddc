"""MutatingPolicies of Kyverno, and a Pod, for tests."""

from typing import Any

Json = dict[str, Any]
PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
LABEL = 'Object{metadata: Object.metadata{labels: {"team": "a"}}}'


def applied(expression: str) -> Json:
    """A mutation by what is applied to the object."""
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def patch(expression: str) -> Json:
    """A mutation by a JSON Patch."""
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def document(*mutations: Json, kind: str = "MutatingPolicy", **spec: Any) -> Json:
    """A policy over Pods that are created."""
    made = {"matchConstraints": {"resourceRules": [PODS]}, "mutations": list(mutations), **spec}
    metadata = {"name": "p", "namespace": "shop"}
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": kind,
        "metadata": metadata,
        "spec": made,
    }


def pod(**spec: Any) -> Json:
    """A Pod in the namespace ``shop``."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"containers": [{"name": "c", "image": "nginx", "args": ["a"]}], **spec},
    }
