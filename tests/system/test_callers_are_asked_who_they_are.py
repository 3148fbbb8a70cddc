"""Policies are validated for those whom the cluster lets, and effects told to who may read all."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.behaviour.serving import Answer
from tests.patience import until
from tests.system.conftest import ALL_OPERATIONS
from tests.system.replicas import (
    WORKLOADS,
    Plane,
    Replica,
    config_map,
    constraint,
    template,
    try_request,
)

PATH = "/v1/validate-policy"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ACCOUNTS = f"/api/v1/namespaces/{WORKLOADS}/serviceaccounts"
SYNC = "/apis/config.gatekeeper.sh/v1alpha1/namespaces/waddle-system/configs/config"


def account(plane: Plane, name: str, *rules: dict[str, Any]) -> str:
    """A token of a service account with these rights."""
    api = plane.api
    meta = {"name": name, "namespace": WORKLOADS}
    api.apply(
        f"{ACCOUNTS}/{name}", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}
    )
    group, version = "rbac.authorization.k8s.io", "rbac.authorization.k8s.io/v1"
    role = {"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": name}}
    api.apply(f"{RBAC}/clusterroles/{name}", {**role, "rules": list(rules)})
    binding = {"apiVersion": version, "kind": "ClusterRoleBinding", "metadata": {"name": name}}
    binding["roleRef"] = {"apiGroup": group, "kind": "ClusterRole", "name": name}
    subject = {"kind": "ServiceAccount", **meta}
    api.apply(f"{RBAC}/clusterrolebindings/{name}", {**binding, "subjects": [subject]})
    spec = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    found: str = api.request("POST", f"{ACCOUNTS}/{name}/token", spec)["status"]["token"]
    return found


@pytest.fixture(autouse=True)
def without_rights(empty_plane: Plane) -> Iterator[None]:
    """Deletes the accounts' rights after the test."""
    yield
    for name in ("nobody", "poster", "reader"):
        for kind in ("clusterrolebindings", "clusterroles"):
            try_request(empty_plane.api, "DELETE", f"{RBAC}/{kind}/{name}")


POSTS = {"nonResourceURLs": [PATH], "verbs": ["post"]}
READS = {"apiGroups": [""], "resources": ["configmaps", "namespaces"], "verbs": ["list"]}


@pytest.fixture(scope="module")
def replica(empty_plane: Plane) -> Iterator[Replica]:
    """A replica that validates policies, with ConfigMaps synced."""
    plane = empty_plane
    sync = {"syncOnly": [{"group": "", "version": "v1", "kind": "ConfigMap"}]}
    config = {"apiVersion": "config.gatekeeper.sh/v1alpha1", "kind": "Config"}
    name = {"name": "config", "namespace": "waddle-system"}
    plane.api.apply(SYNC, {**config, "metadata": name, "spec": {"sync": sync}})
    path = f"/api/v1/namespaces/{WORKLOADS}/configmaps/secretive"
    plane.api.apply(path, config_map("hunter2", "secretive"))
    with Replica(plane, "asked", *ALL_OPERATIONS, "--enable-validate-policy") as made:
        made.wait_ready()
        yield made
    plane.delete_pod("asked")
    plane.api.request("DELETE", SYNC)
    plane.api.request("DELETE", path)


def answer_to_caller(replica: Replica, token: str | None) -> Answer:
    """Returns the answer to a caller's template that tries to guess a parameter."""
    rego = """
    package guessing
    violation[{"msg": "yes"}] { startswith(input.review.object.data.deny, input.parameters.word) }
    """
    policies = [template("Guessing", rego), constraint("guess", "hunter", "Guessing")]
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    body = json.dumps({"items": policies}).encode()
    answers: list[Answer] = []

    def answered() -> bool:
        answers.append(replica.post(body, PATH, headers=headers))
        return answers[-1].status not in (503, 504)

    # On a busy machine the API server may not say in time who calls, or the review not end.
    until(answered, "an answer that a busy machine does not keep from us")
    return answers[-1]


def test_a_caller_is_informed_what_its_rights_allow(empty_plane: Plane, replica: Replica) -> None:
    """It is shown nothing, the policies' validity, or their effects too."""
    plane = empty_plane
    assert answer_to_caller(replica, None).status == 401
    refused = answer_to_caller(replica, "nonsense")
    assert refused.status == 401
    assert refused.headers["www-authenticate"] == "Bearer"

    nobody = answer_to_caller(replica, account(plane, "nobody", READS))
    assert nobody.status == 403
    assert PATH in nobody.json()["message"]

    # The API server goes by new rights a moment after they were written.
    token = account(plane, "poster", POSTS)
    until(lambda: answer_to_caller(replica, token).status == 200, "the rights are there")
    poster = answer_to_caller(replica, token).json()
    assert poster["valid"] is True
    assert poster["effect"] is None
    assert "list" in poster["effectWithheld"]

    reader = account(plane, "reader", POSTS, READS)

    def found() -> int:
        effect = answer_to_caller(replica, reader).json().get("effect")
        return int(effect["constraints"][0]["violationsAfter"]) if effect else 0

    until(lambda: found() == 1, "the synced ConfigMap is counted")
