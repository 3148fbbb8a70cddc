"""Sample objects on which a policy is tried before it is enforced.

One for each kind that a constraint matches: a Pod, the workloads that create Pods, and for any
other kind an object with only a name. They do not test the meaning of a policy, only that it
terminates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

SAMPLES_MAX: Final = 8
"""The most samples of each constraint: the first kinds of a constraint with a hundred."""

NAMESPACE: Final = "default"

_CONTAINER: Final = {
    "name": "main",
    "image": "registry.example/app:1.0",
    "args": ["--port=8080"],
    "command": ["/app"],
    "env": [{"name": "MODE", "value": "sample"}],
    "ports": [{"containerPort": 8080, "protocol": "TCP"}],
    "resources": {
        "limits": {"cpu": "500m", "memory": "256Mi"},
        "requests": {"cpu": "100m", "memory": "128Mi"},
    },
    "securityContext": {"capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]}},
    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
}
_POD_SPEC: Final = {
    "containers": [_CONTAINER, {**_CONTAINER, "name": "side"}],
    "initContainers": [{**_CONTAINER, "name": "init"}],
    "securityContext": {"runAsUser": 1000},
    "serviceAccountName": "default",
    "volumes": [{"name": "data", "emptyDir": {}}, {"name": "host", "hostPath": {"path": "/"}}],
}
_WORKLOADS: Final = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"})
_VERSIONS: Final = {
    "apps": "v1",
    "batch": "v1",
    "networking.k8s.io": "v1",
    "rbac.authorization.k8s.io": "v1",
    "policy": "v1",
    "": "v1",
}
_CLUSTER_SCOPED: Final = frozenset(
    {"Namespace", "Node", "ClusterRole", "ClusterRoleBinding", "PersistentVolume", "StorageClass"}
)


def samples(match: Mapping[str, Any] | None) -> Iterator[dict[str, Any]]:
    """Yields the sample objects for a constraint's ``spec.match``."""
    listed = (match or {}).get("kinds")
    pairs = [
        (group, kind)
        for item in (listed if isinstance(listed, list) else ())
        if isinstance(item, dict)
        for group in item.get("apiGroups") or ("",)
        for kind in item.get("kinds") or ("*",)
        if isinstance(group, str) and isinstance(kind, str)
    ]
    for group, kind in (pairs or [("*", "*")])[:SAMPLES_MAX]:
        yield sample("" if group == "*" else group, "Pod" if kind == "*" else kind)


def sample(group: str, kind: str) -> dict[str, Any]:
    """Returns an object of a kind."""
    if kind in _WORKLOADS:
        group = group or ("batch" if kind == "Job" else "apps")
    version = _VERSIONS.get(group, "v1")
    metadata: dict[str, Any] = {
        "name": "sample",
        "labels": {"app": "sample"},
        "annotations": {"note": "sample"},
    }
    if kind not in _CLUSTER_SCOPED:
        metadata["namespace"] = NAMESPACE
    sample = {
        "apiVersion": f"{group}/{version}" if group else version,
        "kind": kind,
        "metadata": metadata,
    }
    if kind == "Pod":
        sample["spec"] = _POD_SPEC
    elif kind in _WORKLOADS:
        template = {"metadata": {"labels": {"app": "sample"}}, "spec": _POD_SPEC}
        selector = {"matchLabels": {"app": "sample"}}
        sample["spec"] = {"replicas": 2, "selector": selector, "template": template}
    else:
        sample["spec"] = {}
    return sample
