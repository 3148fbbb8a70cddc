"""The API server that other tests rely on."""

import json
import queue
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.cluster import Api, ApiError, Cluster
from tests.patience import PATIENCE_SECONDS
from tests.programs import Programs
from webhook.cli.demo.build import KUBERNETES_VERSION


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


@contextmanager
def answering(*answers: tuple[int, dict[str, str]]) -> Iterator[Api]:
    """A client of a server that gives these statuses and headers, one for each request."""
    left = iter(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers = next(left)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        try:
            yield Api(f"http://127.0.0.1:{server.server_port}", ssl.create_default_context())
        finally:
            server.shutdown()


class Counted(ThreadingHTTPServer):
    """A server that keeps connections: how many requests each has brought, and which have ended."""

    daemon_threads = True

    def __init__(self) -> None:
        self.counts: list[int] = []
        self.connections: list[socket.socket] = []
        self.ended: queue.SimpleQueue[int] = queue.SimpleQueue()
        super().__init__(("127.0.0.1", 0), CountedRequests)


class CountedRequests(BaseHTTPRequestHandler):
    """Serves a connection."""

    protocol_version = "HTTP/1.1"
    server: Counted

    def setup(self) -> None:
        super().setup()
        self.number = len(self.server.counts)
        self.server.counts.append(0)
        self.server.connections.append(self.connection)

    def do_GET(self) -> None:
        self.server.counts[self.number] += 1
        self.send_response(200 if self.path == "/" else 404)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def finish(self) -> None:
        super().finish()
        self.server.ended.put(self.number)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def counting() -> Iterator[tuple[Api, Counted]]:
    """A client, and the server that it asks."""
    with Counted() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        try:
            yield (
                Api(f"http://127.0.0.1:{server.server_port}", ssl.create_default_context()),
                server,
            )
        finally:
            server.shutdown()


def test_each_thread_of_the_client_keeps_a_connection():
    """After refusals, too; it is closed when its thread has ended."""
    with counting() as (api, server):
        for path in ("/", "/none", "/"):
            with suppress(ApiError):
                api.request("GET", path)
        assert server.counts == [3]
        other = threading.Thread(target=api.request, args=("GET", "/"))
        other.start()
        other.join()
        assert server.counts == [3, 1]
        assert server.ended.get(timeout=PATIENCE_SECONDS) == 1


def test_a_connection_that_the_server_has_closed_is_not_used_again():
    """After a restart of the server, no request is sent twice, and none fails."""
    with counting() as (api, server):
        api.request("GET", "/")
        server.connections[0].shutdown(socket.SHUT_RDWR)
        assert api.request("GET", "/") == {}
        assert server.counts == [1, 1]


def test_the_client_comes_again_when_the_answer_says():
    """A server that serves a changed CRD anew says so for a moment; nothing else is hidden."""
    later = (503, {"Retry-After": "0"})
    with answering(later, later, (200, {})) as api:
        assert api.request("GET", "/") == {}
    with answering((503, {})) as api, pytest.raises(ApiError, match="503"):
        api.request("GET", "/")


def test_a_restart_keeps_data_certificates_and_ports(program: Programs, tmp_path: Path) -> None:
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
        *lines, _ = audit_log.read_text().split("\n")  # it may be writing the next
        events = [json.loads(line) for line in lines]
        assert {
            event["verb"] for event in events if event.get("objectRef", {}).get("name") == "kept"
        } == {"patch", "get"}
    finally:
        cluster.stop()
