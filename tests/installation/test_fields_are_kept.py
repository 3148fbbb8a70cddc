"""A real API server keeps every field that replicas write, and kubectl shows what matters of it."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster import Api, serves
from tests.manifests import MANIFESTS, NAMESPACE, Object, kustomized, path_of, pod_of
from tests.patience import until
from webhook.api import pod_status
from webhook.api.pod_status import Pod, StatusError
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.controllers.status.conditions import Judgement, merged

POD = Pod("waddle-0", NAMESPACE, "uid-of-the-pod", ("generate", "status", "webhook"))
SUBJECT = {"uid": "uid-of-the-object", "generation": 7}


def every_field() -> list[Object]:
    """Returns a status object of each kind, with every field that a replica may write."""
    error = StatusError("ingest_error", "message", "location")
    additions = {
        "activeGeneration": 6,
        **dict.fromkeys(("activeDigest", "activeRevision", "rolledBackTo"), "6"),
        "since": "2026-01-01T00:00:00Z",
    }
    warned = {"expressionWarnings": [{"fieldRef": "f", "warning": "w"}]}
    template = pod_status.pod_status(
        POD,
        pod_status.status_subject(pod_status.TEMPLATE, {"metadata": {"name": "fields", **SUBJECT}}),
        errors=[error],
        additions=additions
        | {"missingData": [{"group": "", "version": "v1", "kind": "Service"}], **warned}
        | {"vapGenerationStatus": {"state": "error", "observedGeneration": 1, "warning": "w"}},
    )
    point = {"enforcementPoint": "p", "state": "s", "message": "m", "observedGeneration": 1}
    constraint = pod_status.pod_status(
        POD,
        pod_status.status_subject(
            pod_status.CONSTRAINT, {"kind": "K", "metadata": {"name": "fields", **SUBJECT}}
        ),
        errors=[error],
        enforced=True,
        additions=additions
        | {"enforcementPointsStatus": [point]}
        | {"enforcementAction": "warn", "lastViolation": "2026-01-01T00:00:00Z", "signature": "s"}
        | warned,
    )
    config = pod_status.pod_status(
        POD,
        pod_status.status_subject(
            pod_status.CONFIG, {"metadata": {"name": "config", "namespace": NAMESPACE, **SUBJECT}}
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
        expected: dict[str, Any] = {"byPod": [entry]}
        if manifest is TEMPLATE:
            expected["created"] = True
            expected["conditions"] = [
                {
                    "type": "Active",
                    "status": "True",
                    "observedGeneration": 7,
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                    "reason": "AllReplicas",
                    "message": "m",
                }
            ]
        installed.request("PUT", path_of(manifest) + "/status", created | {"status": expected})
        read_back = installed.request("GET", path_of(manifest))
    finally:
        installed.request("DELETE", path_of(manifest))

    assert read_back["status"] == expected


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
    until(lambda: serves(installed, crd), "the constraints are served")
    yield
    installed.request("DELETE", path_of(crd))


def shown_columns(api: Api, manifest: Object) -> dict[str, Any]:
    """Returns the columns of kubectl get for an object."""
    table = api.request("GET", path_of(manifest), accept=TABLE)
    names = [column["name"] for column in table["columnDefinitions"]]
    return dict(zip(names, table["rows"][0]["cells"], strict=True))


@pytest.mark.usefixtures("constraint_crd")
@pytest.mark.parametrize("manifest", [TEMPLATE, COLUMN_CONSTRAINT], ids=lambda item: item["kind"])
@pytest.mark.parametrize("state", ["Active", "Degraded", "Error", "RolledBack"])
def test_kubectl_get_shows_the_state_and_how_many_replicas_enforce(installed, manifest, state):
    enforced = {"Active": 3, "Degraded": 2}.get(state, 0)
    message = f"{enforced}/3 replicas at generation 1"
    verdict = Judgement(state, 1, state, message, "a: it is broken")
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
