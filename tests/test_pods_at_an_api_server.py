"""Every pod that the chart or the manifests can make keeps to the strictest Pod Security Standard."""

import copy
from collections.abc import Iterator

import pytest

from tests.cluster import ApiError, Cluster
from tests.manifests import MANIFESTS, Object, Objects, kustomized, templated

NAMESPACE = "hooks"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods?dryRun=All"

LOGIN = (
    "console.oidc.issuerURL=https://issuer.example,console.oidc.clientID=waddle,"
    "console.oidc.redirectURL=https://waddle.example/oidc/callback"
)
CHARTS = {
    "hooks and mutation": "mutation.enabled=true",
    "console": f"console.enabled=true,{LOGIN}",
    "sidecars and audit reports": "decisions.mode=sidecar,decisions.auditReport.enabled=true",
    "persistent queues": "decisions.mode=sidecar,decisions.queue.persistent=true",
    "exporter": "decisions.mode=exporter",
    "telemetry": "telemetry.tracing=true,telemetry.endpoint=grpc://collector:4317",
}
"""Values that bring pods, or containers, that the others do not have."""

WHOLE = ("base", "overlays/fail-closed", "overlays/beside-gatekeeper")


def specifications(objects: Objects) -> Iterator[tuple[str, Object]]:
    """Yields the Pod specifications of Pods and of controllers, with kind and name."""
    for (kind, _, name), item in objects.items():
        if kind == "Pod":
            yield f"{kind} {name}", item["spec"]
        elif kind in ("Deployment", "StatefulSet", "DaemonSet", "Job"):
            yield f"{kind} {name}", item["spec"]["template"]["spec"]


@pytest.fixture(scope="module")
def standard(cluster: Cluster) -> Cluster:
    """A cluster with a namespace of the restricted standard, and an account."""
    metadata = {"name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    cluster.api.apply(f"/api/v1/namespaces/{NAMESPACE}", body)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "tried"}}
    cluster.api.apply(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/tried", account)
    return cluster


def admit(cluster: Cluster, objects: Objects) -> list[str]:
    """Have each pod admitted as it is, and refused with each container's escalation allowed."""
    made = []
    for maker, spec in specifications(objects):
        made.append(maker)
        pod: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tried"}}
        # No cluster has a quota for our priority class in this namespace; the standard is asked about.
        plain = {key: value for key, value in spec.items() if key != "priorityClassName"}
        pod["spec"] = {**plain, "serviceAccountName": "tried"}
        cluster.api.request("POST", PODS, pod)
        for number in range(len(spec["containers"])):
            broken = copy.deepcopy(pod)
            context = broken["spec"]["containers"][number]["securityContext"]
            context["allowPrivilegeEscalation"] = True
            with pytest.raises(ApiError, match="PodSecurity"):
                cluster.api.request("POST", PODS, broken)
    return made


@pytest.mark.parametrize("values", CHARTS.values(), ids=CHARTS)
def test_the_pods_of_the_chart_are_admitted_under_the_restricted_standard(
    standard: Cluster, values: str
) -> None:
    made = admit(standard, templated("--set", values))
    assert {"Deployment waddle-webhook", "Deployment waddle-audit", "Job waddle-uninstall"} <= {
        *made
    }
    assert ("Deployment waddle-console" in made) == ("console" in values)
    assert ("Deployment waddle-exporter" in made) == ("exporter" in values)


@pytest.mark.parametrize("folder", WHOLE)
def test_the_pods_of_the_manifests_are_too(standard: Cluster, folder: str) -> None:
    assert "Deployment waddle-webhook" in admit(standard, kustomized(MANIFESTS / folder))
