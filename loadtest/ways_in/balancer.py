"""Kube-proxy's place between an API server and replicas: connections in turn, in a process of its own."""

import asyncio
import itertools
import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import cast

import uvloop


class _Half(asyncio.Protocol):
    """One side of a connection, which writes what the other side reads."""

    def __init__(self, other: "_Half | None" = None) -> None:
        self.other = other
        self.transport: asyncio.Transport | None = None
        self.early = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is open: send what came before."""
        self.transport = cast("asyncio.Transport", transport)
        if self.early:
            self.transport.write(self.early)
            self.early = b""

    def data_received(self, data: bytes) -> None:
        """Hand on."""
        other = self.other
        if other is None or other.transport is None:
            assert other is not None
            other.early += data
        elif not other.transport.is_closing():
            other.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's signature
        """The other side ends, too."""
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()

    def pause_writing(self) -> None:
        """Read no more for a side that is not read."""
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        """Go on."""
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()


async def _serve(ports: Sequence[int], told: Connection) -> None:
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
        client = _Half()
        client.other = _Half(client)
        task = loop.create_task(dial(client, client.other))
        dialling.add(task)
        task.add_done_callback(dialling.discard)
        return client

    server = await loop.create_server(accept, "127.0.0.1", 0)
    told.send(server.sockets[0].getsockname()[1])
    await loop.run_in_executor(None, told.poll, None)  # until its parent has had enough, or is gone


def _run(ports: Sequence[int], told: Connection) -> None:
    uvloop.run(_serve(ports, told))


@contextmanager
def balanced(ports: Sequence[int]) -> Iterator[int]:
    """The port at which these are asked in turn."""
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_run, args=(ports, theirs), daemon=True)
    process.start()
    try:
        yield int(ours.recv())
    finally:
        ours.send(None)
        process.join(10)
        process.kill()
