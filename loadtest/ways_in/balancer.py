"""Kube-proxy's place between an API server and replicas: connections in turn, in a process of its own.

It also sees what no log says: for how long a replica had had a call that the API server gave up.
"""

import asyncio
import itertools
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Final, cast

import uvloop

ALERT_BYTES_MAX: Final = 64
"""A record of TLS that only ends a connection has 24 bytes; the end of a call has more."""

HANDSHAKE_REPLIES: Final = 2
"""A replica's records before the first call: its hello, and the tickets of the session."""


@dataclass(slots=True)
class GivenUp:
    """The calls that the API server ended without an answer."""

    unsent: int = 0
    """Connections that were made and ended without a call: its time was over before it could ask."""
    held_seconds: list[float] = field(default_factory=list)
    """For how long a replica had had nothing more to read of each call that had begun."""


class _Half(asyncio.Protocol):
    """A side of a connection, which writes what the other side reads."""

    def __init__(self, given_up: GivenUp, other: "_Half | None" = None) -> None:
        self.other = other
        self.is_client = other is None
        self.transport: asyncio.Transport | None = None
        self.early = b""
        self._given_up = given_up
        self.said_at = 0.0
        """When this side last said something that the other has not replied to; 0 for never."""
        self.replies = 0
        """The number of replies of the other side."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Sends the earlier bytes: the connection is open."""
        self.transport = cast("asyncio.Transport", transport)
        if self.early:
            self.transport.write(self.early)
            self.early = b""

    def data_received(self, data: bytes) -> None:
        """Hand on."""
        other = self.other
        assert other is not None
        if len(data) > ALERT_BYTES_MAX:
            self.said_at = time.monotonic()
        if other.said_at:
            other.said_at = 0.0
            other.replies += 1
        if other.transport is None:
            other.early += data
        elif not other.transport.is_closing():
            other.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's signature
        """The other side ends, too."""
        if self.is_client:
            self._note_end()
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()

    def _note_end(self) -> None:
        if self.replies < HANDSHAKE_REPLIES or (
            self.replies == HANDSHAKE_REPLIES and not self.said_at
        ):
            self._given_up.unsent += 1
        elif self.said_at:
            self._given_up.held_seconds.append(time.monotonic() - self.said_at)

    def pause_writing(self) -> None:
        """Read no more for a side that is not read."""
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        """Go on."""
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()


async def _serve(ports: Sequence[int], sender: Connection) -> None:
    given_up = GivenUp()
    loop = asyncio.get_running_loop()
    turn = itertools.cycle(ports)
    dialling: set[asyncio.Task[None]] = set()

    async def dial(client: _Half, replica: _Half) -> None:
        try:
            await loop.create_connection(lambda: replica, "127.0.0.1", next(turn))
        except OSError:
            if client.transport is not None:
                client.transport.abort()

    def accept() -> _Half:
        client = _Half(given_up)
        client.other = _Half(given_up, client)
        task = loop.create_task(dial(client, client.other))
        dialling.add(task)
        task.add_done_callback(dialling.discard)
        return client

    server = await loop.create_server(accept, "127.0.0.1", 0)
    sender.send(server.sockets[0].getsockname()[1])
    while True:
        await loop.run_in_executor(None, sender.poll, None)
        try:
            is_asked = sender.recv()
        except EOFError:
            return
        if not is_asked:
            return
        sender.send(given_up)


def _run(ports: Sequence[int], sender: Connection) -> None:
    uvloop.run(_serve(ports, sender))


@contextmanager
def balanced(ports: Sequence[int]) -> Iterator[tuple[int, Callable[[], GivenUp]]]:
    """The port at which these are asked in turn, and who says what the API server gave up."""
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_run, args=(ports, theirs), daemon=True)
    process.start()
    try:
        port = int(ours.recv())

        def given_up() -> GivenUp:
            ours.send(True)
            return cast("GivenUp", ours.recv())

        yield port, given_up
    finally:
        ours.send(False)
        process.join(10)
        process.kill()
