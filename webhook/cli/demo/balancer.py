"""Replaces a Service: one port, whose connections go to ready replicas."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

_PROBE_SECONDS_MAX: Final = 5
_PAUSE_SECONDS: Final = 0.2
_READ_BYTES: Final = 1 << 16


class Balancer:
    """Passes each new connection to the next ready replica; skips lost ones."""

    def __init__(self, tasks: asyncio.TaskGroup, replicas: Sequence[Mapping[str, int]]) -> None:
        """``replicas`` have their ports ``admission`` and ``health`` of 127.0.0.1."""
        self._tasks = tasks
        self._replicas = replicas
        self._turn = 0
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def listen(self, host: str) -> int:
        """Listens; returns the port, which the system chooses."""
        self._server = await asyncio.start_server(self._accept, host, 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def close(self) -> None:
        """Stops accepting, and ends every connection."""
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = self._tasks.create_task(self._connect(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream = await self._next()
        if upstream is None:
            writer.transport.abort()
            return
        theirs, ours = upstream
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(carry(reader, ours))
                both.create_task(carry(theirs, writer))
        finally:
            ours.transport.abort()
            writer.transport.abort()

    async def _next(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        self._turn += 1
        for number in range(len(self._replicas)):
            ports = self._replicas[(self._turn + number) % len(self._replicas)]
            if await is_ready(ports["health"]):
                with suppress(OSError):
                    return await asyncio.open_connection("127.0.0.1", ports["admission"])
        return None


async def is_ready(port: int) -> bool:
    """Returns whether ``/readyz`` answers 200."""
    try:
        async with asyncio.timeout(_PROBE_SECONDS_MAX):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(b"GET /readyz HTTP/1.1\r\nHost: demo\r\nConnection: close\r\n\r\n")
                return b" 200 " in await reader.readline()
            finally:
                writer.transport.abort()
    except (OSError, TimeoutError):
        return False


async def ready(port: int, *, until: Callable[[], bool] = lambda: False) -> None:
    """Waits until the replica is ready, or has ended."""
    while not until():
        if await is_ready(port):
            return
        await asyncio.sleep(_PAUSE_SECONDS)


async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copies one direction of a connection; its end ends that direction, an error ends both.

    Data for a closed peer is dropped: uvloop does not treat it as a closed connection.
    """
    try:
        while data := await reader.read(_READ_BYTES):
            if writer.transport.is_closing():
                return
            writer.write(data)
            await writer.drain()
        if not writer.transport.is_closing() and writer.can_write_eof():
            writer.write_eof()
    except OSError:
        writer.transport.abort()
