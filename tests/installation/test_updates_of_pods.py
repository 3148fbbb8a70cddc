"""Mutators are warned of if the API server refuses an UPDATE of the fields that they change."""

import pytest

from tests.cluster import Api, ApiError
from tests.patience import until
from tests.webhook.mutation.documents import assign, image, mutator
from webhook.mutation.registry import Mutators
from webhook.mutation.setting import Context

PODS = "/api/v1/namespaces/default/pods"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "updated"},
    "spec": {
        "automountServiceAccountToken": False,
        "activeDeadlineSeconds": 900,
        "containers": [{"name": "main", "image": "one"}],
        "initContainers": [{"name": "before", "image": "one"}],
        "tolerations": [{"key": "first", "operator": "Exists", "effect": "NoExecute"}],
    },
}
ADDED = {"key": "second", "operator": "Exists"}

MUST_EXIST = {"pathTests": [{"subPath": "spec.containers[name: main]", "condition": "MustExist"}]}

MUTATORS = [
    assign("a", "spec.containers[name: *].image", "two"),
    assign("a", "spec.initContainers[name: *].image", "two"),
    assign("a", "spec.activeDeadlineSeconds", 600),
    assign("a", "spec.tolerations[key: second]", ADDED),
    mutator(
        "ModifySet",
        "m",
        location="spec.tolerations",
        parameters={"operation": "merge", "values": {"fromList": [ADDED]}},
    ),
    image("i", "spec.containers[name: *].image", assignTag=":1"),
    assign("a", "spec.tolerations", [ADDED]),
    assign("a", "spec.tolerations[key: first].effect", "NoSchedule"),
    assign("a", "spec.terminationGracePeriodSeconds", 5),
    assign("a", "spec.hostname", "other"),
    assign("a", "spec.nodeSelector.disk", "ssd"),
    assign("a", "spec.priorityClassName", "system-node-critical"),
    assign("a", "spec.securityContext.runAsNonRoot", True),
    assign("a", "spec.containers[name: *].imagePullPolicy", "Never"),
    assign("a", "spec.containers[name: *].resources.limits.cpu", "1"),
    assign("a", "spec.containers[name: sidecar].image", "two"),
    assign("a", "spec.initContainers[name: *].securityContext.privileged", False),
    assign("b", "spec.containers[name: main].image", "two", parameters=MUST_EXIST),
]


@pytest.fixture
def pod(installed: Api):
    def is_created() -> bool:
        try:
            installed.request("POST", PODS, POD)
        except ApiError as error:
            if error.status != 403:
                raise
            return False  # its service account comes in a moment
        return True

    until(is_created, "a Pod can be made")
    yield installed
    installed.request("DELETE", f"{PODS}/updated?gracePeriodSeconds=0")


LABELS = {"app": "a"}
REFERENCE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
TEMPLATE = {
    "metadata": {"labels": LABELS},
    "spec": {"containers": [{"name": "main", "image": "one"}], "restartPolicy": "Always"},
}
JOB = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
SET = {"serviceName": "a", "selector": {"matchLabels": LABELS}, "template": TEMPLATE}
WORKLOAD = {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}
LABELLED = "spec.template.metadata.labels.more"
SELECTED = "spec.selector.matchLabels.more"
OTHERS = [
    ("batch", "Job", {"spec": {"template": JOB}}, LABELLED),
    ("batch", "Job", {"spec": {"template": JOB}}, "spec.template.spec.serviceAccountName"),
    ("batch", "Job", {"spec": {"template": JOB}}, "spec.ttlSecondsAfterFinished"),
    ("apps", "StatefulSet", {"spec": SET}, "spec.podManagementPolicy"),
    ("apps", "StatefulSet", {"spec": SET}, "spec.serviceName"),
    ("apps", "StatefulSet", {"spec": SET}, "spec.minReadySeconds"),
    ("apps", "StatefulSet", {"spec": SET}, LABELLED),
    *(
        ("apps", kind, {"spec": WORKLOAD}, location)
        for kind in ("Deployment", "DaemonSet", "ReplicaSet")
        for location in (SELECTED, LABELLED, "spec.minReadySeconds")
    ),
    ("storage.k8s.io", "StorageClass", {"provisioner": "a"}, "reclaimPolicy"),
    ("storage.k8s.io", "StorageClass", {"provisioner": "a"}, "parameters.more"),
    ("storage.k8s.io", "StorageClass", {"provisioner": "a"}, "mountOptions"),
    *(
        ("rbac.authorization.k8s.io", kind, {"roleRef": REFERENCE, "subjects": []}, "roleRef.name")
        for kind in ("RoleBinding", "ClusterRoleBinding")
    ),
]
VALUES = {
    "minReadySeconds": 7,
    "ttlSecondsAfterFinished": 7,
    "podManagementPolicy": "Parallel",
    "reclaimPolicy": "Retain",
    "mountOptions": ["ro"],
}


def refusal_of(api, path, before, mutators):
    """The API server's reason for not taking the object ``updated`` as mutated; "" if it does."""
    namespace = before["metadata"].get("namespace", "")
    context = Context("UPDATE", None, namespace, "", "Original")
    after = mutators.snapshot.mutate(before, context, on_error="reject").object
    assert after is not before
    try:
        api.request("PUT", f"{path}/updated?dryRun=All", after)
    except ApiError as error:
        if error.status != 422:
            raise
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("group", "kind", "body", "location"),
    [pytest.param(*one, id=f"{one[1]} {one[3]}") for one in OTHERS],
)
def test_of_other_kinds_a_mutator_is_warned_of_where_an_update_is_refused(
    installed, group, kind, body, location
):
    """Each update of a Job was refused that was there before a mutator of its template."""
    groups = [{"groups": [group], "versions": ["v1"], "kinds": [kind]}]
    document = assign("a", location, VALUES.get(location.rpartition(".")[2], "two"))
    document["spec"]["applyTo"] = groups
    mutators = Mutators()
    added = mutators.add(document)
    is_placed = kind not in ("StorageClass", "ClusterRoleBinding")
    scope = "/namespaces/default" if is_placed else ""
    path = f"/apis/{group}/v1{scope}/{kind.lower()}{'es' if kind.endswith('s') else 's'}"
    metadata = {"name": "updated"}
    item = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata, **body}
    installed.request("POST", path, item)
    try:
        before = installed.request("GET", f"{path}/updated")
        refusal = refusal_of(installed, path, before, mutators)
    finally:
        installed.request("DELETE", f"{path}/updated?propagationPolicy=Background")
    assert bool(refusal) == bool(added.warnings), refusal


def test_a_mutator_is_warned_of_where_the_api_server_refuses_what_it_changes(pod):
    warnings = {}
    for document in MUTATORS:
        mutators = Mutators()
        added = mutators.add(document)
        before = pod.request("GET", f"{PODS}/updated")
        refusal = refusal_of(pod, PODS, before, mutators)
        warnings[document["metadata"]["name"], document["spec"]["location"]] = (
            bool(refusal),
            bool(added.warnings),
        )
    assert {key: pair for key, pair in warnings.items() if pair[0] != pair[1]} == {}
    assert {pair[0] for pair in warnings.values()} == {True, False}
