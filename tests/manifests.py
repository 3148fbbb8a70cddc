"""The manifests rendered by the real programs, and objects sent to an API server."""

import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.cluster import Api
from tests.patience import PATIENCE_SECONDS
from tests.policies import definition
from tests.programs import ROOT, program

MANIFESTS = ROOT / "manifests"
CHART = MANIFESTS / "helm" / "waddle"
NAMESPACE = "waddle-system"
CONFIGURATION = "waddle-validating-webhook-configuration"
ENVIRONMENT = {"POD_NAME": "p", "POD_NAMESPACE": NAMESPACE, "POD_UID": "u"}

Object = dict[str, Any]
Objects = dict[tuple[str, str, str], Object]
"""By kind, namespace and name."""


def run(*command: str | Path) -> str:
    return subprocess.run(
        [str(part) for part in command],
        check=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    ).stdout


def by_identity(text: str) -> Objects:
    """The objects of a YAML stream; each must be there once."""
    objects = [document for document in yaml.safe_load_all(text) if document]
    found = {
        (item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]): item
        for item in objects
    }
    assert len(found) == len(objects)
    return found


def kustomized(folder: Path) -> Objects:
    return by_identity(run(program("kustomize"), "build", folder))


def with_components(folder: Path, *components: str, onto: str = "base") -> Objects:
    """The base, or an overlay, with components, as a user's own kustomization names them."""
    (folder / "manifests").symlink_to(MANIFESTS)
    (folder / "mine").mkdir()
    kustomization = {
        "resources": [f"../manifests/{onto}"],
        "components": [f"../manifests/{name}" for name in components],
    }
    (folder / "mine" / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    return kustomized(folder / "mine")


RELEASE_LABELS = {
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/part-of",
    "app.kubernetes.io/version",
    "helm.sh/chart",
}
"""Of every object of the chart; no selector has one."""


def templated(*options: str, release: str = "waddle") -> Objects:
    """The chart as Helm renders it; a Helm without a release's flags knows no newer Kubernetes."""
    rendered = run(
        program("helm"), "template", release, CHART, "--namespace", NAMESPACE,
        "--kube-version", "1.36.0", *options,
    )  # fmt: skip
    return by_identity(rendered)


def helmed(*options: str) -> Objects:
    """Returns the chart's objects, without the labels that tell releases apart."""
    found = templated("--no-hooks", *options)
    for (kind, _, name), item in found.items():
        if kind != "CustomResourceDefinition":
            labels = item["metadata"]["labels"]
            assert labels.keys() >= RELEASE_LABELS, (kind, name)
            item["metadata"]["labels"] = {
                key: value for key, value in labels.items() if key not in RELEASE_LABELS
            }
    return found


def without_namespace(objects: Objects) -> Objects:
    """Helm makes the release's namespace by itself; the chart's notes say how to label it."""
    return {identity: item for identity, item in objects.items() if identity[0] != "Namespace"}


def pod_of(objects: Objects, name: str = "waddle-webhook") -> Object:
    deployment = objects["Deployment", NAMESPACE, name]
    template: Object = deployment["spec"]["template"]
    return template


def path_of(item: Object, *, one: bool = True) -> str:
    plurals = {
        "NetworkPolicy": "networkpolicies",
        "ConfigMap": "configmaps",
        "ConstraintTemplatePodStatus": "constrainttemplatepodstatuses",
        "ConstraintPodStatus": "constraintpodstatuses",
        "ConfigPodStatus": "configpodstatuses",
        "ManifestFields": "manifestfields",
    }
    version, kind = item["apiVersion"], item["kind"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    namespace = item["metadata"].get("namespace")
    scope = f"/namespaces/{namespace}" if namespace else ""
    name = f"/{item['metadata']['name']}" if one else ""
    return f"{root}{scope}/{plurals.get(kind, kind.lower() + 's')}{name}"


def apply(api: Api, item: Object, *, dry_run: bool) -> Object:
    """Server-side apply with unknown fields refused."""
    query = "?fieldManager=manifests&force=true&fieldValidation=Strict"
    query += "&dryRun=All" if dry_run else ""
    answer: Object = api.request(
        "PATCH", path_of(item) + query, item, content_type="application/apply-patch+yaml"
    )
    return answer


def constraint_crd(kind: str) -> Object:
    """The CRD of a kind of constraints, with a schema that takes everything."""
    return definition(
        *(kind, kind.lower(), "constraints.gatekeeper.sh"),
        version="v1beta1",
        with_status=True,
        labels={"gatekeeper.sh/constraint": "yes"},
    )


PERSISTENT = "decisions.mode=sidecar,decisions.queue.persistent=true"
MONITORED = "alerts.enabled=true,podMonitor.enabled=true"
DECISIONS = [
    (("decisions/sidecar",), "decisions.mode=sidecar"),
    (("decisions/exporter",), "decisions.mode=exporter"),
    (
        ("decisions/sidecar", "decisions/persistent"),
        PERSISTENT,
    ),
    (
        ("decisions/sidecar", "decisions/gatekeeper-format"),
        "decisions.mode=sidecar,decisions.format=gatekeeper",
    ),
    (
        ("decisions/exporter", "decisions/exporter-gatekeeper-format"),
        "decisions.mode=exporter,decisions.format=gatekeeper",
    ),
    (
        ("components/service-monitor", "decisions/sidecar"),
        "serviceMonitor.enabled=true,decisions.mode=sidecar",
    ),
    (
        (
            *("components/alerts", "components/pod-monitor", "decisions/sidecar"),
            *("decisions/persistent", "decisions/audit-report", "decisions/alerts"),
        ),
        f"{PERSISTENT},decisions.auditReport.enabled=true,{MONITORED}",
    ),
]


def read_texts(objects: Objects) -> Any:
    """With what is in ConfigMaps read: comments and the form are each one's own."""
    found = {}
    for identity, item in objects.items():
        if item["kind"] == "ConfigMap":
            data = {name: yaml.safe_load(text) for name, text in item["data"].items()}
            found[identity] = item | {"data": data}
        else:
            found[identity] = item
    return found
