"""The unix:// transport: ndjson over a stream socket."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from webhook.decisions.wire.framing import ProtocolError, decode_server_line, encode

if TYPE_CHECKING:
    from webhook.decisions.exporter.transport import Address, SidecarConnection
    from webhook.decisions.wire.framing import Bye, ClientHello, ServerFrame

ANSWER_BYTES_MAX: Final = 64 * 1024
"""The longest line a receiver may answer: an error's message is the longest there is."""


class UnixTransport:
    """Connects to a socket's path."""

    def __init__(self, address: Address) -> None:
        self._path = address.path

    async def connect(self) -> SidecarConnection:
        """Connect; raises :class:`OSError`."""
        reader, writer = await asyncio.open_unix_connection(self._path, limit=ANSWER_BYTES_MAX)
        return _UnixConnection(reader, writer)


class _UnixConnection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def hello(self, hello: ClientHello) -> None:
        self._writer.write(encode(hello))
        await self._writer.drain()

    async def send(self, lines: bytes) -> None:
        self._writer.write(lines)
        await self._writer.drain()

    async def bye(self, bye: Bye) -> None:
        self._writer.write(encode(bye))
        await self._writer.drain()

    async def receive(self) -> ServerFrame:
        try:
            line = await self._reader.readline()
        except ValueError:
            raise ProtocolError("bad_frame", "the receiver's line is too long") from None
        if not line:
            raise ConnectionResetError("the receiver closed the connection")
        return decode_server_line(line)

    async def close(self) -> None:
        self._writer.transport.abort()
