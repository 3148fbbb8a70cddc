"""What is applied to a cluster: kustomize and Helm render the same, and a real API server takes it."""

import base64
import copy
import json
import re
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster import Api, ApiError, Cluster
from tests.programs import ROOT, ProgramUnavailableError, gatekeeper_sources, program
from webhook import __version__, metrics
from webhook.api import pod_status
from webhook.api.pod_status import Pod, StatusError
from webhook.settings.serve import read

MANIFESTS = ROOT / "manifests"
CHART = MANIFESTS / "helm" / "waddle"
NAMESPACE = "waddle-system"
ENVIRONMENT = {"POD_NAME": "p", "POD_NAMESPACE": NAMESPACE, "POD_UID": "u"}

Object = dict[str, Any]

# Kinds that the test cluster does not serve: the Prometheus operator brings them.
FOREIGN = {"PrometheusRule"}

ADDITIONS = {
    "configpodstatuses": {"activeGeneration", "since"},
    "configs": {"activeGeneration", "since"},
    "constraintpodstatuses": {"activeGeneration", "since"},
    "constrainttemplatepodstatuses": {"activeGeneration", "since", "missingData"},
    "constrainttemplates": set(),
    "syncsets": set(),
}
"""The fields of ours in Gatekeeper's CRDs."""


def run(*command: str | Path) -> str:
    return subprocess.run(
        [str(part) for part in command], check=True, capture_output=True, text=True, timeout=60
    ).stdout


def by_identity(text: str) -> dict[tuple[str, str, str], Object]:
    """The objects of a YAML stream; each must be there once."""
    objects = [document for document in yaml.safe_load_all(text) if document]
    found = {
        (item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]): item
        for item in objects
    }
    assert len(found) == len(objects)
    return found


def kustomized(folder: Path) -> dict[tuple[str, str, str], Object]:
    return by_identity(run(program("kustomize"), "build", folder))


def with_components(folder: Path, *components: str) -> dict[tuple[str, str, str], Object]:
    """The base with components, as a user's own kustomization names them."""
    (folder / "manifests").symlink_to(MANIFESTS)
    (folder / "mine").mkdir()
    kustomization = {
        "resources": ["../manifests/base"],
        "components": [f"../manifests/{name}" for name in components],
    }
    (folder / "mine" / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    return kustomized(folder / "mine")


def helmed(*options: str) -> dict[tuple[str, str, str], Object]:
    """The chart as Helm renders it; a Helm without a release's flags knows no newer Kubernetes."""
    rendered = run(
        program("helm"), "template", "waddle", CHART, "--namespace", NAMESPACE,
        "--kube-version", "1.36.0", *options,
    )  # fmt: skip
    return by_identity(rendered)


def without_namespace(objects: dict[tuple[str, str, str], Object]) -> Any:
    """Helm makes the release's namespace by itself; the chart's notes say how to label it."""
    return {identity: item for identity, item in objects.items() if identity[0] != "Namespace"}


@pytest.mark.parametrize(
    ("folder", "options"),
    [
        ("base", ["--include-crds"]),
        ("overlays/fail-closed", ["--include-crds", "--set", "webhook.failClosed=true"]),
        ("overlays/beside-gatekeeper", ["--set", "operations={webhook}"]),
    ],
)
def test_the_chart_renders_what_kustomize_builds(folder, options):
    assert helmed(*options) == without_namespace(kustomized(MANIFESTS / folder))


def test_the_chart_renders_what_the_components_add(tmp_path):
    objects = with_components(tmp_path, "components/autoscaling", "components/alerts")
    options = ("--include-crds", "--set", "autoscaling.enabled=true,alerts.enabled=true")

    assert helmed(*options) == without_namespace(objects)


@pytest.fixture(scope="module")
def base() -> dict[tuple[str, str, str], Object]:
    return kustomized(MANIFESTS / "base")


def pod_of(objects: dict[tuple[str, str, str], Object]) -> Object:
    deployment = objects["Deployment", NAMESPACE, "waddle-webhook"]
    template: Object = deployment["spec"]["template"]
    return template


# --- what the manifests say ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [(), ("--set", "operations={webhook}"), ("--set", "certificates.existingSecret=c")]
)
def test_the_server_accepts_its_arguments(options):
    (container,) = pod_of(helmed(*options))["spec"]["containers"]
    assert container["args"][0] == "serve"
    settings = read(container["args"][1:], ENVIRONMENT)
    assert settings.notices == ()
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {
        "webhook": settings.port,
        "health": int(settings.health_addr.removeprefix(":")),
        "metrics": settings.prometheus_port,
    }


def test_a_pod_is_given_the_time_that_its_drain_takes(base):
    pod = pod_of(base)["spec"]
    settings = read(pod["containers"][0]["args"][1:], ENVIRONMENT)
    drain = (
        settings.shutdown_delay_seconds
        + settings.shutdown_grace_seconds
        + settings.decision_log_grace_seconds
    )
    assert drain < pod["terminationGracePeriodSeconds"]


def test_the_image_and_the_chart_are_of_this_version(base):
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == __version__
    assert pod_of(base)["spec"]["containers"][0]["image"] == f"waddle:{__version__}"


def test_alerts_are_about_metrics_that_the_server_has():
    (rule,) = yaml.safe_load_all((MANIFESTS / "components/alerts/prometheus-rule.yaml").read_text())
    names = {metric.name for metric in metrics.METRICS}
    for alert in rule["spec"]["groups"][0]["rules"]:
        words = {
            word
            for word in re.findall(r"[a-z_]+", alert["expr"])
            if word.startswith(("waddle_", "gatekeeper_"))
        }
        assert words, alert["alert"]
        for word in words:
            assert word.removesuffix("_total").removesuffix("_bucket") in names, alert["alert"]


def without_descriptions(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: without_descriptions(item)
            for name, item in value.items()
            if not (name == "description" and isinstance(item, str))
        }
    return [without_descriptions(item) for item in value] if isinstance(value, list) else value


def added(theirs: Any, ours: Any) -> set[str]:
    """The names that a schema has more than another; it must have all of the other."""
    if isinstance(theirs, dict):
        more = set(ours) - set(theirs)
        return more.union(*(added(item, ours[name]) for name, item in theirs.items()))
    if isinstance(theirs, list):
        assert len(theirs) == len(ours)
        return set().union(*(added(*pair) for pair in zip(theirs, ours, strict=True)))
    assert theirs == ours
    return set()


def test_the_crds_are_gatekeepers_and_have_our_fields_more(base):
    try:
        folder = gatekeeper_sources() / "charts" / "gatekeeper" / "crds"
    except ProgramUnavailableError as unavailable:
        pytest.skip(str(unavailable))
    documents = [yaml.safe_load(file.read_text()) for file in folder.glob("*.yaml")]
    theirs = {item["spec"]["names"]["plural"]: item["spec"] for item in documents}
    ours = {
        item["spec"]["names"]["plural"]: item["spec"]
        for (kind, _, _), item in base.items()
        if kind == "CustomResourceDefinition"
    }
    assert ours.keys() == ADDITIONS.keys()
    found = {name: added(without_descriptions(theirs[name]), spec) for name, spec in ours.items()}
    assert found == ADDITIONS


# --- a real API server --------------------------------------------------------------------------


def path_of(item: Object, *, one: bool = True) -> str:
    plurals = {
        "NetworkPolicy": "networkpolicies",
        "ConfigMap": "configmaps",
        "ConstraintTemplatePodStatus": "constrainttemplatepodstatuses",
        "ConstraintPodStatus": "constraintpodstatuses",
        "ConfigPodStatus": "configpodstatuses",
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


@pytest.fixture(scope="module")
def installed(cluster: Cluster, base) -> Iterator[Api]:
    """All that harms nobody: no webhook configuration ever, and nothing that would run."""
    api = cluster.api
    for item in base.values():
        if item["kind"] not in {"ValidatingWebhookConfiguration", "Deployment"}:
            apply(api, item, dry_run=False)
    yield api
    for kind in ("clusterrolebindings", "clusterroles"):
        for name in ("waddle", "waddle-synced-data", "waddle-synced-cluster-kinds"):
            try:
                api.request("DELETE", f"/apis/rbac.authorization.k8s.io/v1/{kind}/{name}")
            except ApiError as error:
                if error.status != 404:
                    raise


@pytest.mark.parametrize(
    "folder",
    ["base", "overlays/fail-closed", "overlays/beside-gatekeeper", "decisions/exporter"],
)
def test_the_api_server_takes_every_object(installed, folder):
    objects = kustomized(MANIFESTS / folder)
    for item in objects.values():
        apply(installed, item, dry_run=True)


@pytest.mark.parametrize(
    "components",
    [
        ["components/autoscaling", "components/alerts"],
        ["decisions/sidecar"],
        ["decisions/sidecar", "decisions/persistent"],
        ["decisions/vector"],
    ],
)
def test_the_api_server_takes_every_component(installed, components, tmp_path):
    objects = with_components(tmp_path, *components)
    for item in objects.values():
        if item["kind"] not in FOREIGN:
            apply(installed, item, dry_run=True)
    admit_pod(installed, objects)


def admit_pod(api: Api, objects: dict[tuple[str, str, str], Object]) -> None:
    """The Deployment's pod, made directly: a Deployment that breaks the rules is only warned."""
    pod = copy.deepcopy(pod_of(objects)) | {"apiVersion": "v1", "kind": "Pod"}
    pod["metadata"] |= {"name": "tried", "namespace": NAMESPACE}
    api.request("POST", path_of(pod, one=False) + "?dryRun=All", pod)


def test_the_pods_are_admitted_under_the_restricted_standard(installed, base):
    admit_pod(installed, base)
    broken = copy.deepcopy(base)
    container = pod_of(broken)["spec"]["containers"][0]
    container["securityContext"]["allowPrivilegeEscalation"] = True
    with pytest.raises(ApiError, match="PodSecurity"):
        admit_pod(installed, broken)


POD = Pod("waddle-0", NAMESPACE, "uid-of-the-pod", ("generate", "status", "webhook"))
SUBJECT = {"uid": "uid-of-the-object", "generation": 7}


def every_field() -> list[Object]:
    """One status object of each kind, with every field that a replica may write."""
    error = StatusError("ingest_error", "message", "location")
    additions = {"activeGeneration": 6, "since": "2026-01-01T00:00:00Z"}
    template = pod_status.pod_status(
        POD,
        pod_status.template_subject({"metadata": {"name": "fields", **SUBJECT}}),
        errors=[error],
        additions=additions
        | {"missingData": [{"group": "", "version": "v1", "kind": "Service"}]}
        | {"vapGenerationStatus": {"state": "error", "observedGeneration": 1, "warning": "w"}},
    )
    point = {"enforcementPoint": "p", "state": "s", "message": "m", "observedGeneration": 1}
    constraint = pod_status.pod_status(
        POD,
        pod_status.constraint_subject({"kind": "K", "metadata": {"name": "fields", **SUBJECT}}),
        errors=[error],
        enforced=True,
        additions=additions | {"enforcementPointsStatus": [point]},
    )
    config = pod_status.pod_status(
        POD,
        pod_status.config_subject(
            {"metadata": {"name": "config", "namespace": NAMESPACE, **SUBJECT}}
        ),
        additions=additions | {"errors": [{"type": "t", "message": "m"}]},
    )
    return [template, constraint, config]


@pytest.fixture
def owner(installed) -> Iterator[Object]:
    """A Pod to own the status objects: the garbage collector takes those whose owner is not there."""
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": POD.name, "namespace": NAMESPACE},
        "spec": pod_of(kustomized(MANIFESTS / "base"))["spec"],
    }
    made = installed.request("POST", path_of(manifest, one=False), manifest)
    yield {"apiVersion": "v1", "kind": "Pod", "name": POD.name, "uid": made["metadata"]["uid"]}
    installed.request("DELETE", path_of(manifest), {"gracePeriodSeconds": 0})


@pytest.mark.parametrize("document", every_field(), ids=lambda item: item["kind"])
def test_every_field_of_a_status_object_is_kept(installed, owner, document):
    document["metadata"]["ownerReferences"] = [owner]
    installed.request("POST", path_of(document, one=False), document)
    read_back = installed.request("GET", path_of(document))
    installed.request("DELETE", path_of(document))

    assert read_back["status"] == document["status"]
    assert read_back["metadata"]["labels"] == document["metadata"]["labels"]
    assert read_back["metadata"]["ownerReferences"] == document["metadata"]["ownerReferences"]


TEMPLATE = {
    "apiVersion": "templates.gatekeeper.sh/v1",
    "kind": "ConstraintTemplate",
    "metadata": {"name": "manifestfields"},
    "spec": {
        "crd": {"spec": {"names": {"kind": "ManifestFields"}}},
        "targets": [{"target": "admission.k8s.gatekeeper.sh", "rego": "package p"}],
    },
}
CONFIG = {
    "apiVersion": "config.gatekeeper.sh/v1alpha1",
    "kind": "Config",
    "metadata": {"name": "manifest-fields", "namespace": NAMESPACE},
    "spec": {"match": [{"excludedNamespaces": ["kube-*"], "processes": ["*"]}]},
}


@pytest.mark.parametrize(("manifest", "index"), [(TEMPLATE, 0), (CONFIG, 2)])
def test_by_pod_keeps_every_field_of_the_status_objects(installed, manifest, index):
    entry = every_field()[index]["status"]
    created = installed.request("POST", path_of(manifest, one=False), manifest)
    try:
        wanted = {"byPod": [entry]}
        if manifest is TEMPLATE:
            wanted["created"] = True
        installed.request("PUT", path_of(manifest) + "/status", created | {"status": wanted})
        read_back = installed.request("GET", path_of(manifest))
    finally:
        installed.request("DELETE", path_of(manifest))

    assert read_back["status"] == wanted


# --- rights -------------------------------------------------------------------------------------

CERTIFICATE = ("", "secrets", "waddle-webhook-server-cert", NAMESPACE)
WEBHOOKS = (
    "admissionregistration.k8s.io",
    "validatingwebhookconfigurations",
    "waddle-validating-webhook-configuration",
    "",
)
STATUSES = ("status.gatekeeper.sh", "constraintpodstatuses", "", NAMESPACE)

NEEDED = [
    ("list", ("templates.gatekeeper.sh", "constrainttemplates", "", "")),
    ("watch", ("constraints.gatekeeper.sh", "anything", "", "")),
    ("watch", ("syncset.gatekeeper.sh", "syncsets", "", "")),
    ("watch", ("", "namespaces", "", "")),
    ("watch", ("config.gatekeeper.sh", "configs", "", "")),
    ("update", ("config.gatekeeper.sh", "configs/status", "config", NAMESPACE)),
    ("update", ("templates.gatekeeper.sh", "constrainttemplates/status", "t", "")),
    ("update", ("templates.gatekeeper.sh", "constrainttemplates/finalizers", "t", "")),
    ("update", ("constraints.gatekeeper.sh", "anything/status", "c", "")),
    ("create", ("apiextensions.k8s.io", "customresourcedefinitions", "", "")),
    ("update", ("apiextensions.k8s.io", "customresourcedefinitions", "c", "")),
    *((verb, STATUSES) for verb in ("list", "watch", "create", "update", "delete")),
    ("watch", ("", "pods", "", NAMESPACE)),
    *((verb, CERTIFICATE) for verb in ("get", "list", "watch", "update")),
    *((verb, WEBHOOKS) for verb in ("get", "list", "watch", "update")),
]
FORBIDDEN = [
    ("list", ("", "secrets", "", NAMESPACE)),
    ("get", ("", "secrets", "other", NAMESPACE)),
    ("get", ("", "secrets", "waddle-webhook-server-cert", "default")),
    ("create", ("", "secrets", "", NAMESPACE)),
    ("delete", CERTIFICATE),
    ("list", ("", "secrets", "", "")),
    ("update", (*WEBHOOKS[:2], "another", "")),
    ("create", (*WEBHOOKS[:2], "", "")),
    ("delete", WEBHOOKS),
    ("delete", ("apiextensions.k8s.io", "customresourcedefinitions", "c", "")),
    ("update", ("templates.gatekeeper.sh", "constrainttemplates", "t", "")),
    ("delete", ("constraints.gatekeeper.sh", "anything", "c", "")),
    ("create", ("", "pods", "", NAMESPACE)),
    ("delete", ("", "pods", "p", NAMESPACE)),
    ("create", ("status.gatekeeper.sh", "constraintpodstatuses", "", "default")),
    ("update", ("apps", "deployments", "waddle-webhook", NAMESPACE)),
    ("impersonate", ("", "users", "admin", "")),
    ("escalate", ("rbac.authorization.k8s.io", "clusterroles", "", "")),
]


def allowed(api: Api, verb: str, what: tuple[str, str, str, str]) -> bool:
    group, resource, name, namespace = what
    resource, _, subresource = resource.partition("/")
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{NAMESPACE}:waddle",
            "groups": ["system:serviceaccounts", "system:authenticated"],
            "resourceAttributes": {
                "verb": verb,
                "group": group,
                "resource": resource,
                "subresource": subresource,
                "name": name,
                "namespace": namespace,
            },
        },
    }
    answer = api.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer["status"]["allowed"])


def test_the_service_account_may_do_what_it_must(installed):
    assert [case for case in NEEDED if not allowed(installed, *case)] == []


def test_the_service_account_may_do_nothing_else(installed):
    assert [case for case in FORBIDDEN if allowed(installed, *case)] == []


def test_one_secret_can_be_watched_without_the_right_to_all(installed, cluster):
    """A field selector of its name is what the rule's resourceNames allow."""
    token = installed.request(
        "POST",
        f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/waddle/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
    )["status"]["token"]
    context = ssl.create_default_context()
    context.load_verify_locations(cadata=authority_of(cluster.kubeconfig))

    def listed(query: str) -> int:
        request = urllib.request.Request(
            f"{cluster.server}/api/v1/namespaces/{NAMESPACE}/secrets{query}",
            headers={"Authorization": f"Bearer {token}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=30, context=context) as answer:
                return len(json.load(answer)["items"])
        except urllib.error.HTTPError as error:
            with error:
                return -error.code

    assert listed(f"?fieldSelector=metadata.name={CERTIFICATE[2]}") == 1
    assert listed("") == -403


def authority_of(kubeconfig: Path) -> str:
    found = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]
    return base64.b64decode(found["certificate-authority-data"]).decode()
