"""The pods of the chart's hooks keep to the strictest of the Pod Security Standards."""

import copy

import pytest

from tests.cluster import ApiError, Cluster
from tests.manifests import Object, templated

NAMESPACE = "hooks"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods?dryRun=All"


def hooks() -> dict[str, Object]:
    """The specifications of the pods of Jobs and tests, by the kind of what makes them."""
    found = {}
    for item in templated("--set=mutation.enabled=true").values():
        if item["kind"] == "Job":
            found["Job"] = item["spec"]["template"]["spec"]
        elif item["kind"] == "Pod":
            found["Pod"] = item["spec"]
    return found


def test_the_pods_of_hooks_are_admitted_under_the_restricted_standard(cluster: Cluster) -> None:
    metadata = {"name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    cluster.api.apply(f"/api/v1/namespaces/{NAMESPACE}", body)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "tried"}}
    cluster.api.apply(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/tried", account)
    found = hooks()
    assert found.keys() == {"Job", "Pod"}, "before an uninstallation, and helm test"
    for spec in found.values():
        pod: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tried"}}
        pod["spec"] = {**spec, "serviceAccountName": "tried"}
        cluster.api.request("POST", PODS, pod)
        broken = copy.deepcopy(pod)
        broken["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
        with pytest.raises(ApiError, match="PodSecurity"):
            cluster.api.request("POST", PODS, broken)
