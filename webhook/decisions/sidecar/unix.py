"""The unix:// receiver: a stream socket in a directory that both containers mount."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
import struct
import time
from typing import TYPE_CHECKING, Final

from webhook.decisions.sidecar.session import Session
from webhook.decisions.wire.framing import LineSplitter, ProtocolError, Refusal, encode

if TYPE_CHECKING:
    from pathlib import Path

    from webhook.decisions.sidecar.intake import Intake
    from webhook.log import Logger

CONNECTIONS_MAX: Final = 128
"""The most connections. Only one Pod's containers connect here; this limits a faulty sender."""

ACKNOWLEDGE_SECONDS: Final = 0.01
"""The longest delay of an acknowledgement, in seconds, while more records are on their way to the
disk. A sender that reads an acknowledgement between two requests pays for it as for a part of a
request. Records that it sends together are mostly several commits."""

UNFINISHED_BYTES_MAX: Final = 16 * 1024 * 1024
"""The most bytes of unfinished lines, on all connections: the container has 96 MiB, of which it
needs 40. An exporter's connection has about a KiB of them, now and then."""

UNFINISHED_BYTES_USUAL: Final = 64 * 1024
"""The bytes of unfinished lines on a connection that are not checked: all connections together have
at most half of the bound."""


class UnixReceiver:
    """Listens on a socket; each connection is one :class:`Session`."""

    def __init__(self, path: Path, intake: Intake, logger: Logger) -> None:
        self._path = path
        self._intake = intake
        self._logger = logger
        self._server: asyncio.Server | None = None
        self.connections: set[object] = set()
        self.accepted = 0
        self.rejected = 0
        self.stopping = False

    async def start(self) -> None:
        """Listen; a socket left behind by a crash is replaced. Raises :class:`OSError`."""
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISSOCK(self._path.lstat().st_mode):
                self._path.unlink()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # Group-writable: the server's container may run as another user of the pod's fsGroup.
        before = os.umask(0o117)
        try:
            self._server = await asyncio.get_running_loop().create_unix_server(
                lambda: _Connection(self), str(self._path), backlog=16
            )
        finally:
            os.umask(before)

    def stop_listening(self) -> None:
        """Accepts no new connections and reads no more from the open ones."""
        self.stopping = True
        if self._server is not None:
            self._server.close()
        for connection in self._open():
            connection.pause()

    async def close(self) -> None:
        """Sends the last acknowledgements and closes every connection."""
        for connection in self._open():
            connection.end()

    def _open(self) -> list[_Connection]:
        return [item for item in self.connections if isinstance(item, _Connection)]

    def make_room(self) -> None:
        """Ends the connection that has been silent the longest, if there are too many.

        Otherwise faulty senders could keep out one with records.
        """
        if len(self.connections) >= CONNECTIONS_MAX:
            silent = min(self._open(), key=lambda connection: connection.active_at)
            silent.refuse(ProtocolError("busy", f"{CONNECTIONS_MAX} connections are open"))
            silent.abandon()

    def bound_unfinished(self) -> None:
        """Ends the connection with the longest unfinished line, if their sum is too large."""
        connections = self._open()
        if sum(connection.unfinished for connection in connections) > UNFINISHED_BYTES_MAX:
            longest = max(connections, key=lambda connection: connection.unfinished)
            longest.refuse(ProtocolError("busy", "lines without an end take too much memory"))

    @property
    def intake(self) -> Intake:
        """Where records go."""
        return self._intake

    def log(self, event: str, reason: str) -> None:
        """Logs a connection's end."""
        self._logger.warning(event, transport="unix", reason=reason)


def _owner(peer: socket.socket) -> str:
    """Returns the peer's user, from the kernel."""
    size = struct.calcsize("3i")
    _, uid, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return f"uid {uid}"


class _Connection(asyncio.Protocol):
    def __init__(self, receiver: UnixReceiver) -> None:
        self._receiver = receiver
        self._session = Session(receiver.intake, "")
        self._splitter = LineSplitter()
        self._transport: asyncio.Transport | None = None
        self._later: asyncio.TimerHandle | None = None
        self.active_at = time.monotonic()
        """The time of the last received data."""

    @property
    def unfinished(self) -> int:
        """The bytes of an unfinished line."""
        return self._splitter.unfinished

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        receiver = self._receiver
        self._session = Session(receiver.intake, _owner(transport.get_extra_info("socket")))
        receiver.make_room()
        receiver.accepted += 1
        receiver.connections.add(self)
        receiver.intake.listen(self, self._committed)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's signature
        self._receiver.intake.unlisten(self)
        self._cancel()
        self._receiver.connections.discard(self)
        self._receiver.rejected += self._session.rejected

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        if self._transport.is_closing():
            return  # it was refused
        self.active_at = time.monotonic()
        try:
            answer = self._session.lines(self._splitter.feed(data))
        except ProtocolError as error:
            self.refuse(error)
            return
        if self.unfinished > UNFINISHED_BYTES_USUAL:
            self._receiver.bound_unfinished()
        if answer is not None:
            self._transport.write(encode(answer))
        self._acknowledge_soon()  # records received again may be durable already
        if not self._receiver.intake.has_room:
            self._transport.pause_reading()

    def pause(self) -> None:
        """Reads no more."""
        if self._transport is not None and self._transport.is_reading():
            self._transport.pause_reading()

    def end(self) -> None:
        """Acknowledges durable records, then closes."""
        if self._transport is not None:
            self._acknowledge()
            self._transport.close()

    def _committed(self) -> None:
        assert self._transport is not None
        self._acknowledge_soon()
        closing = self._receiver.stopping or self._transport.is_closing()
        if not closing and not self._transport.is_reading():
            self._transport.resume_reading()

    def abandon(self) -> None:
        """Closes at once if the peer does not read, not even the error."""
        if self._transport is not None and self._transport.get_write_buffer_size():
            self._transport.abort()

    def resume_writing(self) -> None:
        self._acknowledge()

    def _acknowledge_soon(self) -> None:
        """Acknowledges at once if all records are durable, otherwise together with the next ones."""
        if self._receiver.intake.is_durable:
            self._acknowledge()
        elif self._later is None:
            loop = asyncio.get_running_loop()
            self._later = loop.call_later(ACKNOWLEDGE_SECONDS, self._acknowledge)

    def _cancel(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None

    def _acknowledge(self) -> None:
        assert self._transport is not None
        self._cancel()
        # A sender that does not read gets no more acknowledgements: the next one includes all
        # before.
        if self._transport.is_closing() or self._transport.get_write_buffer_size():
            return
        ack = self._session.acknowledgement()
        if ack is not None:
            self._transport.write(encode(ack))

    def refuse(self, error: ProtocolError) -> None:
        """Sends the error, and closes."""
        assert self._transport is not None
        self._splitter = LineSplitter()
        self._receiver.rejected += 1
        self._receiver.log("a sender was refused", f"{error.code}: {error}")
        self._transport.write(encode(Refusal(error.code, str(error))))
        self._transport.close()
