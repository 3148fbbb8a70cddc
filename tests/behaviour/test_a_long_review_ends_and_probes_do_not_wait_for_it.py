"""Deadlines, evaluation errors and bugs; the probes' thread."""

import json
import signal
import time
from pathlib import Path

import pytest

from tests.behaviour.serving import (
    FAILING,
    REQUIRED_LABELS,
    SLOW,
    Server,
    await_true,
    read_all,
    review,
    thing,
    write_policies,
)

HEAD = b"POST /v1/admit?timeout=12s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


def test_an_object_that_takes_all_its_time_is_refused_and_not_left_to_failure_policy(
    server: Server,
) -> None:
    """With Ignore, a slow object would get past every policy."""
    answer = server.post(review(thing("ConfigMap")), "/v1/admit?timeout=1s")
    assert answer.status == 200
    response = answer.json()["response"]
    assert response["allowed"] is False
    assert (response["status"]["code"], response["status"]["reason"]) == (422, "Undecidable")
    assert "make the object smaller" in response["status"]["message"]


def test_probes_and_metrics_are_answered_while_a_review_runs(server: Server) -> None:
    body = json.dumps(review(thing("ConfigMap"))).encode()
    with server.raw() as connection:
        connection.sendall(
            HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        await_true(lambda: server.metric("waddle_requests_in_flight") == 1)
        health = server.get("health", "/healthz")
        ready = server.get("health", "/readyz")
        still_running = server.metric("waddle_requests_in_flight")
        assert (health.status, ready.status, still_running) == (200, 200, 1)
        assert b'"code":422' in read_all(connection)


def test_after_a_long_review_others_are_decided(server: Server) -> None:
    slow = server.post(review(thing("ConfigMap")), "/v1/admit?timeout=2s").json()
    # Where the same user's earlier review still has the processor it is that one's doing.
    assert slow["response"]["status"]["code"] in (422, 429)
    assert server.admit(thing("Service"))["allowed"] is True


def test_evaluation_errors_can_be_left_to_failure_policy(tmp_path: Path) -> None:
    with Server(write_policies(tmp_path, FAILING), "--evaluation-errors=error") as server:
        server.ready()
        answer = server.post(review(thing("Secret")))
        assert answer.status == 500
        assert "conflict" in answer.json()["message"]
        assert server.admit(thing("Service"))["allowed"] is True
        assert server.metric('waddle_requests_refused_total{reason="evaluation_error"}') == 1


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/healthz?verbose", "/readyz?verbose"])
def test_a_working_server_passes_its_probes(server: Server, path: str) -> None:
    answer = server.get("health", path)
    assert answer.status == 200
    assert answer.body.endswith(b"check passed\n" if "verbose" in path else b"ok")


def test_the_health_port_serves_nothing_else(server: Server) -> None:
    assert server.get("health", "/metrics").status == 404
    assert server.get("metrics", "/readyz").status == 404


def test_a_running_review_can_be_profiled(tmp_path: Path) -> None:
    flags = ("--enable-pprof", "--pprof-port=0", "--evaluation-budget=1m")
    with Server(write_policies(tmp_path, SLOW), *flags) as server:
        server.ready()
        body = json.dumps(review(thing("ConfigMap"))).encode()
        with server.raw() as connection:
            connection.sendall(
                HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            )
            await_true(lambda: server.metric("waddle_requests_in_flight") == 1)
            found = server.get("pprof", "/debug/pprof/profile?seconds=1")
            assert b"snapshot.py" in found.body
            assert b"probes:" in server.get("pprof", "/debug/pprof/goroutine").body
            read_all(connection)
        assert server.get("pprof", "/debug/pprof/profile?seconds=x").status == 400


def test_readyz_says_that_a_process_gets_too_little_of_the_processor(tmp_path: Path) -> None:
    """It stands still again and again, as a throttled container does."""
    with Server(write_policies(tmp_path, REQUIRED_LABELS)) as server:
        server.ready()

        def notes() -> str:
            server.process.send_signal(signal.SIGSTOP)
            time.sleep(0.2)  # the fault: longer than a late timer
            server.process.send_signal(signal.SIGCONT)
            return server.get("health", "/readyz?verbose").body.decode()

        await_true(lambda: "[!]the admission thread was held up for over 0.1 s" in notes())
        assert "remove the container's CPU limit" in notes()
