"""Gatekeeper's own scenarios of mutation (test/bats), and ours, at three replicas."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.system.mutating import (
    OBJECTS,
    PLACE,
    REQUIRED,
    allowed_by_all,
    clean,
    delete_required,
    enforce_constraint,
    enforced,
    place_of,
    post,
    refused,
    required,
    retracted,
    three,
)
from tests.system.replicas import Plane, Replica, try_request, until
from tests.webhook.mutation.documents import assign, image, label, mutator


@pytest.fixture(scope="module")
def replicas(plane: Plane) -> Iterator[list[Replica]]:
    """Three replicas behind one address, asked to mutate and to validate."""
    with three(plane) as (started, _):
        yield started


@pytest.fixture(autouse=True)
def cleaned(plane: Plane, replicas: list[Replica]) -> Iterator[None]:
    """Deletes the test's policies after it."""
    yield
    clean(plane, replicas)


def test_an_owner_label_is_added_with_annotations_of_who_did_it(
    plane: Plane, replicas: list[Replica]
) -> None:
    owner = label(
        "k8sownerlabel",
        "owner",
        "gatekeeper",
        match={
            "scope": "Namespaced",
            "kinds": [{"apiGroups": [""], "kinds": ["ConfigMap"]}],
            "labelSelector": {
                "matchExpressions": [
                    {
                        "key": "mutation/gatekeeper-test",
                        "operator": "In",
                        "values": ["assign-metadata"],
                    }
                ]
            },
        },
    )
    enforced(plane, owner, replicas)
    labels = {"mutation/gatekeeper-test": "assign-metadata"}
    found = post(plane, "configmaps", {"metadata": {"name": "mutate-cm", "labels": labels}})
    metadata = found["metadata"]
    assert metadata["labels"] == {**labels, "owner": "gatekeeper"}
    assert metadata["annotations"]["gatekeeper.sh/mutations"] == "AssignMetadata//k8sownerlabel:1"
    assert len(metadata["annotations"]["gatekeeper.sh/mutation-id"]) == 36


def test_external_ips_are_taken_from_a_service(plane: Plane, replicas: list[Replica]) -> None:
    services = [{"groups": [""], "versions": ["v1"], "kinds": ["Service"]}]
    enforced(plane, assign("k8sexternalip", "spec.externalIPs", [], applyTo=services), replicas)
    service = {
        "metadata": {"name": "mutate-svc"},
        "spec": {
            "selector": {"app": "MyApp"},
            "type": "NodePort",
            "ports": [{"name": "http", "port": 80, "targetPort": 8080}],
            "externalIPs": ["1.1.1.1"],
        },
    }
    found = post(plane, "services", service)
    assert not found["spec"].get("externalIPs")
    annotations = found["metadata"]["annotations"]
    assert annotations["gatekeeper.sh/mutations"] == "Assign//k8sexternalip:1"


def test_an_image_gets_domain_and_digest_until_its_mutator_is_removed(
    plane: Plane, replicas: list[Replica]
) -> None:
    digest = "@sha256:abcde67890123456789abc345678901a"
    location = "spec.containers[name:*].image"
    names = image("add-domain-digest", location, assignDomain="foocorp.org", assignTag=digest)
    names["spec"]["match"] = {"source": "All", "scope": "Namespaced"}
    enforced(plane, names, replicas)
    template = {"spec": {"containers": [{"name": "test", "image": "nginx:latest"}]}}
    pod = {"metadata": {"name": "nginx-test-pod"}, **template}
    until(lambda: try_request(plane.api, "GET", f"{OBJECTS}/serviceaccounts/default"), "accounts")
    found = post(plane, "pods?dryRun=All", pod)
    assert found["spec"]["containers"][0]["image"] == f"foocorp.org/nginx{digest}"
    retracted(plane, names, replicas)
    assert post(plane, "pods?dryRun=All", pod)["spec"]["containers"][0]["image"] == "nginx:latest"


def provided(kind: str, name: str, location: str, **external: str) -> dict[str, Any]:
    """A mutator of Pods whose value a provider says."""
    data = {"provider": "dummy-provider", "dataSource": "ValueAtLocation", **external}
    return mutator(kind, name, location, parameters={"assign": {"externalData": data}})


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            provided("AssignMetadata", "m", "metadata.annotations.external-data-username"),
            "only username data source is supported",
        ),
        (provided("AssignMetadata", "m", "metadata.annotations"), "invalid location"),
        (
            provided("Assign", "m", "spec.containers[name: *].image", failurePolicy="UseDefault"),
            "`default` must not be empty when `failurePolicy` is set to `UseDefault`",
        ),
        (
            provided("Assign", "m", "spec.containers[name: *]"),
            "cannot assign external data response to a list",
        ),
    ],
)
def test_external_data_in_a_place_where_it_cannot_be_is_refused(
    plane: Plane, replicas: list[Replica], document: dict[str, Any], message: str
) -> None:
    for replica in replicas:
        verdict = replica.admit(document)
        assert not verdict["allowed"]
        assert verdict["status"]["code"] == 422
        assert message in verdict["status"]["message"]


def test_what_is_below_a_value_of_a_provider_conflicts_with_it_until_it_is_gone(
    plane: Plane, replicas: list[Replica]
) -> None:
    asking = provided("Assign", "b-assign-image", "spec.containers[name: *].image")
    below = assign("schema-conflict", "spec.containers[name: *].image.test", {"foo": "bar"})
    for document in (asking, below):
        plane.api.apply(place_of(document), document)
    # Other tests' replicas follow mutators, too, and each says what is wrong in its own time.
    error = {
        "type": "ErrConflictingSchema",
        "message": "the following mutators have conflicting schemas: "
        "[Assign.mutations.gatekeeper.sh /b-assign-image,"
        "Assign.mutations.gatekeeper.sh /schema-conflict]",
    }
    for document in (asking, below):

        def all_say_so(path: str = place_of(document)) -> bool:
            entries = {entry["id"]: entry.get("errors") for entry in plane.by_pod(path)}
            return all(entries.get(replica.name) == [error] for replica in replicas)

        until(all_say_so, f"the conflict is told by all of {document['metadata']['name']}")
    plane.api.request("DELETE", place_of(below))

    def all_apply_it() -> bool:
        entries = {entry["id"]: entry for entry in plane.by_pod(place_of(asking))}
        return all(
            entries[replica.name]["enforced"] and not entries[replica.name].get("errors")
            for replica in replicas
        )

    until(all_apply_it, "the conflict is taken back by all")


@pytest.fixture
def labels_required(plane: Plane, replicas: list[Replica]) -> Iterator[None]:
    """The template of required labels; its constraints go with it."""
    assert replicas
    plane.put_template(REQUIRED)
    yield
    delete_required(plane)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "without"}}
    allowed_by_all(replicas, body)


@pytest.mark.usefixtures("labels_required")
def test_one_request_is_mutated_first_and_what_came_of_it_is_validated(
    plane: Plane, replicas: list[Replica]
) -> None:
    enforce_constraint(plane, required("team", "ConfigMap", "team"), replicas)
    body = {"metadata": {"name": "made-well"}}
    assert "you must provide labels" in refused(plane, f"{OBJECTS}/configmaps", body)
    team = label("team", "team", "blue", match={"namespaces": [PLACE]})
    enforced(plane, team, replicas)
    assert post(plane, "configmaps", body)["metadata"]["labels"] == {"team": "blue"}
    retracted(plane, team, replicas)
    again = {"metadata": {"name": "made-badly"}}
    assert "you must provide labels" in refused(plane, f"{OBJECTS}/configmaps", again)
