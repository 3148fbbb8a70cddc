"""Objects that violate a policy end as they are deleted, and so does their Namespace."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster import ApiError
from tests.patience import until
from tests.system.conftest import ALL_OPERATIONS, StartReplica, control_plane
from tests.system.load import is_denied
from tests.system.proxy import Proxy
from tests.system.replicas import (
    CONFIG_MAPS,
    WORKLOADS,
    Plane,
    config_map,
    constraint,
    template,
    try_request,
)

MERGE = "application/merge-patch+json"
NAMESPACE_PATH = f"/api/v1/namespaces/{WORKLOADS}"
BACKGROUND = {"propagationPolicy": "Background"}
FOREGROUND = {"propagationPolicy": "Foreground"}


@pytest.fixture
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane of this test's own: it deletes a Namespace of it."""
    with control_plane(tmp_path_factory.mktemp("plane")) as own:
        yield own


def refused(plane: Plane, name: str, patch: dict[str, Any]) -> bool:
    """Whether a patch is refused by a policy."""
    try:
        plane.api.request("PATCH", f"{CONFIG_MAPS}/{name}", patch, content_type=MERGE)
    except ApiError as error:
        return error.status == 403 and "denied by bad" in str(error)
    return False


def is_gone(plane: Plane, path: str) -> bool:
    return try_request(plane.api, "GET", path) is None


@pytest.mark.slow(40)
def test_what_violates_can_be_deleted_and_nothing_comes_in_by_it(
    plane: Plane, start: StartReplica, proxy: Proxy
) -> None:
    replica = start("waddle-0", *ALL_OPERATIONS).wait_ready()
    made = {}
    for name in ("held", "owner", "owned", "orphaned", "left"):
        body = config_map("bad", name)
        if name != "owner":
            body["metadata"]["finalizers"] = ["example.com/held"] if name != "orphaned" else []
        if name in ("owned", "orphaned"):
            body["metadata"]["ownerReferences"] = [
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "name": owner,
                    "uid": made[owner]["metadata"]["uid"],
                    "blockOwnerDeletion": True,
                }
                for owner in ("owner", "held")[: 2 if name == "orphaned" else 1]
            ]
        made[name] = plane.api.request("POST", CONFIG_MAPS, body)
    plane.put_template(template("Violated"))
    plane.put_constraint(constraint("bad", "bad", "Violated"))
    until(lambda: replica.denies("bad"), "it is enforced")
    proxy.replicas = [replica]
    plane.register(proxy.port)
    until(lambda: is_denied(plane.api, "bad"), "the webhook is in place")

    # A finalizer: whoever cleaned up takes it, and changes nothing else by the way.
    plane.api.request("DELETE", f"{CONFIG_MAPS}/held", BACKGROUND)
    off: dict[str, Any] = {"metadata": {"finalizers": []}}
    assert refused(plane, "held", off | {"data": {"more": "x"}})
    # What it notes is no other violation; on an object that stays it would be refused.
    assert not refused(plane, "held", {"metadata": {"annotations": {"more": "x"}}})
    assert refused(plane, "left", {"metadata": {"annotations": {"more": "x"}}})
    assert not refused(plane, "held", off)
    until(lambda: is_gone(plane, f"{CONFIG_MAPS}/held"), "it is gone")

    # In the foreground: the garbage collector writes to the owner and to what it owns.
    plane.api.request("DELETE", f"{CONFIG_MAPS}/owner", FOREGROUND)
    assert not refused(plane, "owned", off)
    for name in ("owned", "owner"):
        until(lambda name=name: is_gone(plane, f"{CONFIG_MAPS}/{name}"), f"{name} is gone")

    # The Namespace, with what is left in it.
    plane.api.request("DELETE", NAMESPACE_PATH)
    assert not refused(plane, "left", off)
    until(lambda: is_gone(plane, NAMESPACE_PATH), "the Namespace is gone")
    plane.unregister()
