"""SIGTERM: unready, still serving, each connection closed after its answer, then the end."""

import http.client
import json
import math
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.behaviour.serving import (
    REQUIRED_LABELS,
    SLOW,
    Answer,
    Server,
    await_true,
    constraint,
    pod,
    read_all,
    review,
    thing,
    unverified,
    write_policies,
)
from tests.patience import PATIENCE_SECONDS
from webhook.server.http.limits import LAST_CHANCE_SECONDS

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    """Writes a cheap constraint and a slow one."""
    return write_policies(tmp_path, REQUIRED_LABELS, constraint("needs-owner", "owner"), SLOW)


class Client(threading.Thread):
    """Sends reviews on a keep-alive connection, opens another when told to, until refused."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        self.server = server
        self.answered = 0
        self.reconnected = 0
        self.lost: list[BaseException] = []

    def run(self) -> None:
        """Send until the port is closed."""
        connection: http.client.HTTPSConnection | None = None
        body = json.dumps(review(pod())).encode()
        while True:
            # A request that is on its way as the port is closed is answered. One that this thread
            # had no processor to send in time was none yet.
            last, sent = time.monotonic(), math.inf
            try:
                connection = connection or self.server.connect(unverified())
            except OSError:
                return  # The port is closed: nothing was sent.
            try:
                connection.request("POST", "/v1/admit?timeout=30s", body, JSON)
                sent = time.monotonic()
                answer = Answer(connection.getresponse())
            except (OSError, http.client.HTTPException) as error:
                if min(sent, time.monotonic()) - last < LAST_CHANCE_SECONDS:
                    self.lost.append(error)
                connection.close()
                return
            if answer.status != 200:
                self.lost.append(AssertionError(answer.status))
            self.answered += 1
            if answer.headers.get("connection") == "close":
                connection.close()
                connection = None
                self.reconnected += 1


def test_no_request_is_lost_under_load(policies: Path) -> None:
    with Server(policies, "--evaluation-budget=1m", "--shutdown-delay=6") as server:
        server.ready()
        clients = [Client(server) for _ in range(4)]
        for client in clients:
            client.start()
        while not all(client.answered > 20 for client in clients):
            assert server.admit(pod())["allowed"] is False
        assert server.stop() == 0
        for client in clients:
            client.join(PATIENCE_SECONDS)
        assert [client.lost for client in clients] == [[], [], [], []]
        assert all(client.reconnected > 0 for client in clients)


def test_readiness_goes_first_and_serving_goes_on(policies: Path) -> None:
    # The end of the test is a second signal, which ends it at once.
    with Server(policies, "--evaluation-budget=1m", "--shutdown-delay=600") as server:
        kept = server.ready().connect()
        assert "connection" not in server.post(review(pod()), connection=kept).headers
        server.process.send_signal(signal.SIGTERM)
        server.wait_for("draining: not ready from now on")
        ready = server.get("health", "/readyz")
        assert ready.status == 503
        assert b"[-]shutdown failed: the process was asked to stop" in ready.body
        assert server.get("health", "/healthz").status == 200
        answer = server.post(review(pod()), connection=kept)
        assert answer.verdict["status"]["code"] == 403
        assert answer.headers["connection"] == "close"
        kept.close()
        assert server.post(review(pod())).headers["connection"] == "close"


def test_a_review_under_way_is_answered_before_the_end(policies: Path) -> None:
    with Server(policies, "--evaluation-budget=1m") as server:
        server.ready()
        body = json.dumps(review(thing("ConfigMap"))).encode()
        head = (
            b"POST /v1/admit?timeout=12s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        )
        with server.raw() as connection:
            connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            await_true(lambda: server.metric("waddle_requests_in_flight") == 1)
            server.process.send_signal(signal.SIGTERM)
            assert b'"code":422' in read_all(connection)
        assert server.process.wait(PATIENCE_SECONDS) == 0


def test_an_idle_connection_does_not_hold_up_the_end(policies: Path) -> None:
    with Server(policies, "--evaluation-budget=1m") as server:
        with server.ready().raw() as idle:
            assert server.stop() == 0
            assert read_all(idle) == b""
        assert server.wait_for("stopped") == server.events[-1]


def test_a_second_signal_ends_the_process_at_once(policies: Path) -> None:
    with Server(policies, "--evaluation-budget=1m", "--shutdown-delay=600") as server:
        server.ready()
        server.process.send_signal(signal.SIGTERM)
        server.wait_for("draining: not ready from now on")
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE_SECONDS) == 1


def test_an_interrupt_at_the_terminal_ends_it_too(policies: Path) -> None:
    with Server(policies, "--evaluation-budget=1m") as server:
        server.ready().process.send_signal(signal.SIGINT)
        assert server.process.wait(PATIENCE_SECONDS) == 0


def test_control_c_waits_for_nobody_where_nobody_is_served(policies: Path) -> None:
    """The whole delay is for those who are connected: a day would be waited for them."""
    with Server(policies, "--shutdown-delay=86400") as server:
        server.process.send_signal(signal.SIGINT)

        assert server.wait_for("draining: not ready from now on")["delay_seconds"] == 0
        assert server.process.wait(PATIENCE_SECONDS) == 0


def test_control_c_waits_for_who_is_connected(policies: Path) -> None:
    with Server(policies, "--shutdown-delay=86400") as server:
        connection = server.connect(unverified())
        connection.request("GET", "/")
        connection.getresponse().read()
        server.process.send_signal(signal.SIGINT)

        assert server.wait_for("draining: not ready from now on")["delay_seconds"] == 86400
        connection.close()
        server.process.send_signal(signal.SIGINT)
        server.process.wait(PATIENCE_SECONDS)
