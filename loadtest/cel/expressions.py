"""Typical expressions of policies, and the Pod that they are about."""

from typing import Any, Final

POD: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web-1",
        "namespace": "shop",
        "labels": {"app": "web", "owner": "team-a", "tier": "front"},
        "annotations": {"note": "x"},
    },
    "spec": {
        "hostNetwork": False,
        "securityContext": {"runAsNonRoot": True},
        "containers": [
            {
                "name": "web",
                "image": "registry.example/shop/web:1.2.3",
                "ports": [{"containerPort": 8080}, {"containerPort": 8443}],
                "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}},
                "securityContext": {"privileged": False, "capabilities": {"drop": ["ALL"]}},
            },
            {
                "name": "side",
                "image": "registry.example/tools/side:4",
                "resources": {"limits": {"cpu": "100m", "memory": "64Mi"}},
                "securityContext": {"privileged": False},
            },
        ],
    },
}

EXPRESSIONS: Final = (
    "object.kind == 'Pod'",
    "has(object.metadata.labels) && 'owner' in object.metadata.labels",
    "['app', 'owner'].all(l, l in object.metadata.labels)",
    "object.metadata.labels.owner.startsWith('team-')",
    "object.metadata.name.matches('^[a-z]+-[0-9]+$')",
    "!has(object.spec.hostNetwork) || object.spec.hostNetwork == false",
    (
        "object.spec.containers.all(c, !has(c.securityContext.privileged) || "
        "c.securityContext.privileged == false)"
    ),
    "object.spec.containers.all(c, c.image.startsWith('registry.example/'))",
    "object.spec.containers.all(c, has(c.resources.limits) && has(c.resources.limits.memory))",
    "object.spec.containers.filter(c, c.image.endsWith(':latest')).map(c, c.name).join(', ') == ''",
    "object.spec.containers.exists(c, has(c.ports) && c.ports.exists(p, p.containerPort == 8443))",
    "object.spec.containers.map(c, c.name).exists_one(n, n == 'web')",
    "object.?spec.?securityContext.?runAsNonRoot.orValue(false)",
    "size(object.spec.containers) <= 5",
    (
        "object.spec.containers.all(c, has(c.securityContext.capabilities) ? "
        "'ALL' in c.securityContext.capabilities.drop : true)"
    ),
    "'container ' + object.spec.containers[0].name + ' of ' + object.metadata.name",
)
"""Of presence, labels, loops, texts, patterns, optional values, messages."""
