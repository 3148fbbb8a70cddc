"""A layer-4 proxy on loopback in kube-proxy's place.

A new connection goes to a replica whose `/readyz` is 200, and stays there; endpoints of a Service
on loopback are refused by the API server.
"""

import asyncio
import threading
from typing import TYPE_CHECKING

from tests.system.loop_thread import LoopThread

if TYPE_CHECKING:
    from tests.system.replicas import Replica

PROBE_SECONDS_MAX = 5


class Proxy(LoopThread):
    """A port of loopback whose new connections go to a ready replica, in turn."""

    def __init__(self) -> None:
        self.replicas: list[Replica] = []
        self.port = 0
        self.accepted = 0
        self._turn = 0
        super().__init__()

    async def serve(self, started: threading.Event, stop: asyncio.Event) -> None:
        """Pass connections on."""
        async with asyncio.TaskGroup() as tasks:

            def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                self.accepted += 1
                connections.append(tasks.create_task(self._connect(reader, writer)))

            connections: list[asyncio.Task[None]] = []
            server = await asyncio.start_server(accept, "127.0.0.1", 0)
            self.port = server.sockets[0].getsockname()[1]
            started.set()
            await stop.wait()
            server.close()
            for connection in connections:
                connection.cancel()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream = await self._ready()
        if upstream is None:
            writer.transport.abort()
            return
        theirs, ours = upstream
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_pipe(reader, ours))
                tasks.create_task(_pipe(theirs, writer))
        finally:
            ours.transport.abort()
            writer.transport.abort()

    async def _ready(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """A connection to the next replica that is ready."""
        self._turn += 1
        replicas = list(self.replicas)
        for number in range(len(replicas)):
            replica = replicas[(self._turn + number) % len(replicas)]
            # One that has been killed and begins anew has no ports for a moment.
            ports = dict(replica.ports)
            if "health" not in ports or not await _answers_ready(ports["health"]):
                continue
            try:
                return await asyncio.open_connection("127.0.0.1", ports["admission"])
            except OSError:
                continue
        return None


async def _answers_ready(port: int) -> bool:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    try:
        writer.write(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        async with asyncio.timeout(PROBE_SECONDS_MAX):
            return b" 200 " in await reader.readline()
    except (OSError, TimeoutError):
        return False
    finally:
        writer.close()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Carry one direction; its end is the end of that direction, a tear is the end of both."""
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except (OSError, RuntimeError):  # uvloop's own of a transport that is closed already
        writer.transport.abort()
        return
    if not writer.transport.is_closing():
        writer.close()
