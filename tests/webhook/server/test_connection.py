"""The protocol class, given bytes in any pieces."""

import asyncio
import itertools
import json
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.patience import turns_until
from tests.webhook.server.limits import ADMISSION_LIMITS
from tests.webhook.server.paused import Config, Port, Transport, allow
from webhook.api.admission import AdmissionRequest
from webhook.log import Log
from webhook.metrics.registry import Registry
from webhook.server.application import make_application
from webhook.server.decoding import Decoding
from webhook.server.http.connection import Connection
from webhook.server.http.head import UNKNOWN, Opening
from webhook.server.http.hub import Hub
from webhook.server.namespace_label import Exemptions
from webhook.server.outcome import Pending

LIMITS = replace(
    ADMISSION_LIMITS, header_bytes_max=1024, body_bytes_max=2048, waiting_bytes_max=4096
)


def converse(*pieces: bytes) -> tuple[bytes, Hub, list[bytes]]:
    """Feed pieces to a connection until it closes: what it sent, and what it left behind."""
    lines: list[bytes] = []
    log = Log(lines.append).logger("test")
    hub = Hub(LIMITS, Registry(), log)
    application = make_application(
        allow, Exemptions(), Registry(), log, decoding=Decoding(body_max=2048)
    )
    hub.at_once = application.at_once

    async def run() -> bytes:
        connection = Connection(hub, Config(application))  # type: ignore[arg-type]
        transport = Transport()
        connection.connection_made(transport)
        for piece in pieces:
            connection.receive(piece)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            while hub.queue:  # noqa: ASYNC110  # a slice of time had ended; a queue has no event
                await asyncio.sleep(0)
        connection.connection_lost(None)
        return transport.sent

    return asyncio.run(run()), hub, lines


def review(uid: str) -> bytes:
    """A request with a body."""
    body = json.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": uid}}
    ).encode()
    head = "POST /v1/admit?timeout=1s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def without_dates(sent: bytes) -> bytes:
    """A response without the line that differs from second to second."""
    return b"\r\n".join(line for line in sent.split(b"\r\n") if not line.startswith(b"date: "))


THREE = review("one") + review("two") + review("three")


@given(st.lists(st.integers(0, len(THREE)), max_size=8))
def test_how_the_bytes_are_cut_changes_nothing(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(THREE)]
    pieces = [THREE[a:b] for a, b in itertools.pairwise(edges) if a != b]
    sent, hub, _ = converse(*pieces)
    assert without_dates(sent) == without_dates(converse(THREE)[0])
    assert sent.count(b'"allowed":true') == 3
    assert sent.index(b'"one"') < sent.index(b'"two"') < sent.index(b'"three"')
    assert (hub.in_flight, hub.waiting_bytes, hub.connections) == (0, 0, set())


@settings(max_examples=300)
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=200),
            st.sampled_from(
                [
                    b"POST ",
                    b"/v1/admit",
                    b" HTTP/1.1\r\n",
                    b"Host: x\r\n",
                    b"\r\n",
                    b"Content-Length: 5\r\n",
                    b"Transfer-Encoding: chunked\r\n",
                    b"5\r\nhello\r\n",
                    b"0\r\n\r\n",
                    b"Expect: 100-continue\r\n",
                    b"Connection: close\r\n",
                    b"X: " + b"y" * 600 + b"\r\n",
                    b"z" * 1500,
                    review("u"),
                ]
            ),
        ),
        max_size=12,
    )
)
def test_no_bytes_make_a_bug_or_leave_anything_behind(pieces: list[bytes]) -> None:
    sent, hub, lines = converse(*pieces)
    assert lines == []
    assert (hub.in_flight, hub.waiting_bytes, hub.connections) == (0, 0, set())
    assert b"HTTP/1.1 500" not in sent
    for status in sent.split(b"HTTP/1.1 ")[1:]:
        assert status[:3] in (
            b"100", b"200", b"400", b"404", b"405", b"413", b"415", b"429", b"431", b"501"
        )  # fmt: skip


def test_an_absolute_target_is_understood() -> None:
    request = review("u").replace(b" /v1/admit", b" https://waddle.svc:443/v1/admit")
    assert b'"allowed":true' in converse(request)[0]


def large_head(size: int) -> bytes:
    """The beginning of a request with a body of this size."""
    return b"POST /v1/admit HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size


def test_of_several_large_bodies_one_is_read_at_a_time_and_small_requests_in_between() -> None:
    port = Port(bodies=2)
    size, connect = port.size, port.connect

    async def run() -> None:
        (first, its), (second, seconds), (small, smalls) = connect(), connect(), connect()
        first.receive(large_head(size) + b" " * 1000)
        assert not its.paused  # It is alone.
        second.receive(large_head(size) + b" " * 1000)
        first.receive(b" " * 1000)
        assert its.paused
        assert seconds.paused
        small.receive(review("small"))
        await asyncio.sleep(0)
        assert b'"small"' in smalls.sent
        await seconds.resumed.wait()
        assert its.paused  # Each in its turn, the second came first.
        second.receive(b" " * 1000)
        assert seconds.paused
        await its.resumed.wait()
        assert seconds.paused
        second.connection_lost(None)
        first.receive(b" " * 1000)
        assert not its.paused  # Alone again.
        first.connection_lost(None)
        small.connection_lost(None)

    asyncio.run(run())
    assert port.is_as_at_the_start()


def test_a_body_in_chunks_that_ends_as_it_gets_large_keeps_no_place_among_the_large_ones() -> None:
    """The connection got a place later, and while it was idle no large body was read."""
    port = Port()
    hub, size, connect = port.hub, port.size, port.connect

    async def run() -> None:
        (first, _), (chunked, its), (third, thirds) = connect(), connect(), connect()
        first.receive(large_head(size) + b" " * 1000)
        head = b"POST /v1/admit HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        for piece in (head + chunk, chunk, chunk, chunk[:-10]):
            chunked.receive(piece)
        assert not its.paused
        chunked.receive(chunk[-10:] + b"5\r\n     \r\n0\r\n\r\n")
        assert not its.paused  # It was there before there was a place: nothing is left to wait for.
        first.connection_lost(None)
        third.receive(large_head(size) + b" " * 1000)
        assert not thirds.paused
        assert hub.large.is_alone(size)
        chunked.connection_lost(None)
        third.connection_lost(None)

    asyncio.run(run())
    assert port.is_as_at_the_start()


def test_a_large_body_that_gets_no_place_in_time_is_answered_429() -> None:
    port = Port()

    async def run() -> None:
        (first, _), (second, seconds) = port.connect(), port.connect()
        first.receive(large_head(port.size) + b" " * 1000)
        second.receive(large_head(port.size) + b" " * 1000)
        assert not seconds.paused  # It is not known yet whose it is.
        second.receive(b" " * 4000)
        assert seconds.paused
        second.expire()  # The first has sent on meanwhile, and has all the time that it may.
        assert seconds.sent.startswith(b"HTTP/1.1 429 ")
        assert b"large requests are being reviewed: try again" in seconds.sent
        assert b"retry-after: 1" in seconds.sent
        assert not seconds.paused  # Its later bytes are dropped, so that it reads its answer.
        first.connection_lost(None)
        assert port.hub.large.is_alone(0)  # It waits for a place no more.
        second.connection_lost(None)

    asyncio.run(run())
    assert port.is_as_at_the_start()


def test_a_large_body_behind_a_request_that_is_not_answered_yet_ends_the_connection() -> None:
    """No place is taken for what would have to wait for its own connection."""
    finished: asyncio.Future[None]

    def wait(request: AdmissionRequest, query: bytes, received_at: float) -> Pending:
        return Pending(finished, lambda: allow(request, query, received_at), request.api_version)

    port = Port(decide=wait)

    async def run() -> None:
        nonlocal finished
        finished = asyncio.get_running_loop().create_future()
        connection, transport = port.connect()
        connection.receive(review("first"))
        connection.receive(large_head(port.size) + b" " * 1000)
        assert port.hub.large.is_alone(0)
        finished.set_result(None)
        await turns_until(lambda: b"400" in transport.sent)
        first, second = transport.sent.split(b"HTTP/1.1 ")[1:]
        assert b'"first"' in first
        assert second.startswith(b"400 ")
        assert b"a large body was sent without awaiting an answer" in second
        connection.connection_lost(None)

    asyncio.run(run())
    assert port.is_as_at_the_start()


def test_the_time_of_a_connections_first_request_counts_from_when_it_was_dialled_for_it() -> None:
    """Of many at once the last stood behind all handshakes, and was answered too late."""
    dialled = Opening(10.0, 10.5)
    assert dialled.since(10.6) == 10.0
    assert dialled.since(10.61) == 10.61  # its second request, as soon as a first may come
    assert dialled.since(11.0) == 11.0
    kept_ready = Opening(10.0, 10.01)
    assert kept_ready.since(12.0) == 12.0
    slow_loop = Opening(10.0, 11.0)
    assert slow_loop.since(11.9) == 10.0
    assert UNKNOWN.since(12.0) == 12.0
