"""The state that the connections of one port share: limits, the queue of requests, and counts."""

from __future__ import annotations

import asyncio
import math
import time
from email.utils import formatdate
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from webhook.metrics.admission import REFUSED
from webhook.metrics.server import CLOSED
from webhook.server.http.head import Opening
from webhook.server.http.large_bodies import LargeBodies
from webhook.server.http.read_queue import Turns
from webhook.server.http.request_queue import RequestQueue

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator, Mapping

    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.server.http.fair_queue import Occupant
    from webhook.server.http.limits import ConnectionLimits
    from webhook.server.http.request_queue import Waiting
    from webhook.server.http.responder import Responder

SLICE_SECONDS: Final = 0.005
"""How long requests are answered one after the other before the loop reads sockets again: long
against a loop's turn (some 20 µs), short against what a client notices."""

HANDSHAKE_TURNS: Final = 8
"""Turns of the loop for each slice while there are handshakes. One takes about as many; those that
stand still cost requests three hundredths of their time."""

RETRY_SECONDS: Final = 1
"""After how long a request that was too many shall come again, once."""

_RETRY: Final = ((b"retry-after", b"%d" % RETRY_SECONDS),)


READ_BYTES: Final = 64 * 1024
"""Read of one connection before others are read. It comes in records of 16 KiB: for each the thread
gives up the interpreter, and where another computes has it back after a switch interval."""

DROPPED_BYTES: Final = 256 * 1024
"""Read in a turn of what is dropped: what uvloop takes from a socket in one go."""


OTHERS_PART: Final = 4
"""The part of a bound that one client alone leaves to others, where it has more than half."""


class Share:
    """One address's share of a port."""

    __slots__ = ("bytes", "connections", "in_flight")

    def __init__(self) -> None:
        self.connections = 0
        self.in_flight = 0
        self.bytes = 0


class Handshake(NamedTuple):
    """A connection that has been accepted, and is not open yet."""

    connection: socket.socket
    accepted_at: float
    """On the monotonic clock."""


class Member(Protocol):
    """A connection of the port."""

    client: str
    """The address it comes from."""
    share: Share
    """The share that all connections of the same address have."""
    opening: Opening
    """When it came to be."""
    deadline: float
    """When, on the monotonic clock, its present state must be over."""

    @property
    def occupant(self) -> Occupant:
        """Return the user of the request under way, and how much of it has arrived."""

    def expire(self) -> None:
        """End that state."""

    def shutdown(self) -> None:
        """Close as soon as nothing is under way."""

    def abort(self, reason: str) -> None:
        """Close at once."""


class Hub:
    """One port's connections and requests. Only its event loop's thread may use it.

    Requests wait in one bounded queue. Between slices the loop reads sockets, so that a request
    too many is refused at once, and goes on with handshakes: of a request that has not arrived
    nobody knows whose it is, and its time runs.
    """

    def __init__(self, limits: ConnectionLimits, registry: Registry, log: Logger) -> None:
        self.limits = limits
        self.registry = registry
        self.log = log
        self.connections: set[Member] = set()
        self._clients: dict[str, Share] = {}
        """Of each address that has connections."""
        self.handshakes: dict[int, Handshake] = {}
        """Connections that are in their handshake, the oldest first, by descriptor."""
        self.queue = RequestQueue(self._bug_in)
        self.in_flight = 0
        """Requests queued, and neither answered nor without their client: connections count down."""
        self.waiting_bytes = 0
        self.buffer = memoryview(bytearray(DROPPED_BYTES))
        """The buffer of all connections: each reads into it, and parses that before another reads. Only
        dropped input fills all of it."""
        self.reads = self.buffer[:READ_BYTES]
        self.large = LargeBodies(limits.body_bytes_max)
        self.dropping = Turns()
        """Of connections whose input is dropped until they are closed."""
        self.draining = False
        self.at_once: Mapping[str, Responder] = {}
        """By path, what the application answers without waiting, hence without a task."""
        self.peer_check: Callable[[asyncio.BaseTransport], str | None] | None = None
        """Why a TLS client is not welcome; None where it is."""
        self.is_known: Callable[[asyncio.BaseTransport], bool] | None = None
        """Whether a TLS client has shown that it is an API server; None where nobody can."""
        self.date_line = b""
        self.empty: asyncio.Event | None = None
        """Set when the last connection has gone, for a listener that waits for that."""
        self._refusing_since = self._refused_at = -math.inf
        self._scheduled = False
        self._turns = 0
        """Turns of the loop until requests are answered again, as long as there are handshakes."""
        self._turns_until = 0.0
        """When they are answered again in any case: a turn may hold a hundred handshakes."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.tick()

    def tick(self) -> None:
        """Refresh the Date header; called each second."""
        self.date_line = b"date: " + formatdate(time.time(), usegmt=True).encode() + b"\r\n"

    def submit(self, exchange: Waiting, share: Share) -> bool:
        """Queue a request; False when there are too many, and then it is the caller's again."""
        if self.in_flight >= self.limits.in_flight_max and not self._leaves_room_for(share):
            return False
        self.in_flight += 1
        share.in_flight += 1
        self.queue.put(exchange)
        if not self._scheduled:
            self._scheduled = True
            if self._loop is None:
                self._loop = asyncio.get_running_loop()
            self._loop.call_soon(self._run)
        return True

    def occupants(self) -> Iterator[Occupant]:
        """The requests that have arrived, wholly or in part, and are not answered."""
        return (member.occupant for member in self.connections)

    def _leaves_room_for(self, share: Share) -> bool:
        """Whether a request may be one more than there may be: others than who crowds it may."""
        bound = self.limits.in_flight_max
        is_crowd = share.in_flight * 2 >= self.in_flight
        return not is_crowd and self.in_flight < bound + bound // OTHERS_PART

    def is_overfull(self, share: Share) -> bool:
        """Whether more bytes wait than may: one client alone leaves a part to others."""
        bound = self.limits.waiting_bytes_max
        if self.waiting_bytes > bound:
            return True
        own_bound = bound - bound // OTHERS_PART
        return share.bytes > own_bound and len(self._clients) > 1

    def _run(self) -> None:
        if self._turns and self.handshakes and time.monotonic() < self._turns_until:
            self._turns -= 1
        else:
            self.queue.answer(SLICE_SECONDS)
            self._turns = HANDSHAKE_TURNS
            self._turns_until = time.monotonic() + SLICE_SECONDS
        if self.queue:
            assert self._loop is not None
            self._loop.call_soon(self._run)
        else:
            self._scheduled = False

    def _bug_in(self, error: Exception, request: Waiting) -> None:
        self.log.fault("a request could not be answered", error)
        request.abandon()

    def keep(self, task: asyncio.Task[None]) -> None:
        """Keep a task that answers a request until it is done."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def refused(self, reason: str) -> None:
        """Count a request answered without a decision."""
        self.registry.count(REFUSED, reason)

    def retry(self) -> tuple[tuple[bytes, bytes], ...]:
        """The headers that ask for a retry of a request that was too many.

        Only a burst is worth one. The API server's client would repeat it until its time is over,
        and tell the user of that alone; when refusals have gone on for as long as a retry waits,
        there is no such header, and the refusal itself is what the user is told.
        """
        now = time.monotonic()
        if now - self._refused_at > 2 * RETRY_SECONDS:
            self._refusing_since = now
        self._refused_at = now
        return _RETRY if now - self._refusing_since < RETRY_SECONDS else ()

    def closed(self, reason: str) -> None:
        """Count a connection that this side closed."""
        self.registry.count(CLOSED, reason)

    def joined(self, connection: Member, descriptor: int) -> bool:
        """Take in a connection after its handshake; False when there are too many."""
        now = time.monotonic()
        handshake = self.handshakes.pop(descriptor, None)
        connection.opening = Opening(now if handshake is None else handshake.accepted_at, now)
        if len(self.connections) >= self.limits.connections_max:
            return False
        self.connections.add(connection)
        connection.share = self._clients.setdefault(connection.client, connection.share)
        connection.share.connections += 1
        return True

    def is_full_for(self, client: str) -> bool:
        """Whether this address has as many connections as it may have."""
        bound = self.limits.connections_per_client_max
        return 0 < bound <= self._connections_of(client)

    def _connections_of(self, client: str) -> int:
        share = self._clients.get(client)
        return 0 if share is None else share.connections

    def makes_room(self, client: str) -> bool:
        """Whether another connection has been given up for a new one of this address.

        One of those who have the most, so that nobody crowds out others: of one's own only
        where the newest go first.
        """
        if self.is_full_for(client):
            crowd = client
        else:
            crowd = max(self._clients, key=self._connections_of, default=client)
        is_more = self._connections_of(crowd) > self._connections_of(client) + 1
        if not self.limits.newest_first and not is_more:
            return False
        # Where a request is under way there is no deadline: its client is not waited for.
        longest = min(
            (member for member in self.connections if member.client == crowd),
            key=lambda member: member.deadline,
            default=None,
        )
        if longest is None or longest.deadline == math.inf:
            return False
        self.remove(longest)
        longest.abort("too_many_connections")
        return True

    def remove(self, connection: Member) -> None:
        """Forget a connection."""
        if connection in self.connections:
            self.connections.discard(connection)
            connection.share.connections -= 1
            if not connection.share.connections:
                del self._clients[connection.client]
        if self.empty is not None and not self.connections:
            self.empty.set()

    def sweep(self, now: float) -> None:
        """End every connection whose time is over."""
        for connection in tuple(self.connections):
            if now > connection.deadline:
                connection.expire()
