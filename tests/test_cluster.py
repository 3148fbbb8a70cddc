"""The API server that other tests rely on."""

import json
from pathlib import Path

import pytest

from tests.cluster import ApiError, Cluster
from tests.programs import KUBERNETES_VERSION, program


def config_map(name: str) -> dict[str, object]:
    """A small object to write."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}


def test_the_version_is_the_one_that_was_pinned(cluster: Cluster) -> None:
    """Clients parse the server's version."""
    assert cluster.api.request("GET", "/version")["gitVersion"] == f"v{KUBERNETES_VERSION}"


def test_a_missing_object_is_an_error_with_its_status(cluster: Cluster) -> None:
    """A refusal is never mistaken for an answer."""
    with pytest.raises(ApiError) as refused:
        cluster.api.request("GET", "/api/v1/namespaces/default/configmaps/none")
    assert refused.value.status == 404


def test_a_restart_keeps_data_certificates_and_ports(tmp_path: Path) -> None:
    """The client made before the restart finds its object after it; the audit log has its name."""
    audit_log = tmp_path / "audit.log"
    arguments = ("-audit-log", str(audit_log), "-controllers=false")
    cluster = Cluster.start(program("testcluster"), tmp_path / "state", *arguments)
    try:
        api, before = cluster.api, dict(cluster.facts)
        path = "/api/v1/namespaces/default/configmaps"
        made = api.apply(f"{path}/kept", config_map("kept"))
        cluster.restart()
        assert api.request("GET", f"{path}/kept") == made
        for fact in ("server", "etcd", "kubeconfig"):
            assert cluster.facts[fact] == before[fact]
        assert cluster.pid != before["pid"]
        events = [json.loads(line) for line in audit_log.read_text().splitlines()]
        assert {
            event["verb"] for event in events if event.get("objectRef", {}).get("name") == "kept"
        } == {"patch", "get"}
    finally:
        cluster.stop()
