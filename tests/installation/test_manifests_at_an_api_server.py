"""A real API server takes what the manifests make, and admits the pods under its standards."""

import copy
from typing import Any

import pytest
import yaml

from tests.chart_values import as_document, rows
from tests.cluster import Api, ApiError
from tests.manifests import (
    CONFIGURATION,
    ENVIRONMENT,
    MANIFESTS,
    NAMESPACE,
    Objects,
    apply,
    helmed,
    kustomized,
    path_of,
    pod_of,
    templated,
    with_components,
)
from tests.patience import until
from webhook.settings.reading import read

# Kinds that the test cluster does not serve: the Prometheus operator brings them.
FOREIGN = {"PrometheusRule", "PodMonitor", "ServiceMonitor"}

KUSTOMIZATION = "kustomization.yaml"


HOST_NETWORK = "components/host-network"

WHOLE = (
    "reports/wgpolicyk8s",
    "reports/openreports",
    "base",
    "overlays/fail-closed",
    "overlays/beside-gatekeeper",
)
"""Overlays that are applied without a change."""

ADDED = (
    ("components/autoscaling", "components/alerts", "components/pod-monitor", "dashboards"),
    ("components/validate-policy", "components/mutation", "components/service-monitor"),
    ("components/api-server-only", "components/admission-policies"),
    ("components/provider-trust",),
    ("components/kyverno-policies",),
    ("components/failure-policy-by-constraint",),
    ("components/image-provider",),
    ("components/webhook-rules-from-policies",),
    ("components/openshift",),
    (HOST_NETWORK,),
    ("components/console", "components/console-login", "components/console-live-review"),
    ("decisions/sidecar", "components/telemetry", "reports/audit", "reports/admission"),
    ("decisions/sidecar", "decisions/persistent", "decisions/audit-report"),
    ("decisions/sidecar", "decisions/gatekeeper-format", "decisions/alerts"),
    ("decisions/exporter", "decisions/exporter-gatekeeper-format"),
    ("decisions/vector",),
)
"""Components that are added to the base."""


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
    for namespace in {place for _, place, _ in objects} - {"", NAMESPACE}:  # providers have one
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        apply(installed, made, dry_run=False)
    for item in objects.values():
        if item["kind"] not in FOREIGN:
            apply(installed, item, dry_run=True)
    if HOST_NETWORK not in components:
        admit_pod(installed, objects)


def test_replicas_on_their_nodes_network_are_admitted_in_a_namespace_that_permits_it(
    installed, base, tmp_path
):
    """The restricted standard refuses them: the component says so of the namespace."""
    objects = with_components(tmp_path, HOST_NETWORK)
    apply(installed, objects["Namespace", "", NAMESPACE], dry_run=False)
    try:
        until(lambda: not is_refused_by_the_standard(installed, objects), "they are admitted")
    finally:
        apply(installed, base["Namespace", "", NAMESPACE], dry_run=False)


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
    assert read(spec["containers"][0]["args"][1:], ENVIRONMENT).logging.level == "DEBUG"
    for item in objects.values():
        apply(installed, item, dry_run=True)
    admit_pod(installed, objects)


def test_replicas_that_were_scaled_by_hand_stay_when_autoscaling_begins(installed, base, tmp_path):
    """The component says so; applying the count and removing it again would leave one replica."""
    apply(installed, base["Deployment", NAMESPACE, "waddle-webhook"], dry_run=False)
    autoscaled = with_components(tmp_path, "components/autoscaling")
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/waddle-webhook"
    try:
        scale = installed.request("GET", f"{path}/scale")
        installed.request("PUT", f"{path}/scale", scale | {"spec": {"replicas": 4}})
        apply(installed, autoscaled["Deployment", NAMESPACE, "waddle-webhook"], dry_run=False)
        assert installed.request("GET", path)["spec"]["replicas"] == 4
    finally:
        installed.request("DELETE", path)


@pytest.mark.slow(20)
def test_the_api_server_takes_each_two_values_of_the_chart_together(installed, tmp_path):
    file = tmp_path / "values.yaml"
    # Where providers trust our authorities is a namespace of theirs.
    theirs = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "varied-providers"}}
    apply(installed, theirs, dry_run=False)
    for values in rows():
        file.write_text(yaml.safe_dump(as_document(values)))
        for item in templated("--values", str(file)).values():
            if item["kind"] not in FOREIGN:
                apply(installed, item, dry_run=True)


def test_what_no_namespace_has_is_left_to_the_webhook_that_fails_closed(installed):
    """A condition about the namespace had no value for ClusterRoles, and each of them was refused."""
    values = "webhook.failClosed=true,webhook.failurePolicy=Fail"
    made = helmed("--set", values)["ValidatingWebhookConfiguration", "", CONFIGURATION]
    (others,) = (item for item in made["webhooks"] if item["name"].startswith("others."))
    others["clientConfig"] = {"url": "https://127.0.0.1:1/nobody"}
    others["matchConditions"].append(
        {"name": "mine", "expression": "request.name.startsWith('of-no-namespace')"}
    )
    path = path_of(made, one=False)
    body = {**made, "metadata": {"name": "fails-closed"}, "webhooks": [others]}
    installed.request("POST", path, body)
    try:
        until(lambda: is_refused(installed, "CSIDriver", spec={}), "others go to the webhook")
        assert not is_refused(installed, "ClusterRole", rules=[])
    finally:
        installed.request("DELETE", f"{path}/fails-closed")


def test_roles_of_waddle_can_be_upgraded_while_no_replica_answers(installed):
    """An upgrade is often what ends an outage; what grants rights is refused otherwise."""
    made = kustomized(MANIFESTS / "overlays/fail-closed")[
        "ValidatingWebhookConfiguration", "", CONFIGURATION
    ]
    for webhook in made["webhooks"]:
        webhook["clientConfig"] = {"url": "https://127.0.0.1:1/nobody"}
        webhook["matchConditions"].append(
            {"name": "mine", "expression": "request.name.matches('^(waddle-)?upgraded.*')"}
        )
    others, _, closed = made["webhooks"]
    path = path_of(made, one=False)
    body = {**made, "metadata": {"name": "upgraded"}, "webhooks": [others, closed]}
    roles = [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": [],
        }
        for name in ("waddle-upgraded", "upgraded")
    ]
    ours, foreign = roles
    for role in roles:
        installed.request("POST", path_of(role, one=False), role)
    installed.request("POST", path, body)
    try:
        until(lambda: is_update_refused(installed, foreign), "nobody answers about roles")
        assert not is_update_refused(installed, ours)
        fresh = ours | {"metadata": {"name": "waddle-upgraded-too"}}
        with pytest.raises(ApiError):
            installed.request("POST", path_of(fresh, one=False) + "?dryRun=All", fresh)
    finally:
        installed.request("DELETE", f"{path}/upgraded")
        for role in roles:
            installed.request("DELETE", path_of(role))


def is_update_refused(api: Api, item: dict[str, Any]) -> bool:
    """Whether an update of an object that changes a label is refused."""
    metadata = item["metadata"] | {"labels": {"changed": "yes"}}
    try:
        api.request("PUT", path_of(item) + "?dryRun=All", item | {"metadata": metadata})
    except ApiError:
        return True
    return False


def is_refused(api: Api, kind: str, **fields: object) -> bool:
    """Whether nobody answers about an object in no namespace, and it is refused."""
    groups = {"ClusterRole": "rbac.authorization.k8s.io", "CSIDriver": "storage.k8s.io"}
    metadata = {"name": f"of-no-namespace-{kind.lower()}"}
    item = {"apiVersion": f"{groups[kind]}/v1", "kind": kind, "metadata": metadata, **fields}
    try:
        api.request("POST", path_of(item, one=False) + "?dryRun=All", item)
    except ApiError:
        return True
    return False


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
    # The namespace may have been another test's before it got the label of the standard.
    until(lambda: is_refused_by_the_standard(installed, broken), "the broken pod is refused")


def is_refused_by_the_standard(api: Api, objects: Objects) -> bool:
    try:
        admit_pod(api, objects)
    except ApiError as error:
        if "PodSecurity" not in error.body:
            raise
        return True
    return False
