"""A listening port: uvicorn's server, with our own TLS deadlines, sweep and drain.

uvicorn is a library here: the application handles signals, and closing has two separate steps,
:meth:`Listener.drain` and :meth:`Listener.stop`.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import socket
import time
from typing import TYPE_CHECKING, Any

import uvicorn

from webhook.metrics.server import LAG, LAG_MAX, LAG_SECONDS
from webhook.server.http.acceptor import Acceptor
from webhook.server.http.connection import Connection
from webhook.server.http.limits import LAST_CHANCE_SECONDS

if TYPE_CHECKING:
    import ssl
    from collections.abc import Generator

    from webhook.server.http.hub import Hub

BACKLOG = 1024
"""Connections that may wait to be accepted while a review runs; the kernel caps it (somaxconn)."""


LAG_INTERVAL_SECONDS = 0.1
"""A timer costs about 20 µs: ten a second are no load, and miss nothing that lasts longer."""

RECENT_TIMERS = 600
"""The timers of the last minute, of which the late ones are counted."""

LATE_SECONDS = 0.1
"""The delay of a late timer: the bound of the alert WaddleEventLoopLate."""


class Listener(uvicorn.Server):
    """Serves one application on one socket until :meth:`stop`."""

    def __init__(
        self,
        hub: Hub,
        application: Any,
        socket: socket.socket,
        *,
        tls: ssl.SSLContext | None = None,
        grace_seconds: float = 1.0,
        measures_lag: bool = False,
    ) -> None:
        self.hub = hub
        self._socket = socket
        self._tls = tls
        self._acceptor: Acceptor | None = None
        self._grace_seconds = grace_seconds
        self.listening = asyncio.Event()
        """Set when the port is open."""
        self._stopping = asyncio.Event()
        self._last_tick = time.monotonic()
        self._late = 0
        """The last timers as bits: 1 for a late one."""
        self._measures_lag = measures_lag
        hub.at_once = getattr(application, "at_once", {})
        protocol: Any = functools.partial(Connection, hub)
        super().__init__(
            uvicorn.Config(
                application,
                http=protocol,
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                access_log=False,
                proxy_headers=False,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leaves signals to the application."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002  # uvicorn's signature
        """Listen, with bounds for handshakes, which uvicorn does not set."""
        loop = asyncio.get_running_loop()
        make_protocol = functools.partial(
            self.config.http_protocol_class,
            config=self.config,  # type: ignore[call-arg]  # uvicorn's way to make a protocol
        )
        self._acceptor = Acceptor(self.hub, self._socket, make_protocol, self._tls)
        self._acceptor.start(BACKLOG)
        self.started = True
        if self._measures_lag:
            due = loop.time() + LAG_INTERVAL_SECONDS
            loop.call_at(due, self._measure_lag, loop, due)
        self.listening.set()

    def _measure_lag(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        """Records the delay of this timer and sets the next one: a blocked thread shows here."""
        now = loop.time()
        self.hub.registry.histogram(LAG_SECONDS).observe(max(0.0, now - due))
        self._late = (self._late << 1 | (now - due > LATE_SECONDS)) & ((1 << RECENT_TIMERS) - 1)
        if not self._stopping.is_set():
            loop.call_at(
                now + LAG_INTERVAL_SECONDS, self._measure_lag, loop, now + LAG_INTERVAL_SECONDS
            )

    async def main_loop(self) -> None:
        """Sweep connections and measure the loop's lag until stopped."""
        await self._sweep(self._stopping, self.hub.limits.sweep_interval_seconds)

    async def _sweep(self, until: asyncio.Event, interval: float) -> None:
        registry = self.hub.registry
        dated = 0.0
        worst = 0.0
        while not until.is_set():
            self._last_tick = began = time.monotonic()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(interval):
                    await until.wait()
                    return
            now = time.monotonic()
            lag = now - began - interval
            worst = max(worst, lag)
            registry.set(LAG, max(0.0, lag))
            registry.set(LAG_MAX, worst)
            self.hub.sweep(now)
            if now - dated >= 1:
                dated = now
                self.hub.tick()

    @property
    def seconds_since_tick(self) -> float:
        """The seconds since the last sweep of this listener's loop; any thread may read it."""
        return time.monotonic() - self._last_tick

    @property
    def late_timers(self) -> int:
        """How many of the last :data:`RECENT_TIMERS` were late; any thread may read it."""
        return self._late.bit_count()

    def drain(self) -> None:
        """Closes each connection after its next answer from now on; still accepts new ones."""
        self.hub.draining = True

    def stop(self) -> None:
        """Makes :meth:`serve` return: closes the port, then finishes the open requests."""
        self.hub.draining = True
        self._stopping.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002  # uvicorn's signature
        """Closes the port; answers open requests, and further requests on open connections."""
        if self._acceptor is not None:
            self._acceptor.close()
        # Handshakes that are under way become connections meanwhile.
        await asyncio.sleep(LAST_CHANCE_SECONDS / 2)
        for connection in tuple(self.hub.connections):
            connection.shutdown()
        self.hub.empty = asyncio.Event()
        if self.hub.connections:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._grace_seconds):
                    await self._sweep(self.hub.empty, LAST_CHANCE_SECONDS / 5)
        for connection in tuple(self.hub.connections):
            connection.abort("shutdown")


def bind(host: str, port: int, *, backlog: int) -> socket.socket:
    """Returns a socket at an address, or without a host at all of IPv6 and IPv4; raises OSError.

    A node has IPv4, IPv6 or both; only a socket of both is reached in each of them.
    """
    if not host:
        if socket.has_dualstack_ipv6():
            return socket.create_server(
                ("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=backlog
            )
        return socket.create_server(("", port), backlog=backlog)
    family, kind, protocol, _, where = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(where)
    except OSError:
        bound.close()
        raise
    return bound


def listen(host: str, port: int, *, backlog: int) -> socket.socket:
    """Returns a listening socket, bound as by :func:`bind`; raises OSError."""
    listening = bind(host, port, backlog=backlog)
    listening.listen(backlog)
    return listening
