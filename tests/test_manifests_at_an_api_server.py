"""A real API server takes what the manifests make, keeps its fields, and grants its rights."""

import base64
import copy
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster import Api, ApiError, Cluster
from tests.manifests import (
    CONFIGURATION,
    ENVIRONMENT,
    MANIFESTS,
    NAMESPACE,
    Object,
    Objects,
    apply,
    helmed,
    kustomized,
    path_of,
    pod_of,
    with_components,
)
from tests.patience import PATIENCE_SECONDS, until
from webhook.api import pod_status
from webhook.api.pod_status import Pod, StatusError
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.controllers.conditions import Verdict, merged
from webhook.settings.reading import read

# Kinds that the test cluster does not serve: the Prometheus operator brings them.
FOREIGN = {"PrometheusRule", "PodMonitor", "ServiceMonitor"}

KUSTOMIZATION = "kustomization.yaml"


@pytest.fixture(scope="module")
def base() -> Objects:
    return kustomized(MANIFESTS / "base")


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


WHOLE = (
    "reports/wgpolicyk8s",
    "reports/openreports",
    "base",
    "overlays/fail-closed",
    "overlays/beside-gatekeeper",
)
"""What is applied as it is."""

ADDED = (
    ("components/autoscaling", "components/alerts", "components/pod-monitor", "dashboards"),
    ("components/validate-policy", "components/mutation", "components/service-monitor"),
    ("components/console", "components/console-login", "components/console-live-review"),
    ("decisions/sidecar", "components/telemetry", "reports/audit", "reports/admission"),
    ("decisions/sidecar", "decisions/persistent", "decisions/audit-report"),
    ("decisions/sidecar", "decisions/gatekeeper-format", "decisions/alerts"),
    ("decisions/exporter",),
    ("decisions/vector",),
)
"""What is added to the base."""


def test_no_folder_of_the_manifests_is_left_out_here():
    found = {str(file.parent.relative_to(MANIFESTS)) for file in MANIFESTS.rglob(KUSTOMIZATION)}
    tried = {*WHOLE, *(name for names in ADDED for name in names)}

    assert found - {"crds"} == tried, "the CRDs are in the base"


@pytest.mark.parametrize("folder", WHOLE)
def test_the_api_server_takes_every_object(installed, folder):
    objects = kustomized(MANIFESTS / folder)
    for item in objects.values():
        apply(installed, item, dry_run=True)


@pytest.mark.parametrize("components", ADDED)
def test_the_api_server_takes_every_component(installed, components, tmp_path):
    objects = with_components(tmp_path, *components)
    for item in objects.values():
        if item["kind"] not in FOREIGN:
            apply(installed, item, dry_run=True)
    admit_pod(installed, objects)


def test_the_api_server_takes_what_the_chart_s_values_change(installed):
    """Values that no overlay has: an own certificate, where pods run, who else writes the bundle."""
    values = {
        "certificates.existingSecret": "from-cert-manager",
        "tolerations[0].operator": "Exists",
        "podLabels.team": "platform",
        "image.pullPolicy": "Always",
        "image.pullSecrets[0].name": "registry",
        "webhook.annotations.cert-manager\\.io/inject-ca-from": f"{NAMESPACE}/waddle",
        "webhook.objectSelector.matchLabels.a": "b",
        "webhook.excludedNamespaces": "{one,two}",
        "webhook.failClosed": "true",
        "webhook.matchConditions[0].name": "mine",
        "webhook.matchConditions[0].expression": "1 == 1",
        "exemptNamespaces": "{one}",
        "shutdownDelaySeconds": "20",
        "audit.readEverything": "false",
        "audit.replicas": "2",
        "image.digest": f"sha256:{'a' * 64}",
    }
    options = [part for name, value in values.items() for part in ("--set", f"{name}={value}")]
    spread = '[{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]'
    options += ["--set-json", f"topologySpreadConstraints={spread}"]
    options += ["--set-string", "podLabels.stage=1,extraArgs={--log-level=DEBUG}"]
    objects = helmed(*options)
    webhooks = objects["ValidatingWebhookConfiguration", "", CONFIGURATION]["webhooks"]
    excluded = [webhook["namespaceSelector"]["matchExpressions"][-1] for webhook in webhooks]
    assert [set(item["values"]) >= {"one", "two", NAMESPACE} for item in excluded] == [
        True,
        False,
        True,
    ]
    spec = pod_of(objects)["spec"]
    assert spec["terminationGracePeriodSeconds"] == 70
    assert read(spec["containers"][0]["args"][1:], ENVIRONMENT).log_level == "DEBUG"
    for item in objects.values():
        apply(installed, item, dry_run=True)
    admit_pod(installed, objects)


def admit_pod(api: Api, objects: Objects) -> None:
    """The Deployments' pods, made directly: a Deployment that breaks the rules is only warned."""
    for account in [item for identity, item in objects.items() if identity[0] == "ServiceAccount"]:
        apply(api, account, dry_run=False)
    for _, _, name in [identity for identity in objects if identity[0] == "Deployment"]:
        pod = copy.deepcopy(pod_of(objects, name)) | {"apiVersion": "v1", "kind": "Pod"}
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
    additions = {
        "activeGeneration": 6,
        **dict.fromkeys(("activeDigest", "activeRevision", "rolledBackTo"), "6"),
        "since": "2026-01-01T00:00:00Z",
    }
    warned = {"expressionWarnings": [{"fieldRef": "f", "warning": "w"}]}
    template = pod_status.pod_status(
        POD,
        pod_status.template_subject({"metadata": {"name": "fields", **SUBJECT}}),
        errors=[error],
        additions=additions
        | {"missingData": [{"group": "", "version": "v1", "kind": "Service"}], **warned}
        | {"vapGenerationStatus": {"state": "error", "observedGeneration": 1, "warning": "w"}},
    )
    point = {"enforcementPoint": "p", "state": "s", "message": "m", "observedGeneration": 1}
    constraint = pod_status.pod_status(
        POD,
        pod_status.constraint_subject({"kind": "K", "metadata": {"name": "fields", **SUBJECT}}),
        errors=[error],
        enforced=True,
        additions=additions
        | {"enforcementPointsStatus": [point]}
        | {"enforcementAction": "warn", "lastViolation": "2026-01-01T00:00:00Z"}
        | warned,
    )
    config = pod_status.pod_status(
        POD,
        pod_status.config_subject(
            {"metadata": {"name": "config", "namespace": NAMESPACE, **SUBJECT}}
        ),
        additions={name: additions[name] for name in ("activeGeneration", "since")}
        | {"errors": [{"type": "t", "message": "m"}]},
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
        wanted: dict[str, Any] = {"byPod": [entry]}
        if manifest is TEMPLATE:
            wanted["created"] = True
            wanted["conditions"] = [
                {
                    "type": "Active",
                    "status": "True",
                    "observedGeneration": 7,
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                    "reason": "AllReplicas",
                    "message": "m",
                }
            ]
        installed.request("PUT", path_of(manifest) + "/status", created | {"status": wanted})
        read_back = installed.request("GET", path_of(manifest))
    finally:
        installed.request("DELETE", path_of(manifest))

    assert read_back["status"] == wanted


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"

COLUMN_CONSTRAINT = {
    "apiVersion": "constraints.gatekeeper.sh/v1beta1",
    "kind": "ManifestFields",
    "metadata": {"name": "columns"},
    "spec": {"enforcementAction": "warn"},
}


@pytest.fixture(scope="module")
def constraint_crd(installed) -> Iterator[None]:
    """The CRD of the template's constraints as replicas make it, established."""
    client = Client(targets=(AdmissionTarget(),), drivers=(RegoDriver(),))
    crd = client.create_crd(TEMPLATE)
    installed.request("POST", path_of(crd, one=False), crd)

    def is_served() -> bool:
        try:
            installed.request("GET", path_of(COLUMN_CONSTRAINT, one=False))
        except ApiError:
            return False
        return True

    until(is_served, "the constraints are served")
    yield
    installed.request("DELETE", path_of(crd))


def shown_columns(api: Api, manifest: Object) -> dict[str, Any]:
    """What kubectl get shows of an object, by column."""
    table = api.request("GET", path_of(manifest), accept=TABLE)
    names = [column["name"] for column in table["columnDefinitions"]]
    return dict(zip(names, table["rows"][0]["cells"], strict=True))


@pytest.mark.usefixtures("constraint_crd")
@pytest.mark.parametrize("manifest", [TEMPLATE, COLUMN_CONSTRAINT], ids=lambda item: item["kind"])
@pytest.mark.parametrize("state", ["Active", "Degraded", "Error", "RolledBack"])
def test_kubectl_get_shows_the_state_and_how_many_replicas_enforce(installed, manifest, state):
    enforced = {"Active": 3, "Degraded": 2}.get(state, 0)
    message = f"{enforced}/3 replicas at generation 1"
    verdict = Verdict(state, 1, state, message, "a: it is broken")
    foreign = [{"type": "AFirst", "status": "True"}]
    conditions = merged(foreign, verdict, "2026-01-01T00:00:00Z")
    created = installed.request("POST", path_of(manifest, one=False), manifest)
    try:
        status = {"conditions": [with_all_fields(item) for item in conditions]}
        installed.request("PUT", path_of(manifest) + "/status", created | {"status": status})
        columns = shown_columns(installed, manifest)
    finally:
        installed.request("DELETE", path_of(manifest))

    assert columns["enforced"] == message
    # None of our conditions holds while an object is rolled back: the others' do.
    assert columns["state"] == ("AFirst" if state == "RolledBack" else state)


def with_all_fields(condition: Object) -> Object:
    return {
        "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "reason": "Test",
        "message": "",
    } | condition


# --- rights -------------------------------------------------------------------------------------

CERTIFICATE = ("", "secrets", "waddle-webhook-server-cert", NAMESPACE)
WEBHOOKS = (
    "admissionregistration.k8s.io",
    "validatingwebhookconfigurations",
    CONFIGURATION,
    "",
)
STATUSES = ("status.gatekeeper.sh", "constraintpodstatuses", "", NAMESPACE)

REVISIONS = ("policy.waddle.dev", "policyrevisions", "", "")

NEEDED = [
    # Events of admissions, as Gatekeeper's.
    *((verb, ("", "events", "", NAMESPACE)) for verb in ("create", "patch")),
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
    *((verb, REVISIONS) for verb in ("list", "watch", "create", "patch", "delete")),
    *((verb, ("", "events", "", "default")) for verb in ("get", "create", "update")),
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
    ("update", REVISIONS),
    ("delete", ("", "events", "", NAMESPACE)),
    ("create", ("", "events", "", "elsewhere")),
    ("delete", ("", "events", "", "default")),
    ("create", ("", "pods", "", NAMESPACE)),
    ("delete", ("", "pods", "p", NAMESPACE)),
    ("create", ("status.gatekeeper.sh", "constraintpodstatuses", "", "default")),
    ("update", ("apps", "deployments", "waddle-webhook", NAMESPACE)),
    ("impersonate", ("", "users", "admin", "")),
    ("escalate", ("rbac.authorization.k8s.io", "clusterroles", "", "")),
]


AUDIT_NEEDED = [
    ("list", ("", "pods", "", "")),
    ("list", ("", "secrets", "", "")),
    ("list", ("anything.example", "anything", "", "")),
    ("watch", ("constraints.gatekeeper.sh", "anything", "", "")),
    ("update", ("constraints.gatekeeper.sh", "anything/status", "c", "")),
    *((verb, ("", "events", "", "anywhere")) for verb in ("create", "patch")),
    *((verb, STATUSES) for verb in ("list", "watch", "create", "update", "delete")),
]
AUDIT_FORBIDDEN = [
    ("update", ("constraints.gatekeeper.sh", "anything", "c", "")),
    ("update", ("templates.gatekeeper.sh", "constrainttemplates/status", "t", "")),
    ("create", ("", "pods", "", NAMESPACE)),
    ("delete", ("", "pods", "p", "")),
    ("delete", ("", "events", "", "default")),
    ("update", CERTIFICATE),
    ("update", WEBHOOKS),
    ("create", ("status.gatekeeper.sh", "constraintpodstatuses", "", "default")),
    ("impersonate", ("", "users", "admin", "")),
]


def allowed(api: Api, verb: str, what: tuple[str, str, str, str], account: str = "waddle") -> bool:
    group, resource, name, namespace = what
    resource, _, subresource = resource.partition("/")
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{NAMESPACE}:{account}",
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


def test_the_audit_s_account_reads_everything_and_writes_what_it_says(installed):
    unmet = [case for case in AUDIT_NEEDED if not allowed(installed, *case, "waddle-audit")]
    beyond = [case for case in AUDIT_FORBIDDEN if allowed(installed, *case, "waddle-audit")]
    assert (unmet, beyond) == ([], [])


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
            with urllib.request.urlopen(
                request, timeout=PATIENCE_SECONDS, context=context
            ) as answer:
                return len(json.load(answer)["items"])
        except urllib.error.HTTPError as error:
            with error:
                return -error.code

    assert listed(f"?fieldSelector=metadata.name={CERTIFICATE[2]}") == 1
    assert listed("") == -403


def authority_of(kubeconfig: Path) -> str:
    found = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]
    return base64.b64decode(found["certificate-authority-data"]).decode()
