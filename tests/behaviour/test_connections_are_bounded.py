"""Limits of bytes, time and number, each with the answer that a client gets."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.behaviour.serving import (
    REQUIRED_LABELS,
    SLOW,
    Server,
    await_true,
    constraint,
    pod,
    read_all,
    review,
    thing,
    write_policies,
)
from tests.patience import PATIENCE_SECONDS
from webhook.server.http.acceptor import HANDSHAKES_MAX

HEAD = b"POST /v1/admit HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose limits are small enough to be reached."""
    folder = tmp_path_factory.mktemp("policies")
    policies = write_policies(folder, REQUIRED_LABELS, constraint("needs-owner", "owner"), SLOW)
    with Server(
        policies,
        "--evaluation-budget=1m",
        "--max-header-bytes=4096",
        "--max-body-bytes=20000",
        "--max-in-flight=1",
        "--max-connections=20",
    ) as running:
        yield running.ready()


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that waits for little; what of a test must not take so long is a handshake or two."""
    folder = tmp_path_factory.mktemp("hasty")
    policies = write_policies(folder, REQUIRED_LABELS, constraint("needs-owner", "owner"))
    limits = ("--header-timeout=4s", "--body-timeout=4s", "--idle-timeout=4s")
    with Server(policies, *limits) as running:
        yield running.ready()


def answer_to(server: Server, sent: bytes) -> bytes:
    """Returns the bytes that the server sends in reply, until the connection ends."""
    with server.raw() as connection:
        connection.sendall(sent)
        return read_all(connection)


def test_a_declared_body_beyond_the_limit_is_refused_at_its_beginning(strict: Server) -> None:
    found = answer_to(strict, HEAD + b"Content-Length: 20001\r\n\r\n" + b" " * 5000)
    assert found.startswith(b"HTTP/1.1 413 ")
    assert b"request entity is too large; limit is 20000 bytes" in found


def test_a_chunked_body_beyond_the_limit_is_refused(strict: Server) -> None:
    chunk = b"1000\r\n" + b" " * 0x1000 + b"\r\n"
    found = answer_to(strict, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 6)
    assert found.startswith(b"HTTP/1.1 413 ")


def test_a_body_of_the_limit_s_size_is_accepted(strict: Server) -> None:
    body = json.dumps(review(pod())).encode()
    assert strict.post(body + b" " * (20000 - len(body))).status == 200
    assert strict.post(body + b" " * (20001 - len(body))).status == 413


def test_the_default_limit_is_40_mib(server: Server) -> None:
    body = json.dumps(review(pod())).encode()
    assert server.post(body + b" " * (40 * 1024 * 1024 - len(body))).status == 200
    assert server.post(body + b" " * (40 * 1024 * 1024 + 1 - len(body))).status == 413


def test_bodies_in_tiny_chunks_are_refused(strict: Server) -> None:
    """Each costs an object and a call: 14 MB in chunks of two bytes took 116 MiB."""
    chunks = b"2\r\n  \r\n" * 5_000
    found = answer_to(strict, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)
    assert found.startswith(b"HTTP/1.1 400 ")
    assert b"chunks of less than 256 bytes on average" in found


def test_large_bodies_wait_for_each_other_and_small_ones_for_none(tmp_path: Path) -> None:
    policies = write_policies(tmp_path, REQUIRED_LABELS, constraint("needs-owner", "owner"))
    with Server(policies, "--max-body-bytes=1000000") as server:
        server.ready()
        body = json.dumps(review(pod(owner="me"))).encode()
        large = body + b" " * (900_000 - len(body))
        head = HEAD + b"Content-Length: 900000\r\nConnection: close\r\n\r\n"
        with server.raw() as first, server.raw() as second:
            first.sendall(head + large[:500_000])
            await_true(lambda: (server.metric("waddle_waiting_bytes") or 0) >= 500_000)
            sending = threading.Thread(target=second.sendall, args=(head + large,))
            sending.start()
            assert server.post(body).status == 200
            first.sendall(large[500_000:])
            assert read_all(first).startswith(b"HTTP/1.1 200 ")
            assert read_all(second).startswith(b"HTTP/1.1 200 ")
            sending.join()
        await_true(lambda: server.metric("waddle_waiting_bytes") == 0)


@pytest.mark.parametrize(
    "head",
    [
        HEAD + b"A: " + b"b" * 5000 + b"\r\n\r\n",
        HEAD + b"A: " + b"b" * 300_000,
        HEAD + b"A: b\r\n" * 101 + b"\r\n",
        b"POST /v1/admit?" + b"a" * 5000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /v1/admit?" + b"a" * 300_000,
    ],
    ids=["one header", "an endless header", "many headers", "the target", "an endless target"],
)
def test_a_head_beyond_the_limit_is_refused_with_431(strict: Server, head: bytes) -> None:
    assert answer_to(strict, head).startswith(b"HTTP/1.1 431 ")


def test_endless_trailers_are_refused(strict: Server) -> None:
    body = b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\nA: " + b"b" * 300_000
    assert answer_to(strict, HEAD + body).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    "beginning",
    [b"1\r\n{\r\n0\r\nA: ", b"1;", b"0"],
    ids=["a trailer", "an extension", "zeros before a size"],
)
def test_what_frames_a_body_is_bounded_by_what_the_body_has(
    hasty: Server, beginning: bytes
) -> None:
    """By the size that a body may have, it would be read for minutes and kept."""
    head = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    answer = answer_to(hasty, head + beginning + b"0" * 600_000)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"larger than the body" in answer


def test_headers_that_never_end_get_408(hasty: Server) -> None:
    assert answer_to(hasty, HEAD).startswith(b"HTTP/1.1 408 ")


def test_a_slow_loris_gets_408_however_often_it_sends(hasty: Server) -> None:
    with hasty.raw() as connection:
        connection.sendall(HEAD)
        stop = threading.Event()

        def drip() -> None:
            while not stop.wait(0.05):
                try:
                    connection.sendall(b"A: b\r\n")
                except OSError:
                    return

        dripping = threading.Thread(target=drip)
        dripping.start()
        found = connection.recv(65536)
        stop.set()
        dripping.join()
    assert found.startswith(b"HTTP/1.1 408 ")


def test_a_body_that_never_ends_gets_408(hasty: Server) -> None:
    assert answer_to(hasty, HEAD + b"Content-Length: 100\r\n\r\n{").startswith(b"HTTP/1.1 408 ")


def test_an_idle_connection_is_closed_without_a_word(hasty: Server) -> None:
    with hasty.raw() as connection:
        assert read_all(connection) == b""
    kept = hasty.connect()
    assert hasty.post(review(pod()), connection=kept).status == 200
    assert kept.sock is not None
    assert read_all(kept.sock) == b""
    kept.close()


def test_a_handshake_that_never_begins_is_ended(tmp_path: Path) -> None:
    policies = write_policies(tmp_path, REQUIRED_LABELS, constraint("needs-owner", "owner"))
    with Server(policies, "--handshake-timeout=300ms") as server:
        address = ("127.0.0.1", server.ready().ports["admission"])
        with socket.create_connection(address, PATIENCE_SECONDS) as plain:
            assert read_all(plain) == b""


def test_plain_http_is_not_answered(strict: Server) -> None:
    with socket.create_connection(("127.0.0.1", strict.ports["admission"]), 60) as plain:
        plain.sendall(HEAD + b"Content-Length: 2\r\n\r\n{}")
        assert b"HTTP/1.1 200" not in read_all(plain)


def test_connections_beyond_the_limit_are_closed_and_the_others_served(tmp_path: Path) -> None:
    policies = write_policies(tmp_path, REQUIRED_LABELS, constraint("needs-owner", "owner"))
    with Server(policies, "--max-connections=2", "--evaluation-budget=1m") as server:
        server.ready()
        first, second = server.connect(), server.connect()
        assert server.post(review(pod()), connection=first).status == 200
        assert server.post(review(pod()), connection=second).status == 200
        address = ("127.0.0.1", server.ports["admission"])
        with socket.create_connection(address, 60) as third:
            assert read_all(third) == b""
        assert server.post(review(pod()), connection=first).status == 200
        first.close()
        await_true(lambda: server.metric("waddle_connections") == 1)
        assert server.post(review(pod())).status == 200
        second.close()


@pytest.mark.parametrize(("port", "path"), [("health", "/readyz"), ("metrics", "/metrics")])
def test_who_holds_connections_open_keeps_no_probe_from_its_answer(
    strict: Server, port: str, path: str
) -> None:
    """A kubelet that gets none starts the replica anew."""
    with ExitStack() as stack:
        for _ in range(150):
            held = socket.create_connection(("127.0.0.1", strict.ports[port]), PATIENCE_SECONDS)
            stack.enter_context(held)
            held.sendall(b"GET /he")
        for _ in range(3):
            assert strict.get(port, path).status == 200


def test_requests_beyond_those_in_flight_are_refused_at_once_with_429(strict: Server) -> None:
    """While a review holds the thread others arrive; when it ends there is room for one."""
    overload = 'waddle_requests_refused_total{reason="overload"}'
    before = strict.metric(overload) or 0
    connections = [strict.raw() for _ in range(8)]
    slow = json.dumps(review(thing("ConfigMap"))).encode()
    length = b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(slow)
    for connection in connections:
        connection.sendall(HEAD.replace(b"/admit", b"/admit?timeout=1s") + length + slow)
    codes = [read_all(connection).split(b" ")[1] for connection in connections]
    for connection in connections:
        connection.close()
    assert set(codes) == {b"200", b"429"}  # the first are refused: what is slow is theirs
    assert strict.metric(overload) == before + codes.count(b"429")
    answer = strict.post(review(pod()))
    assert answer.status == 200


def test_bytes_that_wait_are_bounded_together(tmp_path: Path) -> None:
    policies = write_policies(tmp_path, REQUIRED_LABELS, constraint("needs-owner", "owner"))
    with Server(policies, "--max-waiting-bytes=100000", "--evaluation-budget=1m") as server:
        server.ready()
        unfinished = HEAD + b"Content-Length: 60000\r\n\r\n" + b" " * 50_000
        with server.raw() as first, server.raw() as second:
            first.sendall(unfinished)
            await_true(lambda: (server.metric("waddle_waiting_bytes") or 0) >= 50_000)
            second.sendall(HEAD + b"Content-Length: 70000\r\n\r\n" + b" " * 60_000)
            found = read_all(second)
        assert found.startswith(b"HTTP/1.1 429 ")
        assert b"retry-after: 1" in found
        await_true(lambda: server.metric("waddle_waiting_bytes") == 0)


def test_handshakes_that_never_begin_are_bounded_and_reported(tmp_path: Path) -> None:
    """5,000 connections that said nothing held 5,000 descriptors and 330 MiB."""
    policies = write_policies(tmp_path, REQUIRED_LABELS, constraint("needs-owner", "owner"))
    with Server(policies, "--handshake-timeout=60s") as server, ExitStack() as stack:
        server.ready()
        address = ("127.0.0.1", server.ports["admission"])
        for _ in range(600):
            stack.enter_context(socket.create_connection(address, 60))
        given_up = 'waddle_handshakes_failed_total{reason="too_many_connections"}'
        await_true(lambda: (server.metric(given_up) or 0) >= 600 - HANDSHAKES_MAX)
        held = Path(f"/proc/{server.process.pid}/fd")
        # Abandoned connections are closed a moment later.
        await_true(lambda: len(list(held.iterdir())) < HANDSHAKES_MAX + 50)
        assert server.metric("waddle_handshakes") == HANDSHAKES_MAX
        assert server.post(review(pod())).status == 200
        server.wait_for("a TLS handshake failed")
        events = [event for event in server.events if event["msg"] == "a TLS handshake failed"]
        assert len(events) < 10


def test_handshakes_count_as_connections(tmp_path: Path) -> None:
    policies = write_policies(tmp_path, REQUIRED_LABELS, constraint("needs-owner", "owner"))
    with (
        Server(policies, "--max-connections=5", "--handshake-timeout=60s") as server,
        ExitStack() as stack,
    ):
        server.ready()
        address = ("127.0.0.1", server.ports["admission"])
        silent = [stack.enter_context(socket.create_connection(address, 60)) for _ in range(20)]
        await_true(lambda: server.metric("waddle_handshakes") == 5)
        assert [read_all(one) for one in silent[:15]] == [b""] * 15
        assert server.post(review(pod())).status == 200
        silent[-1].sendall(b"this is no TLS at all")
        failed = 'waddle_handshakes_failed_total{reason="error"}'
        await_true(lambda: server.metric(failed) == 1)
