"""Leftovers of a test in a shared control plane are found; objects under deletion are not."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.cluster import Cluster
from tests.leftovers import keys, left_over
from tests.policies import definition

CORE = "/api/v1/namespaces"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
FREED = {"metadata": {"finalizers": None}}
MERGE = "application/merge-patch+json"
KEPT = f"{CORE}/default/configmaps/kept"


@pytest.fixture
def stack(cluster: Cluster) -> Iterator[ExitStack]:
    """Yields a stack that ends with the test."""
    with ExitStack() as made:
        yield made


def test_what_a_test_leaves_or_takes_is_found(cluster: Cluster, stack: ExitStack) -> None:
    api, before = cluster.api, keys(cluster)
    assert left_over(cluster, before) == []
    api.apply(KEPT, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}})
    stack.callback(api.request, "DELETE", KEPT)
    assert left_over(cluster, before) == ["left configmaps/default/kept"]
    assert left_over(cluster, {*before, "configmaps/default/another"}) == [
        "left configmaps/default/kept",
        "took configmaps/default/another",
    ]


def test_what_ends_by_itself_is_not(cluster: Cluster, stack: ExitStack) -> None:
    """A namespace and a kind that are being deleted, which a finalizer holds up."""
    api, before = cluster.api, keys(cluster)
    held = {"finalizers": ["tests.example/held"]}
    kind = definition("Leaving", "leavings", "tests.example")
    kind["metadata"] |= held
    crd, maps = f"{CRDS}/leavings.tests.example", f"{CORE}/leaving/configmaps"
    api.request("POST", CORE, {"metadata": {"name": "leaving"}})
    api.request("POST", CRDS, kind)
    api.request("POST", maps, {"metadata": {"name": "held", **held}})
    for path in (crd, f"{maps}/held"):
        stack.callback(api.request, "PATCH", path, FREED, content_type=MERGE)
    assert len(left_over(cluster, before)) == 2
    for path in (crd, f"{CORE}/leaving"):
        api.request("DELETE", path)
    assert left_over(cluster, before) == []
