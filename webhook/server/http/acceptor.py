"""Accepts connections, counts them and runs their TLS handshakes.

asyncio's server accepts every connection and reports it after TLS; connections in handshake would
hold descriptors and memory uncounted.
"""

from __future__ import annotations

import asyncio
import math
import socket
import struct
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from webhook.metrics.server import HANDSHAKES_FAILED
from webhook.server.http.head import client_of
from webhook.server.http.hub import Handshake
from webhook.server.http.limits import CLOSE_SECONDS

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from webhook.server.http.hub import Hub

HANDSHAKES_MAX: Final = 256
"""Handshakes at a time, about 66 KB each. An API server's takes a few milliseconds, so with more of
them the oldest is least likely to be one.
"""

ACCEPTED_AT_ONCE: Final = 8
"""Connections accepted before requests have their turn again, at some 50 µs each. Their handshakes
begin one by one (:meth:`~webhook.server.http.hub.Hub.greeting`).
"""

PAUSE_SECONDS: Final = 0.2
"""The pause after the system had no descriptor, which would fail again at once."""

HANDSHAKE_LOG_SECONDS: Final = 10.0
"""How often failed handshakes are logged, with their number since."""

_TCP_INFO: Final = struct.Struct("=56xI")
"""The beginning of Linux' `tcp_info`, up to the milliseconds since the last acknowledgement: on a
new connection that of its opening, or of the client's first data.
"""


class Acceptor:
    """Accepts on one socket, for one hub."""

    def __init__(
        self,
        hub: Hub,
        listening: socket.socket,
        make_protocol: Callable[[], asyncio.BaseProtocol],
        tls: ssl.SSLContext | None,
    ) -> None:
        self._hub = hub
        self._socket = listening
        self._make_protocol = make_protocol
        self._loop = asyncio.get_running_loop()
        self._tls: dict[str, Any] = {}
        if tls is not None:
            self._tls = {
                "ssl": tls,
                "ssl_handshake_timeout": hub.limits.handshake_timeout_seconds,
                "ssl_shutdown_timeout": CLOSE_SECONDS,
            }
        self._tasks: set[asyncio.Task[None]] = set()
        self._logged_at = -math.inf
        self._unlogged = 0
        self._open = True

    def start(self, backlog: int) -> None:
        """Starts accepting."""
        self._socket.setblocking(False)
        self._socket.listen(backlog)
        self._loop.add_reader(self._socket, self._accept)

    def close(self) -> None:
        """Stops accepting; running handshakes continue."""
        if self._open:
            self._open = False
            self._loop.remove_reader(self._socket)
            self._socket.close()

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                connection, address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                message = "connections cannot be accepted; trying again"
                self._hub.log.error(message, error=str(error))  # noqa: TRY400  # no bug: the system is full
                self._loop.remove_reader(self._socket)
                self._loop.call_later(PAUSE_SECONDS, self._resume)
                return
            self._take(connection, client_of(address))

    def _resume(self) -> None:
        if self._open:
            self._loop.add_reader(self._socket, self._accept)

    def _take(self, connection: socket.socket, client: str) -> None:
        hub = self._hub
        handshakes = hub.handshakes
        if hub.is_full_for(client) and not hub.makes_room(client):
            hub.closed("too_many_connections")
            connection.close()
            return
        full = len(hub.connections) + len(handshakes) >= hub.limits.connections_max
        if full and hub.makes_room(client):
            full = False
        if handshakes and (full or len(handshakes) >= HANDSHAKES_MAX):
            self._give_up(next(iter(handshakes.values())).connection)
        elif full:
            hub.closed("too_many_connections")
            connection.close()
            return
        connection.setblocking(False)
        handshakes[connection.fileno()] = Handshake(connection, _opened_at(connection))
        task = self._loop.create_task(self._greet(connection, client))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _give_up(self, connection: socket.socket) -> None:
        """Ends a handshake: its transport reads the end of the stream, and closes."""
        del self._hub.handshakes[connection.fileno()]
        self._failed("too_many_connections", "others need its place", _peer_of(connection))
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # It has gone already.

    async def _greet(self, connection: socket.socket, client: str) -> None:
        """Runs a connection's handshake, and passes it to its protocol."""
        handshakes, number = self._hub.handshakes, connection.fileno()

        def is_under_way() -> bool:
            handshake = handshakes.get(number)
            return handshake is not None and handshake.connection is connection

        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls:
                await self._await_hello(connection)
                await self._hub.greeting()
            await self._loop.connect_accepted_socket(self._make_protocol, connection, **self._tls)
        except OSError as error:  # TLS's own among them, and a deadline's
            if is_under_way():
                late = isinstance(error, TimeoutError | ConnectionAbortedError)
                self._failed("timeout" if late else "error", _text_of(error), client)
        finally:
            if is_under_way():
                del handshakes[number]

    async def _await_hello(self, connection: socket.socket) -> None:
        """Waits for a client's first bytes; raises TimeoutError, and closes, if none come.

        With TLS begun before, the handshakes of all clients that speak at once are one turn of the
        loop. After a standstill of the process the time is over before anything is read: then the
        bytes that have arrived count.
        """
        spoken: asyncio.Future[None] = self._loop.create_future()

        def note() -> None:
            if not spoken.done():
                spoken.set_result(None)

        self._loop.add_reader(connection, note)
        try:
            async with asyncio.timeout(self._hub.limits.handshake_timeout_seconds):
                await spoken
        except TimeoutError:
            if not _has_spoken(connection):
                self._loop.remove_reader(connection)
                connection.close()
                raise
        self._loop.remove_reader(connection)

    def _failed(self, reason: str, error: str, client: str) -> None:
        """Counts a failed handshake, and logs it if none was logged recently."""
        hub = self._hub
        hub.registry.count(HANDSHAKES_FAILED, reason)
        now = time.monotonic()
        if now - self._logged_at < HANDSHAKE_LOG_SECONDS:
            self._unlogged += 1
            return
        hub.log.warning(
            "a TLS handshake failed",
            reason=reason,
            error=error,
            client=client,
            not_logged=self._unlogged,
        )
        self._logged_at, self._unlogged = now, 0


def _has_spoken(connection: socket.socket) -> bool:
    """Returns whether bytes of the client wait to be read."""
    try:
        return bool(connection.recv(1, socket.MSG_PEEK))
    except OSError:  # none, or the connection is gone
        return False


def _peer_of(connection: socket.socket) -> str:
    """Returns the address of a connection's client; empty if it has gone."""
    try:
        return client_of(connection.getpeername())
    except OSError:
        return ""


def _text_of(error: OSError) -> str:
    """Returns why a handshake failed; asyncio's errors have no text."""
    if isinstance(error, TimeoutError):
        return str(error) or "the client said nothing in time"
    if isinstance(error, ConnectionError):
        return str(error) or "the client closed the connection before it was ready"
    return str(error) or type(error).__name__


def _opened_at(connection: socket.socket) -> float:
    """Returns when a connection was opened, on the monotonic clock: its client counts from then.

    It may wait to be accepted while requests are answered, and the system knows since when.
    """
    now = time.monotonic()
    if sys.platform != "linux":
        return now
    try:
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
        (milliseconds,) = _TCP_INFO.unpack(info)
    except (OSError, struct.error):
        return now
    return now - float(milliseconds) / 1000
