"""`waddle uninstall` removes what is ours, in an order in which nothing is held up, and nothing else.

Against an API server that knows objects by their paths.
"""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import write_kubeconfig
from tests.conformance.gatekeeper import waddle

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
VALIDATING = f"{ADMISSION}/validatingwebhookconfigurations"
MUTATING = f"{ADMISSION}/mutatingwebhookconfigurations"
BINDINGS = f"{ADMISSION}/validatingadmissionpolicybindings"
POLICIES = f"{ADMISSION}/validatingadmissionpolicies"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PODS = "/api/v1/namespaces/waddle-system/pods"


class Objects(ThreadingHTTPServer):
    """Answers for objects by path; what is deleted is kept in order."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.objects: dict[str, dict[str, Any]] = {}
        self.deleted: list[str] = []

    def put(self, collection: str, name: str, **more: Any) -> None:
        metadata = {"name": name, "uid": f"uid-{name}", **more.pop("metadata", {})}
        self.objects[f"{collection}/{name}"] = {"metadata": metadata, **more}


class Handler(BaseHTTPRequestHandler):
    """Lists, reads and deletes."""

    server: Objects

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path in self.server.objects:
            return self._answer(200, self.server.objects[path])
        if path.rpartition("/")[0] in (VALIDATING, MUTATING):
            return self._answer(404, {"kind": "Status", "code": 404, "reason": "NotFound"})
        items = [item for at, item in self.server.objects.items() if at.rpartition("/")[0] == path]
        return self._answer(200, {"metadata": {}, "items": items})

    def do_DELETE(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        found = self.server.objects.pop(self.path)
        assert body == {"preconditions": {"uid": found["metadata"]["uid"]}}
        self.server.deleted.append(self.path)
        self._answer(200, {"kind": "Status", "status": "Success"})

    def _answer(self, code: int, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Objects]:
    """With an installation, and with what is others' beside it."""
    with Objects() as found:
        thread = threading.Thread(target=found.serve_forever, daemon=True)
        thread.start()
        found.put(VALIDATING, "waddle-validating-webhook-configuration")
        found.put(MUTATING, "waddle-mutating-webhook-configuration")
        found.put(VALIDATING, "somebody")
        owner = {"apiVersion": "templates.gatekeeper.sh/v1", "controller": True, "uid": "t"}
        owned = {"ownerReferences": [owner]}
        found.put(POLICIES, "gatekeeper-t", metadata=owned)
        found.put(BINDINGS, "gatekeeper-c", metadata=owned)
        found.put(POLICIES, "somebodys")
        for name in ("constrainttemplates.templates", "k8sx.constraints"):
            group = f"{name.partition('.')[2]}.gatekeeper.sh"
            found.put(CRDS, f"{name}.gatekeeper.sh", spec={"group": group})
        found.put(CRDS, "policyrevisions.policy.waddle.dev", spec={"group": "policy.waddle.dev"})
        found.put(CRDS, "crontabs.stable.example.com", spec={"group": "stable.example.com"})
        yield found
        found.shutdown()
        thread.join()


@pytest.fixture
def options(server: Objects, tmp_path: Path) -> list[str]:
    url = f"http://127.0.0.1:{server.server_port}"
    return ["--kubeconfig", str(write_kubeconfig(tmp_path / "kubeconfig", url))]


def test_the_webhooks_of_this_installation_are_removed_and_no_other(server, options):
    run = waddle("uninstall", "--webhooks", "--yes", *options)
    assert (run.returncode, run.stderr) == (0, "")
    assert server.deleted == [
        f"{VALIDATING}/waddle-validating-webhook-configuration",
        f"{MUTATING}/waddle-mutating-webhook-configuration",
    ]
    assert "validatingwebhookconfigurations/waddle-validating-webhook-configuration removed" in (
        run.stdout
    )
    again = waddle("uninstall", "--webhooks", "--yes", *options)
    assert (again.returncode, again.stdout) == (0, "this cluster has no objects of Waddle\n")


def test_what_may_refuse_goes_first_and_crds_last(server, options):
    run = waddle("uninstall", "--webhooks", "--policies", "--yes", *options)
    assert run.returncode == 0, run.stderr
    assert server.deleted == [
        f"{VALIDATING}/waddle-validating-webhook-configuration",
        f"{MUTATING}/waddle-mutating-webhook-configuration",
        f"{BINDINGS}/gatekeeper-c",
        f"{POLICIES}/gatekeeper-t",
        f"{CRDS}/k8sx.constraints.gatekeeper.sh",
        f"{CRDS}/constrainttemplates.templates.gatekeeper.sh",
        f"{CRDS}/policyrevisions.policy.waddle.dev",
    ]
    assert {path.rpartition("/")[2] for path in server.objects} == {
        "somebody",
        "somebodys",
        "crontabs.stable.example.com",
    }


def test_without_yes_it_shows_what_it_would_remove(server, options):
    run = waddle("uninstall", "--webhooks", "--policies", *options)
    assert run.returncode == 0
    assert run.stdout.count("would be removed") == 7
    assert run.stdout.endswith("nothing was removed: add --yes to remove it\n")
    assert server.deleted == []


def test_names_are_those_that_the_chart_was_given(server, options):
    server.put(VALIDATING, "guard-validating-webhook-configuration")
    assert waddle("uninstall", "--webhooks", "--name=guard", "--yes", *options).returncode == 0
    assert server.deleted == [f"{VALIDATING}/guard-validating-webhook-configuration"]


def test_policies_stay_while_a_pod_would_make_them_again(server, options):
    server.put(PODS, "waddle-webhook-0", metadata={"namespace": "waddle-system"})
    run = waddle("uninstall", "--policies", "--yes", *options)
    assert run.returncode == 1
    assert "(waddle-webhook-0)" in run.stderr
    assert server.deleted == []


def test_policies_stay_while_gatekeeper_enforces_them(server, options):
    server.put(VALIDATING, "gatekeeper-validating-webhook-configuration")
    run = waddle("uninstall", "--policies", "--yes", *options)
    assert run.returncode == 1
    assert "Gatekeeper is installed" in run.stderr
    assert server.deleted == []


def test_who_names_nothing_removes_nothing(options):
    run = waddle("uninstall", "--yes", *options)
    assert run.returncode == 64
    assert "--webhooks, --policies or both" in run.stderr
