"""Policies, bindings and requests for tests."""

from typing import Any

Json = dict[str, Any]
API = "admissionregistration.k8s.io/v1"
PODS = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["pods"],
}


def _object(kind: str, name: str, spec: Json) -> Json:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def policy(*expressions: str, name: str = "p", rule: Json | None = None, **spec: Any) -> Json:
    """A policy over Pods, unless a rule says else."""
    made: Json = {
        "matchConstraints": {"resourceRules": [{**PODS, **(rule or {})}]},
        "validations": [{"expression": one} for one in expressions],
        **spec,
    }
    return _object("ValidatingAdmissionPolicy", name, made)


def binding(name: str = "b", policy: str = "p", **spec: Any) -> Json:
    """A binding that denies, unless it says else."""
    of = {"policyName": policy, "validationActions": ["Deny"], **spec}
    return _object("ValidatingAdmissionPolicyBinding", name, of)


def pod(name: str = "web", **labels: str) -> Json:
    """A Pod in the namespace ``shop``."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "labels": labels},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]},
    }


def request(obj: Json | None = None, **changed: Any) -> Json:
    """A request to create a Pod, unless it says else."""
    return {
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "name": "web",
        "namespace": "shop",
        "object": pod() if obj is None else obj,
        "userInfo": {"username": "ada"},
        **changed,
    }


def mutating_policy(*expressions: str, name: str = "m", **spec: Any) -> Json:
    """A mutating policy over Pods: a list is a JSON Patch, anything else is applied."""
    mutations = [
        {"patchType": "JSONPatch", "jsonPatch": {"expression": one}}
        if one.startswith("[")
        else {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": one}}
        for one in expressions
    ]
    made: Json = {
        "matchConstraints": {"resourceRules": [PODS]},
        "mutations": mutations,
        "reinvocationPolicy": "Never",
        **spec,
    }
    return _object("MutatingAdmissionPolicy", name, made)


def mutating_binding(name: str = "b", policy: str = "m", **spec: Any) -> Json:
    """A binding of a mutating policy."""
    return _object("MutatingAdmissionPolicyBinding", name, {"policyName": policy, **spec})


def kyverno(name: str = "k", expression: str = "true", resource: str = "pods") -> Json:
    """A policy of Kyverno."""
    rule = {
        "apiGroups": ["coordination.k8s.io" if resource == "leases" else ""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": [resource],
    }
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": expression}],
        },
    }
