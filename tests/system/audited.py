"""A mixed set of objects and constraints that an audit is tried on, and what became of it."""

from typing import Any

from tests.cluster import ApiError
from tests.patience import until
from tests.policies import expansion_template
from tests.system.replicas import CONSTRAINTS, CRD_PATH, Plane, try_request

LABELLED = """
package labelled

violation[{"msg": msg, "details": {"missing": missing}}] {
  missing := input.parameters.label
  not input.review.object.metadata.labels[missing]
  msg := sprintf("%v %v has no label %v%v", [
    input.review.kind.kind, input.review.object.metadata.name, missing, input.parameters.suffix])
}
"""

LONG = "".join(("é" * 90, "語" * 60))
"""Longer than a status shows, and cut within a character of three bytes."""

SPACES = {
    "audited-a": {"team": "a"},
    "audited-b": {"team": "b"},
    "audited-out": {"team": "a"},
    "skipped-by-config": {"team": "a"},
}
"""Namespaces with their labels."""

MANY = 23
"""ConfigMaps in one namespace: more than a status shows, and than a small page has."""


def match(kinds: str = "", group: str = "", **more: Any) -> dict[str, Any]:
    """A `spec.match`."""
    found: dict[str, Any] = dict(more)
    if kinds:
        found["kinds"] = [{"apiGroups": [group], "kinds": kinds.split(",")}]
    return found


SPECS: dict[str, dict[str, Any]] = {
    "namespaces": {"match": match("Namespace", name="audited-*")},
    "excluding": {"match": match("ConfigMap", excludedNamespaces=["audited-out", "kube-*"])},
    "selecting": {
        "match": match(
            "ConfigMap", namespaceSelector={"matchLabels": {"team": "b"}}, name="audited-*"
        )
    },
    "labelled": {"match": match("ConfigMap", labelSelector={"matchLabels": {"tier": "front"}})},
    "cluster-scoped": {"match": match("ClusterRole", "rbac.authorization.k8s.io")},
    "cluster-scope": {"match": match(scope="Cluster", name="audited-*")},
    "every-kind": {"match": match(name="audited-*", scope="Namespaced")},
    "original": {"match": match("ConfigMap", source="Original", name="audited-*")},
    "generated": {"match": match("Pod", source="Generated")},
    "implied": {"match": match("Pod", namespaces=["audited-*"])},
    "warned": {"enforcementAction": "warn", "match": match("Deployment", "apps")},
    "dry": {"enforcementAction": "dryrun", "match": match("ConfigMap", namespaces=["audited-a"])},
    "at-the-audit": {
        "enforcementAction": "scoped",
        "scopedEnforcementActions": [
            {"action": "warn", "enforcementPoints": [{"name": "audit.gatekeeper.sh"}]},
            {"action": "deny", "enforcementPoints": [{"name": "*"}]},
        ],
        "match": match("ConfigMap", namespaces=["audited-b"]),
    },
    "at-the-webhook": {
        "enforcementAction": "scoped",
        "scopedEnforcementActions": [
            {"action": "deny", "enforcementPoints": [{"name": "validation.gatekeeper.sh"}]}
        ],
        "match": match("ConfigMap"),
    },
    "long": {"match": match("ConfigMap", namespaces=["audited-a"]), "suffix": LONG},
    "nothing": {"match": match("Ingress", "networking.k8s.io")},
}
"""The constraints of :data:`LABELLED` by name."""

TEMPLATE = {
    "apiVersion": "templates.gatekeeper.sh/v1",
    "kind": "ConstraintTemplate",
    "metadata": {"name": "labelled"},
    "spec": {
        "crd": {
            "spec": {
                "names": {"kind": "Labelled"},
                "validation": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "label": {"type": "string"},
                            "suffix": {"type": "string"},
                        },
                    }
                },
            }
        },
        "targets": [{"target": "admission.k8s.gatekeeper.sh", "rego": LABELLED}],
    },
}

EXPANSION = expansion_template("deployments", version="v1beta1")


def constraints() -> list[dict[str, Any]]:
    """Every constraint."""
    return [
        {
            "apiVersion": "constraints.gatekeeper.sh/v1beta1",
            "kind": "Labelled",
            "metadata": {"name": name},
            "spec": {
                **{key: value for key, value in spec.items() if key != "suffix"},
                "parameters": {"label": "owner", "suffix": spec.get("suffix", "")},
            },
        }
        for name, spec in SPECS.items()
    ]


def objects() -> list[tuple[str, dict[str, Any]]]:
    """Every object with the path that it is applied at."""
    found: list[tuple[str, dict[str, Any]]] = []

    def add(path: str, version: str, kind: str, name: str, **rest: Any) -> None:
        metadata = {"name": name, "labels": rest.pop("labels", {})}
        manifest = {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}
        found.append((f"{path}/{name}", manifest))

    for name, labels in SPACES.items():
        add("/api/v1/namespaces", "v1", "Namespace", name, labels=labels)
    for name in SPACES:
        space = f"/api/v1/namespaces/{name}"
        for number in range(MANY if name == "audited-a" else 3):
            owned = {"owner": "x"} if number == 1 else {}
            front = {"tier": "front"} if number % 2 else {}
            add(f"{space}/configmaps", "v1", "ConfigMap", f"audited-{number}", labels=owned | front)
        add(
            f"/apis/apps/v1/namespaces/{name}/deployments",
            "apps/v1",
            "Deployment",
            "audited-web",
            spec=deployment_spec(),
        )
    for number in range(2):
        add(
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            "rbac.authorization.k8s.io/v1",
            "ClusterRole",
            f"audited-{number}",
            rules=[],
        )
    return found


def deployment_spec() -> dict[str, Any]:
    """Of a Deployment whose Pods no controller makes here."""
    labels = {"app": "web"}
    containers = [{"name": "web", "image": "web"}]
    return {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
    }


def config(namespace: str) -> tuple[str, dict[str, Any]]:
    """A Config that takes namespaces out of the audit, for the product in a namespace."""
    entries = [
        {"excludedNamespaces": ["skipped-*"], "processes": ["audit"]},
        {"excludedNamespaces": ["audited-b"], "processes": ["webhook"]},
    ]
    manifest = {
        "apiVersion": "config.gatekeeper.sh/v1alpha1",
        "kind": "Config",
        "metadata": {"name": "config", "namespace": namespace},
        "spec": {"match": entries},
    }
    return f"/apis/config.gatekeeper.sh/v1alpha1/namespaces/{namespace}/configs/config", manifest


def apply(plane: Plane, path: str, manifest: dict[str, Any]) -> None:
    """Apply an object as soon as the API server takes it."""

    def is_applied() -> bool:
        try:
            plane.api.apply(path, manifest)
        except ApiError as error:
            if error.status in (403, 404, 409, 429, 503):
                return False
            raise
        return True

    until(is_applied, f"{path} is applied")


def apply_all(plane: Plane) -> None:
    """Apply every object."""
    for path, manifest in objects():
        apply(plane, path, manifest)


def results(plane: Plane, kind: str = "labelled") -> dict[str, dict[str, Any]]:
    """Returns the audit's results of each constraint of a kind, by name."""
    found = try_request(plane.api, "GET", f"{CONSTRAINTS}/{kind}") or {"items": []}
    names = ("auditTimestamp", "totalViolations", "violations")
    return {
        item["metadata"]["name"]: {
            name: value for name, value in (item.get("status") or {}).items() if name in names
        }
        for item in found["items"]
    }


def totals(plane: Plane, kind: str = "labelled") -> dict[str, Any]:
    """Each constraint's total; None where no audit has told one."""
    return {name: found.get("totalViolations") for name, found in results(plane, kind).items()}


def is_audited_since(plane: Plane, moment: str, names: set[str], kind: str = "labelled") -> bool:
    """Whether a sweep that began at or after a moment (RFC 3339) told of all these constraints."""
    found = results(plane, kind)
    return all(found.get(name, {}).get("auditTimestamp", "") >= moment for name in names)


def is_served(plane: Plane, kind: str = "labelled") -> bool:
    """Whether a constraint kind's CRD is established."""
    crd = try_request(plane.api, "GET", f"{CRD_PATH}/{kind}.constraints.gatekeeper.sh") or {}
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(item["type"] == "Established" and item["status"] == "True" for item in conditions)
