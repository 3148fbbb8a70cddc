"""Connections in memory: bytes arrive late, in parts and in order; links break and go silent."""

import asyncio
import errno
import os
import socket
import struct
from collections import deque
from collections.abc import Callable
from typing import Any

from tests.simulation.loop import Loop
from tests.simulation.process import Process

WINDOW_BYTES = 64 * 1024
"""Under way in one direction at most; beyond that the sender keeps what it wrote."""

HIGH_WATER_BYTES = 64 * 1024

Factory = Callable[[], asyncio.BaseProtocol]


class Socket:
    """The socket of a connection, as far as protocols use it."""

    family = socket.AF_UNIX

    def getsockopt(self, *_: Any) -> bytes:
        """SO_PEERCRED: a process, a user and a group."""
        return struct.pack("3i", 7, 1000, 1000)

    def fileno(self) -> int:
        """None: what is sent goes by way of the transport."""
        return -1


class Link:
    """The common state of two ends: latency, and whether bytes still arrive."""

    def __init__(self, latency: float) -> None:
        self.latency = latency
        self.silent = False
        self.mute: Transport | None = None
        """The end whose bytes are lost, while the other's arrive."""

    def carries(self, sender: "Transport | None") -> bool:
        """Whether what this end sends arrives."""
        return not self.silent and (self.mute is None or self.mute is not sender)


class Transport(asyncio.Transport):
    """An end of a connection."""

    def __init__(self, network: "Network", process: Process, link: Link) -> None:
        super().__init__()
        self.network = network
        self.loop: Loop = network.loop
        self.process = process
        self.link = link
        self.peer: Transport | None = None
        self.protocol: Any = None
        self._out: deque[bytes] = deque()
        self._out_bytes = 0
        self._under_way = 0
        self._last_arrival = 0.0
        self._received: deque[bytes | None] = deque()
        self._reading = True
        self._writing_paused = False
        self._closing = False
        self._lost = False
        self._ended = False
        process.open[self] = None

    # --- asked by protocols --------------------------------------------------------------------

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "socket":
            return Socket()
        return ("10.0.0.1", 1) if name in {"peername", "sockname"} else default

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self.protocol  # type: ignore[no-any-return]

    def is_closing(self) -> bool:
        return self._closing

    def is_reading(self) -> bool:
        return self._reading and not self._closing

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        if not self._reading:
            self._reading = True
            self.loop.call_soon(self._hand_over, context=self.process.context)

    def get_write_buffer_size(self) -> int:
        return self._out_bytes

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return HIGH_WATER_BYTES // 4, HIGH_WATER_BYTES

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Does nothing."""

    def can_write_eof(self) -> bool:
        return False

    def write(self, data: Any) -> None:
        if self._closing or self.process.dead or not data:
            return
        self._out.append(bytes(data))
        self._out_bytes += len(data)
        self._pump()
        if self._out_bytes > HIGH_WATER_BYTES and not self._writing_paused:
            self._writing_paused = True
            self.protocol.pause_writing()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        self._reading = False
        self._pump()

    def abort(self) -> None:
        if self._lost:
            return
        self._closing = True
        self._out.clear()
        self._out_bytes = 0
        if self.peer is not None and not self._ended:
            self._ended = True
            self._send_at(self.peer._reset)
        self._lose(None)

    # --- the way of bytes ----------------------------------------------------------------------

    def _pump(self) -> None:
        """Send what the window allows."""
        peer = self.peer
        assert peer is not None
        while self._out and self._under_way < WINDOW_BYTES:
            data = self._out.popleft()
            chance = self.loop.random
            if len(data) > 1 and chance.random() < self.network.splitting:
                middle = chance.randrange(1, len(data))
                self._out.appendleft(data[middle:])
                data = data[:middle]
            self._out_bytes -= len(data)
            self._under_way += len(data)
            self._send_at(peer._arrive, data)
        if self._writing_paused and self._out_bytes <= HIGH_WATER_BYTES // 4:
            self._writing_paused = False
            if not self._lost:
                self.loop.call_soon(self.protocol.resume_writing, context=self.process.context)
        if self._closing and not self._out and not self._ended:
            self._ended = True
            self._send_at(peer._end)
            self._lose(None)

    def _send_at(self, callback: Callable[..., None], *arguments: Any) -> None:
        link = self.link
        assert self.peer is not None
        if not link.carries(self):
            return
        delay = link.latency * (0.5 + self.loop.random.random())
        when = max(self.loop.time() + delay, self._last_arrival)
        self._last_arrival = when
        self.loop.call_at(when, callback, *arguments, context=self.peer.process.context)

    def _arrive(self, data: bytes) -> None:
        if self._lost or not self.link.carries(self.peer):
            return
        self._received.append(data)
        self._hand_over()

    def _end(self) -> None:
        if not self._lost and self.link.carries(self.peer):
            self._received.append(None)
            self._hand_over()

    def _hand_over(self) -> None:
        while self._received and self._reading and not self._lost:
            data = self._received.popleft()
            if data is None:
                keep = self.protocol.eof_received()
                if not keep:
                    self.close()
                return
            peer = self.peer
            assert peer is not None
            peer._under_way -= len(data)
            if peer._out:
                peer._pump()
            self.protocol.data_received(data)

    def _reset(self) -> None:
        if not self._lost and self.link.carries(self.peer):
            self._closing = True
            self._ended = True
            self._lose(ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)))

    def _lose(self, error: Exception | None) -> None:
        if self._lost:
            return
        self._lost = True
        self.process.open.pop(self, None)
        self.network.links.pop(self.link, None)
        self.loop.call_soon(self.protocol.connection_lost, error, context=self.process.context)

    def cut(self) -> None:
        """The process has ended: the system closes what it had open."""
        self._lost = self._closing = True
        if self.peer is not None and not self._ended:
            self._ended = True
            self._send_at(self.peer._reset)
        self.process.open.pop(self, None)
        self.network.links.pop(self.link, None)


class Server:
    """asyncio.Server, as far as the product uses it."""

    def __init__(
        self, network: "Network", address: Any, process: Process, factory: Factory
    ) -> None:
        self.network = network
        self.address = address
        self.process = process
        self.factory = factory
        self.sockets: tuple[Any, ...] = ()
        process.open[self] = None

    def close(self) -> None:
        if self.network.servers.get(self.address) is self:
            del self.network.servers[self.address]
        self.process.open.pop(self, None)

    cut = close

    async def wait_closed(self) -> None:
        """Returns at once."""

    def is_serving(self) -> bool:
        return self.network.servers.get(self.address) is self


class Network:
    """The listeners and links of a world."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.servers: dict[Any, Server] = {}
        self.links: dict[Link, tuple[Transport, Transport]] = {}
        self.latency = 0.001
        self.splitting = 0.05
        self.unreachable: set[Any] = set()
        """Addresses whose packets are lost: nobody answers."""
        loop.network = self

    def listen(self, address: Any, factory: Factory) -> Server:
        """Take connections for this address, in the process that runs."""
        if address in self.servers:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        server = Server(self, address, self.loop.process_of(), factory)
        self.servers[address] = server
        return server

    async def connect(self, address: Any, factory: Factory) -> tuple[Transport, Any]:
        """A connection of the process that runs; raises OSError."""
        loop = self.loop
        process = loop.process_of()
        await asyncio.sleep(self.latency * (0.5 + loop.random.random()))
        if address in self.unreachable:
            await loop.create_future()  # no answer ever comes
        server = self.servers.get(address)
        if server is None or server.process.dead:
            raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
        link = Link(self.latency)
        near = Transport(self, process, link)
        far = Transport(self, server.process, link)
        near.peer, far.peer = far, near
        self.links[link] = (near, far)
        near.protocol = factory()
        near.protocol.connection_made(near)

        def accept() -> None:
            if far._lost:
                return
            far.protocol = server.factory()
            far.protocol.connection_made(far)

        loop.call_soon(accept, context=server.process.context)
        return near, near.protocol

    def go_silent(self, link: Link, *, one_way: bool = False) -> None:
        """From now on the link carries nothing, or nothing of one end, and nobody is told."""
        if one_way:
            link.mute = self.loop.random.choice(self.links[link])
        else:
            link.silent = True
        self.links.pop(link, None)

    def reset(self, link: Link) -> None:
        """Resets the connection at both ends."""
        for end in self.links.pop(link, ()):
            self.loop.call_soon(end._reset, context=end.process.context)
