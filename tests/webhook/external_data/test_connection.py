"""A connection's answers, as bytes arrive: in parts, and beside another one's."""

import asyncio
import contextlib
import random
import socket
import ssl
import struct
from collections.abc import Sequence
from typing import Any, cast

import pytest

from tests.patience import PATIENCE_SECONDS
from webhook.cluster.event_loop import run
from webhook.external_data.connection import (
    FRAMING_BYTES_MAX,
    AnswerTooLong,
    MalformedAnswer,
    ProviderConnection,
    TlsEnds,
    WholeAnswer,
    read_buffer,
)

FIRST, SECOND = b'{"response": {"first": 1}}', b'{"response": {"second": 2}}'


class Plain:
    """Stands for TLS, and hides nothing."""

    def __init__(self) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()

    def write(self, data: bytes) -> int:
        return self.outgoing.write(data)

    def read(self, size: int) -> bytes:
        data = self.incoming.read(size)
        if data or self.incoming.eof:
            return data
        raise ssl.SSLWantReadError

    def pending(self) -> int:
        return 0


class Peer:
    """A connection, and its other end."""

    def __init__(self, buffer: memoryview) -> None:
        near, self.far = socket.socketpair()
        near.setblocking(False)
        self.far.setblocking(False)
        plain = Plain()
        ends = TlsEnds(cast("Any", plain), plain.incoming, plain.outgoing)
        self.connection = ProviderConnection(near, ends, buffer)

    def post(self, request: bytes = b"?") -> asyncio.Future[WholeAnswer | Exception]:
        """Returns the future answer or error of a request."""
        future = asyncio.get_running_loop().create_future()
        self.connection.post(request, future.set_result)
        return future

    async def send(self, data: bytes) -> None:
        """Have these bytes arrive."""
        await asyncio.get_running_loop().sock_sendall(self.far, data)

    async def received(self, count: int) -> bytes:
        """Returns so many of the sent bytes."""
        data = b""
        while len(data) < count:
            data += await asyncio.get_running_loop().sock_recv(self.far, 65536)
        return data

    def close(self) -> None:
        self.connection.close()
        self.far.close()


def answer(body: bytes) -> bytes:
    """Returns a provider's response with this body."""
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


@pytest.mark.parametrize("cut", [1, 20, 45, 60])
def test_connections_that_read_to_one_buffer_keep_their_answers_apart(cut: int) -> None:
    async def main() -> list[WholeAnswer | Exception]:
        buffer = read_buffer()
        one, other = Peer(buffer), Peer(buffer)
        waits = one.post(), other.post()
        await one.send(answer(FIRST)[:cut])
        await other.send(answer(SECOND)[:cut])
        await one.send(answer(FIRST)[cut:])
        await other.send(answer(SECOND)[cut:])
        found = [await wait for wait in waits]
        one.close()
        other.close()
        return found

    assert asyncio.run(main()) == [WholeAnswer(200, FIRST, False), WholeAnswer(200, SECOND, False)]


def test_an_answer_is_larger_than_what_is_read_at_once() -> None:
    body = bytes(range(256)) * 1024

    async def main() -> WholeAnswer | Exception:
        peer = Peer(read_buffer())
        wait = peer.post()
        await peer.send(answer(body))
        found = await wait
        peer.close()
        return found

    assert asyncio.run(main()) == WholeAnswer(200, body, False)


def test_a_request_is_sent_at_once_and_one_that_the_system_does_not_take_whole_goes_on() -> None:
    large = bytes(range(256)) * 64 * 1024

    async def main() -> None:
        peer = Peer(read_buffer())
        wait = peer.post(b"small")
        assert peer.far.recv(100) == b"small"
        await peer.send(answer(FIRST))
        await wait
        wait = peer.post(large)
        assert await peer.received(len(large)) == large
        await peer.send(answer(SECOND))
        assert await wait == WholeAnswer(200, SECOND, False)
        peer.close()

    asyncio.run(main())


def test_a_second_answer_to_one_request_is_nobodys() -> None:
    async def main() -> None:
        peer = Peer(read_buffer())
        wait = peer.post()
        await peer.send(answer(FIRST) + answer(SECOND))
        assert await wait == WholeAnswer(200, FIRST, False)
        assert not peer.connection.is_open
        peer.close()

    asyncio.run(main())


def test_whoever_gets_an_answer_may_post_again_at_once() -> None:
    """It gets the answer when all that arrived with it is read, so that none of it is the next's."""

    async def main() -> None:
        peer = Peer(read_buffer())
        loop = asyncio.get_running_loop()
        second: asyncio.Future[WholeAnswer | Exception] = loop.create_future()

        def post_again(first: WholeAnswer | Exception) -> None:
            assert first == WholeAnswer(200, FIRST, False)
            peer.connection.post(b"?", second.set_result)

        peer.connection.post(b"?", post_again)
        assert await peer.received(1) == b"?"
        await peer.send(answer(FIRST))
        assert await peer.received(1) == b"?"
        await peer.send(answer(SECOND))
        assert await second == WholeAnswer(200, SECOND, False)

        closed: asyncio.Future[bool] = loop.create_future()
        peer.connection.post(b"?", lambda _: closed.set_result(not peer.connection.is_open))
        await peer.send(answer(FIRST) + answer(SECOND))
        assert await closed
        peer.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n{}", WholeAnswer(200, b"{}", False)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", EOFError),
        (b"HTTP/1.1 200", EOFError),
        (b"", EOFError),
    ],
)
def test_a_connection_that_ends_is_an_answer_only_where_no_length_was_said(sent, found) -> None:
    async def main() -> None:
        peer = Peer(read_buffer())
        wait = peer.post()
        await peer.received(1)
        await peer.send(sent)
        peer.far.close()
        outcome = await wait
        assert outcome == found or type(outcome) is found
        assert not peer.connection.is_open

    asyncio.run(main())


@pytest.mark.parametrize("sent", [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", b"H"])
def test_a_connection_that_is_reset_behind_a_part_of_an_answer_ends_at_once(sent) -> None:
    """On the loop that answers admissions: it tells of data and of the reset together, once."""

    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            near = socket.create_connection(server.getsockname())
            far, _ = server.accept()
        near.setblocking(False)
        plain = Plain()
        ends = TlsEnds(cast("Any", plain), plain.incoming, plain.outgoing)
        connection = ProviderConnection(near, ends, read_buffer())
        wait = asyncio.get_running_loop().create_future()
        connection.post(b"?", wait.set_result)
        far.sendall(sent)
        far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        far.close()
        outcome = await asyncio.wait_for(wait, PATIENCE_SECONDS)
        assert isinstance(outcome, ConnectionResetError)
        assert not connection.is_open

    run(main())


@pytest.mark.parametrize("status", [b"000", b"099"])
def test_a_status_below_all_is_one_of_an_answer(status) -> None:
    async def main() -> None:
        peer = Peer(read_buffer())
        wait = peer.post()
        await peer.received(1)
        await peer.send(answer(FIRST).replace(b" 200 ", b" %s " % status))
        assert await wait == WholeAnswer(int(status), FIRST, False)
        peer.close()

    asyncio.run(main())


def test_a_provider_that_switches_protocols_has_answered_nothing_that_can_be_read() -> None:
    async def main() -> None:
        peer = Peer(read_buffer())
        wait = peer.post()
        await peer.received(1)
        await peer.send(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\nmore"
        )
        assert type(await wait) is MalformedAnswer
        assert not peer.connection.is_open
        peer.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("begin", "repeated"),
    [
        (b"HTTP/1.1 200 OK\r\nX-Long: ", b"x" * 1024),
        (b"HTTP/1.1 200 OK\r\n", b"X-Many: x\r\n" * 64),
        (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 32),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 128),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X-End: x\r\n" * 64),
    ],
    ids=["a header", "headers", "informational answers", "small chunks", "trailers"],
)
def test_an_answer_whose_head_or_framing_never_ends_is_too_long(begin, repeated) -> None:
    async def main() -> None:
        peer = Peer(read_buffer())
        wait = peer.post()
        await peer.received(1)
        await peer.send(begin)
        for _ in range(2 * FRAMING_BYTES_MAX // len(repeated)):
            if wait.done():
                break
            with contextlib.suppress(ConnectionError):
                await peer.send(repeated)
        assert wait.done()
        assert type(await wait) is AnswerTooLong
        assert not peer.connection.is_open
        peer.close()

    asyncio.run(main())


HEADS = (
    "HTTP/1.1 200 OK\r\nContent-Length: {0}\r\n\r\n",
    "HTTP/1.1 200 OK\r\nDate: today\r\nContent-Length: {0}\r\n\r\n",
    "HTTP/1.1 404 Not Found\r\nContent-Length: {0}\r\n\r\n",
    "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: {0}\r\n\r\n",
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {0}\r\n\r\n",
    "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: {0}\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{0:x}\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: +{0}\r\n\r\n",
    "HTTP/1.1 204 No Content\r\n\r\n",
)
TAILS = {"chunked": b"\r\n0\r\n\r\n", "204": b""}
BODIES = (
    FIRST,
    FIRST[::-1],
    SECOND,
    b"",
    b"\r\n\r\n",
    b"\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n\r\n",
)


def drawn(draw: random.Random, heads: Sequence[str]) -> bytes:
    """Returns an answer, now and then with bytes behind it or without its last ones."""
    head, body = draw.choice(heads), draw.choice(BODIES)
    whole = head.format(len(body)).encode()
    if "204" not in head:
        whole += body + (TAILS["chunked"] if "chunked" in head else b"")
    return draw.choice((whole, whole, whole, whole, whole + b"HTTP/1.1 200 OK\r\n", whole[:-1]))


async def read(peer: Peer, data: bytes) -> object:
    """Returns what a connection makes of these bytes, and whether it can be used again."""
    wait = peer.post()
    await peer.send(data)
    for _ in range(3):  # turns of the loop
        await asyncio.sleep(0)
    found = wait.result() if wait.done() else None
    return repr(found), peer.connection.is_open


@pytest.mark.parametrize("seed", range(20))
def test_earlier_answers_change_nothing_about_how_one_is_read(seed: int) -> None:
    draw = random.Random(seed)
    heads = draw.sample(HEADS, 3)

    async def main() -> None:
        used, repeated = Peer(read_buffer()), 0
        for _ in range(200):
            data, fresh = drawn(draw, heads), Peer(read_buffer())
            if not (used.connection.is_open and repeated):
                used.close()
                used = Peer(read_buffer())
            found = await read(used, data)
            assert found == await read(fresh, data), data
            repeated = found[1] and found[0] != "None"
            fresh.close()
        used.close()

    asyncio.run(main())
