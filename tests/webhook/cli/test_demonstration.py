"""A torn connection ends by itself and does not end the demonstration."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvloop

from tests.patience import turns_until
from webhook.cli.demo.balancer import carry

RESET_AT_CLOSE = struct.pack("ii", 1, 0)


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def new_loop(request):
    return request.param


@asynccontextmanager
async def reset_by_its_peer() -> AsyncIterator[asyncio.StreamWriter]:
    """A connection whose reset is there; the loop hears of it in its next turn."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        _, writer = await asyncio.open_connection(*server.getsockname())
        peer, _ = server.accept()
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
        peer.close()
        yield writer
        writer.transport.abort()


def stream_of(data: bytes) -> asyncio.StreamReader:
    """Returns a stream with a replica's answer, up to the connection's end."""
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    return reader


def test_an_end_is_carried_to_a_connection_that_has_just_been_reset(new_loop):
    async def run() -> None:
        async with reset_by_its_peer() as writer:
            await carry(stream_of(b""), writer)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run())


@pytest.mark.parametrize("answer", [b"", b"an answer"], ids=["its end", "an answer"])
def test_what_comes_late_is_carried_to_a_connection_that_is_closed(new_loop, answer):
    async def run() -> None:
        async with reset_by_its_peer() as writer:
            await turns_until(writer.transport.is_closing)
            for _ in range(10):
                await asyncio.sleep(0)  # and now its descriptor is closed, too
            await carry(stream_of(answer), writer)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run())
