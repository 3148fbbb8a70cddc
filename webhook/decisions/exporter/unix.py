"""The unix:// transport: ndjson over a stream socket."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from typing import TYPE_CHECKING, Final, cast

from webhook.decisions.wire.framing import LineSplitter, ProtocolError, decode_server_line, encode

if TYPE_CHECKING:
    from webhook.decisions.exporter.transport import Address, SidecarConnection
    from webhook.decisions.wire.framing import Bye, ClientHello, ServerFrame

ANSWER_BYTES_MAX: Final = 64 * 1024
"""The longest line a receiver may send: an error's message is the longest."""

UNREAD_MAX: Final = 64
"""Lines that wait to be looked at; a receiver that answers more is not read meanwhile."""


class UnixTransport:
    """Connects to a socket's path."""

    def __init__(self, address: Address) -> None:
        self._path = address.path

    async def connect(self) -> SidecarConnection:
        """Connect; raises :class:`OSError`."""
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_unix_connection(_UnixConnection, self._path)
        return connection


class _UnixConnection(asyncio.Protocol):
    """A connection without asyncio's streams.

    Code that runs twenty times a second, between requests, is not in the processor's caches: each
    function call costs ten times as much as in a loop.
    """

    def __init__(self) -> None:
        self._splitter = LineSplitter(ANSWER_BYTES_MAX)
        self._lines: deque[bytes] = deque()
        self._transport: asyncio.Transport | None = None
        self._file = -1
        """The number of the socket while this connection owns it; -1 otherwise."""
        self._fault: Exception | None = None
        """The reason why no more lines come, after the received ones."""
        self._lost = False
        """Whether nothing can be sent: a receiver may close with a reason that is still unread."""
        self._receiving: asyncio.Future[None] | None = None
        self._full: asyncio.Future[None] | None = None
        """Done when more may be written; None while it may."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The transport is uvloop's, whose class does not inherit from asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        if (connected := transport.get_extra_info("socket")) is not None:
            self._file = connected.fileno()

    def data_received(self, data: bytes) -> None:
        try:
            self._lines += self._splitter.feed(data)
        except ProtocolError:
            self._end(ProtocolError("bad_frame", "the receiver's line is too long"))
            return
        if len(self._lines) > UNREAD_MAX and self._transport is not None:
            self._transport.pause_reading()
        _wake(self._receiving)

    def eof_received(self) -> bool:
        self._end(ConnectionResetError("the receiver closed the connection"))
        return True  # the user of the connection closes it

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost, self._file = True, -1  # the number may be reused for another file
        self._end(exc or ConnectionResetError("the receiver closed the connection"))

    def pause_writing(self) -> None:
        self._full = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        _wake(self._full)
        self._full = None

    async def hello(self, hello: ClientHello) -> None:
        await self.send(encode(hello))

    async def send(self, lines: bytes | memoryview) -> None:
        transport = self._transport
        assert transport is not None
        if not self._lost:
            rest = lines if transport.get_write_buffer_size() else self._written(lines)
            if rest:
                transport.write(bytes(rest))
            if self._full is not None:
                await self._full
        if self._lost and self._fault is not None:
            raise self._fault

    def _written(self, lines: bytes | memoryview) -> bytes | memoryview:
        """Writes to the socket directly; returns the part that it did not take.

        The transport would copy the data, into memory that is freed each time. It notices faults
        when it writes the rest.
        """
        if self._file < 0:
            return lines
        try:
            return lines[os.write(self._file, lines) :]
        except OSError:  # full, most of all
            return lines

    async def bye(self, bye: Bye) -> None:
        await self.send(encode(bye))

    async def receive(self) -> ServerFrame:
        while not self._lines:
            if self._fault is not None:
                raise self._fault
            assert self._transport is not None
            if not self._transport.is_reading():
                self._transport.resume_reading()
            self._receiving = asyncio.get_running_loop().create_future()
            await self._receiving
        return decode_server_line(self._lines.popleft())

    async def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _end(self, fault: Exception) -> None:
        """Ends the receiving; the first reason counts."""
        if self._fault is None:
            self._fault = fault
        _wake(self._receiving)
        if self._lost:
            self.resume_writing()


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)
