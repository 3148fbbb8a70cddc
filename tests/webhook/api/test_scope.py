"""Kinds in no namespace, as the real API server serves them."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from tests.cluster import Api, ApiError
from webhook.api.scope import is_cluster_scoped


def resources_of(api: Api, path: str) -> list[dict[str, Any]]:
    """Returns the served resources; none if another test has just deleted their CRD."""
    try:
        resources: list[dict[str, Any]] = api.request("GET", path)["resources"]
    except ApiError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        return []
    return resources


def custom_groups(api: Api) -> set[str]:
    """Returns the groups of other tests' CRDs."""
    crds = api.request("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
    return {item["spec"]["group"] for item in crds["items"]}


def test_each_kind_of_the_api_server_is_known_to_be_in_a_namespace_or_in_none(program, cluster):
    del program
    api = cluster.api
    brought = custom_groups(api)
    groups = {"/api/v1": ""} | {
        f"/apis/{version['groupVersion']}": group["name"]
        for group in api.request("GET", "/apis")["groups"]
        for version in group["versions"]
    }
    served = {
        (group, item["kind"]): item["namespaced"]
        for path, group in groups.items()
        for item in resources_of(api, path)
        if "/" not in item["name"]
    }
    brought |= custom_groups(api)  # others come and go meanwhile
    scopes = {
        kind: is_namespaced for kind, is_namespaced in served.items() if kind[0] not in brought
    }

    assert len(scopes) > 50
    assert {kind: not is_cluster_scoped(*kind) for kind in scopes} == scopes


def test_constraints_are_in_no_namespace_whatever_their_kind():
    assert is_cluster_scoped("constraints.gatekeeper.sh", "Whatever")
    assert not is_cluster_scoped("cat.example", "Cat")


def test_policies_of_waddle_s_own_are_in_no_namespace_but_for_one():
    assert is_cluster_scoped("waddle.dev", "VerificationPolicy")
    assert not is_cluster_scoped("waddle.dev", "PolicyException")
