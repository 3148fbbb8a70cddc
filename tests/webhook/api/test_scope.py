"""Kinds in no namespace, as the real API server serves them."""

from __future__ import annotations

from webhook.api.scope import is_cluster_scoped


def test_each_kind_of_the_api_server_is_known_to_be_in_a_namespace_or_in_none(program, cluster):
    del program
    api = cluster.api
    crds = api.request("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
    brought = {item["spec"]["group"] for item in crds["items"]}  # by other tests
    groups = {"/api/v1": ""} | {
        f"/apis/{version['groupVersion']}": group["name"]
        for group in api.request("GET", "/apis")["groups"]
        for version in group["versions"]
    }
    scopes = {
        (group, item["kind"]): item["namespaced"]
        for path, group in groups.items()
        if group not in brought
        for item in api.request("GET", path)["resources"]
        if "/" not in item["name"]
    }

    assert len(scopes) > 50
    assert {kind: not is_cluster_scoped(*kind) for kind in scopes} == scopes


def test_constraints_are_in_no_namespace_whatever_their_kind():
    assert is_cluster_scoped("constraints.gatekeeper.sh", "Whatever")
    assert not is_cluster_scoped("cat.example", "Cat")
