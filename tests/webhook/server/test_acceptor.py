"""Connections as they are accepted, where the system or a limit has no room for them."""

import asyncio
import contextlib
import datetime as dt
import gc
import json
import math
import resource
import socket
import ssl
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pytest
from starlette.applications import Starlette

from tests.patience import PATIENCE_SECONDS, turns_until
from tests.webhook.server.limits import ADMISSION_LIMITS
from webhook.certificates.pairs import self_signed
from webhook.cluster import event_loop
from webhook.log import Log
from webhook.metrics.registry import Registry
from webhook.metrics.server import CLOSED, HANDSHAKES_FAILED
from webhook.server.http.acceptor import Acceptor
from webhook.server.http.connection import Connection
from webhook.server.http.fair_queue import Flow, Occupant
from webhook.server.http.head import UNKNOWN
from webhook.server.http.hub import Hub, Share
from webhook.server.http.limits import ConnectionLimits
from webhook.server.http.listener import Listener
from webhook.server.responsibility import NOTHING_KNOWN

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


class Run(Protocol):
    """Runs a coroutine in an event loop of its own."""

    def __call__(self, main: Coroutine[Any, Any, None], /) -> None: ...


class Port:
    """A listener on a port of its own, with an application that knows no path."""

    def __init__(
        self, limits: ConnectionLimits | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self.lines: list[bytes] = []
        self.registry = Registry()
        log = Log(self.lines.append).logger("test")
        self.hub = Hub(limits or ADMISSION_LIMITS, self.registry, log)
        self.bound = socket.create_server(("127.0.0.1", 0))
        self.bound.setblocking(False)
        self.listener = Listener(self.hub, Starlette(), self.bound, tls=tls)

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Listen meanwhile."""
        async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
            group.create_task(self.listener.serve())
            await self.listener.listening.wait()
            yield
            self.listener.stop()

    def connect(self) -> socket.socket:
        """A connection that is made by the kernel, and accepted when the loop has its turn."""
        connection = socket.create_connection(self.bound.getsockname(), PATIENCE_SECONDS)
        connection.setblocking(False)
        return connection


@contextlib.contextmanager
def no_descriptors() -> Iterator[None]:
    """Lets every request for a descriptor fail."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def event(port: Port) -> dict[str, Any]:
    """Returns the only line of a port's log."""
    (line,) = port.lines
    return dict(json.loads(line))


async def read_all(connection: socket.socket) -> bytes:
    """Returns all bytes until the other side closes."""
    loop, found = asyncio.get_running_loop(), b""
    while part := await loop.sock_recv(connection, 65536):
        found += part
    return found


def test_who_comes_while_the_system_has_no_descriptors_is_served_once_it_has() -> None:
    async def run() -> None:
        port = Port()
        async with port.open():
            with port.connect() as connection:
                connection.send(REQUEST)
                with no_descriptors():
                    await turns_until(lambda: port.lines)
                assert (await read_all(connection)).startswith(b"HTTP/1.1 404 ")
        (line,) = port.lines
        assert b"connections cannot be accepted; trying again" in line

    asyncio.run(run())


def test_a_listener_that_is_stopped_meanwhile_accepts_nobody_later() -> None:
    faults: list[object] = []

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, fault: faults.append(fault))
        port = Port()
        async with port.open():
            with port.connect(), no_descriptors():
                await turns_until(lambda: port.lines)
        assert port.hub.connections == set()

    asyncio.run(run())
    assert faults == []


def test_where_there_are_too_many_connections_the_newest_is_closed() -> None:
    async def run() -> None:
        port = Port(replace(ADMISSION_LIMITS, connections_max=1))
        async with port.open():
            with port.connect() as first:
                await turns_until(lambda: port.hub.connections)
                with port.connect() as second:
                    assert await read_all(second) == b""
                first.send(REQUEST)
                assert (await read_all(first)).startswith(b"HTTP/1.1 404 ")
        assert port.registry.counters[CLOSED] == {("too_many_connections",): 1}

    asyncio.run(run())


def test_for_probes_the_one_that_says_nothing_gives_way() -> None:
    async def run() -> None:
        port = Port(replace(ADMISSION_LIMITS, connections_max=1, newest_first=True))
        async with port.open():
            with port.connect() as silent:
                await turns_until(lambda: port.hub.connections)
                with port.connect() as asking:
                    asking.send(REQUEST)
                    assert (await read_all(asking)).startswith(b"HTTP/1.1 404 ")
                with contextlib.suppress(ConnectionResetError):
                    assert await read_all(silent) == b""

    asyncio.run(run())


class Member:
    """A connection as the hub sees it."""

    def __init__(self, client: str, deadline: float) -> None:
        self.client, self.deadline, self.share = client, deadline, Share()
        self.given_up = False
        self.occupant = Occupant("", 0)
        self.opening = UNKNOWN

    def expire(self) -> None:
        raise AssertionError

    shutdown = expire

    def abort(self, reason: str) -> None:
        assert self.deadline < float("inf"), "a request is under way"
        assert reason == "too_many_connections"
        self.given_up = True


def hub_of(*members: Member, **bounds: Any) -> Hub:
    """A hub that these have joined."""
    limits = replace(ADMISSION_LIMITS, connections_max=len(members) or 1, **bounds)
    hub = Hub(limits, Registry(), Log(list[bytes]().append).logger("x"))
    for member in members:
        assert hub.joined(member, -1)
    return hub


def test_for_probes_nobody_gives_way_who_is_being_answered() -> None:
    """There is no deadline on a client whose request is under way."""
    assert not hub_of(newest_first=True).makes_room("a")
    hub = hub_of(Member("a", float("inf")), newest_first=True)
    assert not hub.makes_room("a")
    assert len(hub.connections) == 1


def test_who_has_the_most_connections_gives_way_to_another_and_not_to_itself() -> None:
    members = [Member("crowd", 3), Member("crowd", 1), Member("crowd", 2), Member("few", 0)]
    hub = hub_of(*members)
    assert not hub.makes_room("crowd")
    assert hub.makes_room("new")
    assert [member.given_up for member in members] == [False, True, False, False]
    assert not hub.makes_room("few"), "nobody has more than it would have"
    assert len(hub.connections) == 3


def test_a_client_of_as_many_as_it_may_have_gives_up_one_of_its_own() -> None:
    members = [Member("a", 2), Member("a", 1), Member("b", 0)]
    hub = hub_of(*members, connections_per_client_max=2, newest_first=True)
    assert hub.is_full_for("a")
    assert not hub.is_full_for("b")
    assert hub.makes_room("a")
    assert [member.given_up for member in members] == [False, True, False]
    assert not hub.is_full_for("a")


def test_who_has_all_requests_under_way_leaves_some_to_others() -> None:
    hub = hub_of(Member("a", 1), Member("b", 1), in_flight_max=4)
    crowd, other = (member.share for member in sorted(hub.connections, key=lambda m: m.client))

    class Request:
        """A request that is never run: no loop goes on here."""

        before = NOTHING_KNOWN
        flow = Flow("a", "")
        size = 0
        run_until = math.inf

        def run(self) -> None:
            raise AssertionError

        give_up = abandon = run

    hub._scheduled = True
    taken = [hub.submit(Request(), crowd) for _ in range(5)]
    assert taken == [True] * 4 + [False]
    assert hub.submit(Request(), other)
    assert not hub.submit(Request(), other), "a quarter more is all there is"


class Answered:
    """A request that notes its answer."""

    before = NOTHING_KNOWN
    flow = Flow("a", "")
    size = 0
    run_until = math.inf

    def __init__(self, answered: list[object]) -> None:
        self._answered = answered

    def run(self) -> None:
        self._answered.append(self)

    give_up = abandon = run


def test_one_handshake_begins_in_a_turn_of_the_loop_and_requests_are_answered_in_each() -> None:
    """Of a hundred clients that spoke at once all handshakes were one turn, of 100 ms."""

    async def run() -> None:
        hub, answered = hub_of(Member("a", 1)), list[object]()
        (member,) = hub.connections
        turns = [hub.greeting() for _ in range(4)]
        turns[1].cancel()  # Its client is gone.
        for number, done in enumerate(([0], [0, 2], [0, 2, 3])):
            assert hub.submit(Answered(answered), member.share)
            await asyncio.sleep(0)
            begun = [place for place, turn in enumerate(turns) if turn.done() and place != 1]
            assert begun == done
            assert len(answered) == number + 1

    asyncio.run(run())


def test_requests_that_are_answered_as_they_arrive_have_a_slice_of_each_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def run() -> None:
        hub, answered = hub_of(Member("a", 1)), list[object]()
        (member,) = hub.connections
        monkeypatch.setattr(hub.queue, "answer_ahead", lambda request: request.run() or 0.0006)

        def arrive() -> None:
            request = Answered(answered)
            assert hub.submit(request, member.share)
            hub.answer_ahead(request)

        arrive()
        assert answered == [], "no request has taken long"
        hub.queue.is_shared = True
        for _ in range(4):
            arrive()
        assert len(answered) == 2
        await asyncio.sleep(0)
        answered.clear()
        hub.queue.is_shared = True
        arrive()
        assert len(answered) == 1

    asyncio.run(run())


def test_a_client_that_never_says_hello_is_closed(tmp_path: Path) -> None:
    async def run() -> None:
        limits = replace(ADMISSION_LIMITS, handshake_timeout_seconds=0.05)
        port = Port(limits, serving_context(tmp_path))
        async with port.open():
            with port.connect() as silent:
                assert await read_all(silent) == b""
        assert not port.hub.handshakes
        assert port.registry.counters[HANDSHAKES_FAILED] == {("timeout",): 1}
        assert event(port)["error"] == "the client said nothing in time"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (b"", "the client closed the connection before it was ready"),
        (b"\x16\x03\x01", "the client closed the connection before it was ready"),
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP_REQUEST"),
    ],
)
def test_the_log_says_whose_handshake_failed_and_why(
    tmp_path: Path, sent: bytes, error: str
) -> None:
    """A balancer that only opens connections, a client that speaks no TLS."""

    async def run() -> None:
        port = Port(tls=serving_context(tmp_path))
        async with port.open():
            with port.connect() as client:
                client.send(sent)
            await turns_until(lambda: port.lines)
        assert error in event(port)["error"]
        assert event(port)["client"] == "127.0.0.1"

    asyncio.run(run())


@pytest.mark.parametrize("run_in", [asyncio.run, event_loop.run], ids=["asyncio", "uvloop"])
def test_a_hello_that_arrived_while_the_process_stood_still_is_read(run_in: Run) -> None:
    """The time for it is over then, before anything is read."""

    async def run() -> None:
        hub = hub_of(handshake_timeout_seconds=0.05)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            acceptor = Acceptor(hub, listening, asyncio.Protocol, None)
            ours, client = socket.socketpair()
            ours.setblocking(False)
            with ours, client:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(acceptor._await_hello(ours))
                    await asyncio.sleep(0)
                    client.send(b"hello")
                    time.sleep(0.1)  # noqa: ASYNC251  # the process stands still
                assert ours.recv(5) == b"hello"

    run_in(run())


def test_who_has_most_of_the_bytes_that_wait_leaves_some_to_others() -> None:
    alone = hub_of(Member("a", 1), waiting_bytes_max=100)
    (member,) = alone.connections
    alone.waiting_bytes = member.share.bytes = 100
    assert not alone.is_overfull(member.share)
    hub = hub_of(Member("a", 1), Member("b", 1), waiting_bytes_max=100)
    crowd, other = (member.share for member in sorted(hub.connections, key=lambda m: m.client))
    hub.waiting_bytes = crowd.bytes = 76
    assert hub.is_overfull(crowd)
    assert not hub.is_overfull(other)


def serving_context(folder: Path) -> ssl.SSLContext:
    """Returns a server's context with a certificate of its own."""
    pair = self_signed(["localhost"], dt.datetime.now(dt.UTC))
    (folder / "pair.pem").write_bytes(pair.certificate + pair.key)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "pair.pem")
    return tls


def open_connections() -> int:
    return sum(type(one) is Connection for one in gc.get_objects())


@pytest.mark.parametrize("run_in", [asyncio.run, event_loop.run], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize(
    "last",
    [b"", REQUEST, REQUEST[:20], b"?\r\n\r\n"],
    ids=["silent", "answered", "cut", "malformed"],
)
def test_a_connection_that_has_ended_needs_no_collection_of_garbage(
    run_in: Run, last: bytes, tmp_path: Path
) -> None:
    tls = serving_context(tmp_path)
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE

    async def run() -> None:
        port = Port(tls=tls)
        async with port.open():
            for _ in range(3):
                reader, writer = await asyncio.open_connection(
                    *port.bound.getsockname(), ssl=trusting
                )
                await turns_until(lambda: port.hub.connections)
                writer.write(last)
                if last in {REQUEST, b"?\r\n\r\n"}:
                    assert (await reader.read()).startswith(b"HTTP/1.1 40")
                writer.transport.abort()
                await turns_until(lambda: not port.hub.connections)
            await turns_until(lambda: open_connections() <= before)

    gc.collect()
    before = open_connections()
    gc.disable()
    try:
        run_in(run())
    finally:
        gc.enable()
