"""The protocol class, given bytes in any pieces."""

import asyncio
import itertools
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.api.admission import AdmissionRequest, AdmissionResponse
from webhook.log import Log
from webhook.metrics.registry import Registry
from webhook.server.application import make_application
from webhook.server.connection import Connection
from webhook.server.decoding import Decoding
from webhook.server.hub import Hub
from webhook.server.limits import ConnectionLimits
from webhook.server.namespace_label import Exemptions

LIMITS = ConnectionLimits(header_bytes_max=1024, body_bytes_max=2048, waiting_bytes_max=4096)


class Transport(asyncio.Transport):
    """A transport whose other end is a list."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 1), "sockname": ("192.0.2.2", 2)})
        self.sent = b""
        self.closed = False

    def write(self, data: Any) -> None:
        self.sent += bytes(data)

    def close(self) -> None:
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        """The test decides when to send."""

    def resume_reading(self) -> None:
        """The test decides when to send."""


class Config:
    """What uvicorn's configuration is asked for."""

    def __init__(self, application: Any) -> None:
        self.loaded_app = application


def allow(request: AdmissionRequest, query: bytes, received_at: float) -> AdmissionResponse:
    """Answer with the request's uid."""
    return AdmissionResponse(request.uid, allowed=True)


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
            while hub.waiting:  # noqa: ASYNC110  # a slice of time had ended; a queue has no event
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


class PausedTransport(Transport):
    """Says whether it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.resumed = asyncio.Event()
        self.resumed.set()

    @property
    def paused(self) -> bool:
        return not self.resumed.is_set()

    def pause_reading(self) -> None:
        self.resumed.clear()

    def resume_reading(self) -> None:
        self.resumed.set()


def large_head(size: int) -> bytes:
    """The beginning of a request with a body of this size."""
    return b"POST /v1/admit HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size


def test_of_several_large_bodies_one_is_read_at_a_time_and_small_requests_in_between() -> None:
    lines: list[bytes] = []
    log = Log(lines.append).logger("test")
    size = 1024 * 1024
    hub = Hub(ConnectionLimits(body_bytes_max=2 * size), Registry(), log)
    application = make_application(
        allow, Exemptions(), Registry(), log, decoding=Decoding(body_max=2 * size)
    )
    hub.at_once = application.at_once

    def connect() -> tuple[Connection, PausedTransport]:
        connection, transport = Connection(hub, Config(application)), PausedTransport()  # type: ignore[arg-type]
        connection.connection_made(transport)
        return connection, transport

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
    assert (hub.in_flight, hub.waiting_bytes, hub.connections) == (0, 0, set())
