"""Providers at a real API server: what replicas say of each, and who may have one asked."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import policies
from tests.patience import until
from tests.provider_process import ProviderProcess, make_authority
from tests.system.conftest import ALL_OPERATIONS, StartReplica
from tests.system.providers import PROVIDERS, put_provider
from tests.system.replicas import Plane, Replica, try_request
from tests.webhook.mutation.documents import assign

RBAC = "/apis/rbac.authorization.k8s.io/v1"
NAME = "guarded"
JANE = "jane"
PATH = f"{PROVIDERS}/{NAME}"


@pytest.fixture
def replica(plane: Plane, start: StartReplica) -> Iterator[Replica]:
    """A replica; the Provider goes with the test, and the right to use it."""
    yield start("asking-0", *ALL_OPERATIONS).wait_ready()
    for path in (PATH, f"{RBAC}/clusterrolebindings/uses", f"{RBAC}/clusterroles/uses"):
        try_request(plane.api, "DELETE", path)


def provider_status(plane: Plane) -> dict[str, Any]:
    """Returns the replica's entry in the Provider's status."""
    entries = plane.by_pod(PATH)
    return next((entry for entry in entries if entry["id"] == "asking-0"), {})


def held(plane: Plane) -> set[str]:
    """The conditions that hold of the Provider."""
    conditions = plane.api.request("GET", PATH)["status"].get("conditions", ())
    return {item["type"] for item in conditions if item["status"] == "True"}


def manifest(**spec: Any) -> dict[str, Any]:
    """A Provider that nobody asks."""
    bundle = base64.b64encode(make_authority().certificate).decode()
    return {
        "apiVersion": "externaldata.gatekeeper.sh/v1beta1",
        "kind": "Provider",
        "metadata": {"name": NAME},
        "spec": {"url": "https://nobody.invalid/", "timeout": 1, "caBundle": bundle, **spec},
    }


def test_what_cannot_be_used_is_reported_and_the_last_good_one_answers(
    plane: Plane, start: StartReplica, replica: Replica, tmp_path: Path
) -> None:
    with ProviderProcess(tmp_path, authority=make_authority()) as provider:
        put_provider(plane, provider.manifest(NAME, timeout=30), [replica])
        assert provider_status(plane)["active"] is True
        broken = provider.manifest(NAME, url="http://plain.invalid/")
        plane.api.apply(PATH, broken)
        until(lambda: provider_status(plane).get("active") is False, "the status names the fault")
        entry = provider_status(plane)
        assert (entry["observedGeneration"], entry["activeGeneration"]) == (2, 1)
        assert entry["errors"] == [
            {
                "type": "UpsertCache",
                "message": "only HTTPS scheme is supported for Providers",
                "retryable": True,
                "errorTimestamp": entry["lastTransitionTime"],
            }
        ]
        until(lambda: "Error" in held(plane), "a condition says so")
        # Neither does a replica that starts now wait for what cannot be used.
        assert start("asking-1", *ALL_OPERATIONS).wait_ready().is_ready
        refused = replica.admit(broken)["status"]
        assert refused["code"] == 422
        assert refused["message"] == "only HTTPS scheme is supported for Providers"


def asking(provider: str) -> dict[str, Any]:
    """A template that asks a provider; ``provider`` is a term of Rego."""
    rego = f"""
    package asksguarded
    violation[{{"msg": "no"}}] {{ external_data({{"provider": {provider}, "keys": ["a"]}}).errors[_] }}
    """
    return policies.template("AsksGuarded", rego, schema=policies.FREE)


def test_who_may_not_use_a_provider_brings_in_nothing_that_asks_it(
    plane: Plane, replica: Replica
) -> None:
    guarded = manifest()
    guarded["metadata"]["annotations"] = {"waddle.dev/use": "required"}
    put_provider(plane, guarded, [replica])

    def refusal(document: dict[str, Any]) -> str:
        user = {"username": JANE, "groups": ["system:authenticated"]}
        answer = replica.admit(document, userInfo=user)
        return (
            "" if answer["allowed"] else f"{answer['status']['code']} {answer['status']['message']}"
        )

    mutator = assign("from-provider", "spec.owner", None)
    source = {"provider": NAME, "failurePolicy": "Ignore"}
    mutator["spec"]["parameters"] = {"assign": {"externalData": source}}
    words = f"403 {JANE} may not use the Provider {NAME}"
    for document in (asking(f'"{NAME}"'), asking("input.parameters.provider"), mutator):
        assert refusal(document).startswith(words), document
    assert refusal(asking('"another"')) == ""

    group, version = "rbac.authorization.k8s.io", "rbac.authorization.k8s.io/v1"
    rule = {"apiGroups": ["externaldata.gatekeeper.sh"], "resources": ["providers"]}
    rule |= {"resourceNames": [NAME], "verbs": ["use"]}
    role = {"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": "uses"}}
    plane.api.apply(f"{RBAC}/clusterroles/uses", {**role, "rules": [rule]})
    binding = {"apiVersion": version, "kind": "ClusterRoleBinding", "metadata": {"name": "uses"}}
    binding["roleRef"] = {"apiGroup": group, "kind": "ClusterRole", "name": "uses"}
    subject = {"kind": "User", "name": JANE, "apiGroup": group}
    plane.api.apply(f"{RBAC}/clusterrolebindings/uses", {**binding, "subjects": [subject]})
    until(lambda: not refusal(mutator), "the right is there")
    assert refusal(asking("input.parameters.provider")) == ""
