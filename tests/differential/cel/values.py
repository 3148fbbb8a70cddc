"""Inputs of expressions: values of every kind, and objects as in clusters."""

from typing import Any, Final

KINDS: Final[dict[str, Any]] = {
    "i": 1, "zero": 0, "neg": -5, "big": 9007199254740993, "top": 9223372036854775807,
    "d": 1.5, "whole": 2.0, "tiny": 1e-7, "huge": 1e21, "minus": -0.0,
    "s": "abc", "empty": "", "num": "12", "u": "héllo wörld ☃", "nl": "a\nb\t\"c\" \\ 'd'",
    "t": True, "f": False, "null": None, "ints": [3, 1, 2], "strs": ["b", "a", "b"],
    "doubles": [1.5, 0.5], "mixed": [1, "a", None, True, 1.5, {"x": 1}, [2]], "none": [],
    "bools": [True, False], "m": {"a": 1}, "labels": {"app": "web"},
    "any": {"x": {"y": [{"z": 1}, {"z": "q"}, {}]}, "n": None, "l": [{"k": "v"}]}, "void": {},
    "when": "2024-02-29T12:30:45.123Z", "later": "2025-01-01T00:00:00+02:00", "span": "1h2m3.5s",
    "q": "1.5Gi", "q2": "100m", "ip": "10.1.2.3", "ip6": "2001:db8::1", "net": "10.0.0.0/8",
    "url": "https://u:p@host.example:8443/a/b%20c?x=1&y=2&x=3#f", "ver": "1.2.3-rc.1+b7",
    "re": "^a+b*$", "bad": "a(", "name": "my-app.v1", "uuid": "123e4567-e89b-12d3-a456-426614174000",
}  # fmt: skip
"""Each kind of JSON, those that Python takes for another, and texts that libraries read."""

POD: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web-1",
        "namespace": "shop",
        "labels": {"app": "web"},
        "annotations": {"a/b": "c"},
        "creationTimestamp": "2024-05-01T10:00:00Z",
        "generation": 3,
    },
    "spec": {
        "hostNetwork": False,
        "serviceAccountName": "web",
        "securityContext": {"runAsNonRoot": True, "fsGroup": 2000},
        "containers": [
            {
                "name": "web",
                "image": "registry.example/shop/web:1.2.3",
                "ports": [{"containerPort": 8080, "hostPort": 80}],
                "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": 1}},
                "securityContext": {"privileged": True, "capabilities": {"add": ["NET_ADMIN"]}},
                "env": [{"name": "A", "value": "1"}, {"name": "B"}],
            },
            {"name": "side", "image": "busybox", "resources": {}, "command": ["sh", "-c", "x"]},
        ],
        "volumes": [{"name": "v", "hostPath": {"path": "/var"}}, {"name": "e", "emptyDir": {}}],
        "tolerations": None,
    },
}

REQUEST: Final[dict[str, Any]] = {
    "kind": {"group": "", "version": "v1", "kind": "Pod"},
    "resource": {"group": "", "version": "v1", "resource": "pods"},
    "name": "web-1",
    "namespace": "shop",
    "operation": "CREATE",
    "userInfo": {
        "username": "alice",
        "groups": ["dev", "system:authenticated"],
        "extra": {"k": ["v"]},
    },
    "dryRun": False,
    "options": None,
}

NAMESPACE: Final[dict[str, Any]] = {
    "metadata": {"name": "shop", "labels": {"env": "prod"}, "generation": 1},
    "spec": {"finalizers": ["kubernetes"]},
    "status": {"phase": "Active"},
}

VARIABLES: Final[dict[str, Any]] = {
    "object": KINDS,
    "oldObject": POD,
    "request": REQUEST,
    "namespaceObject": NAMESPACE,
    "params": {"spec": {"parameters": {"labels": ["app", "owner"], "max": 3, "cpu": "1"}}},
}

PATHS: Final[dict[str, tuple[str, ...]]] = {
    "object": tuple(KINDS),
    "oldObject": (
        "metadata", "metadata.labels", "metadata.name", "metadata.labels.app", "metadata.generation",
        "spec", "spec.containers", "spec.containers[0]", "spec.containers[0].image", "spec.volumes",
        "spec.containers[0].resources.limits", "spec.containers[1].resources", "spec.tolerations",
        "spec.hostNetwork", "spec.missing", "spec.containers[5]", "spec.securityContext.fsGroup",
        "metadata.annotations['a/b']", "spec.containers[0].ports[0].hostPort", "metadata.missing.x",
    ),
    "request": (
        "kind.group", "kind.kind", "operation", "namespace", "userInfo.username", "userInfo.groups",
        "userInfo.extra", "dryRun", "options", "subResource", "userInfo.uid",
    ),
    "namespaceObject": (
        "metadata.name", "metadata.labels", "metadata.labels.env", "spec.finalizers", "status.phase",
        "metadata.annotations", "metadata.creationTimestamp", "metadata.generation",
    ),
    "params": ("spec.parameters.labels", "spec.parameters.max", "spec.parameters.none", "spec"),
}  # fmt: skip
"""Fields that are there, and some that are not."""
