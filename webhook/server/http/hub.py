"""The shared state of the connections of a port: limits, the request queue and counters."""

from __future__ import annotations

import asyncio
import math
import mmap
import time
from collections import deque
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
"""How long requests are answered before the event loop reads sockets again: long compared with a
turn of the loop (20 µs), short for a client.
"""

CROWDED_SLICE_SECONDS: Final = 0.001
"""The slice while handshakes wait, or requests are shared out: as long as the handshake that begins
in each turn. A small request that arrives meanwhile waits for both. With slices of 5 ms it waited
for 6 on average.
"""

RETRY_SECONDS: Final = 1
"""How long a client should wait before it repeats a request that was one too many."""

_RETRY: Final = ((b"retry-after", b"%d" % RETRY_SECONDS),)


READ_BYTES: Final = 64 * 1024
"""Bytes read from one connection before others are read. They come in TLS records of 16 KiB: for
each the thread releases the interpreter, and may get it back after a switch interval.
"""

DROPPED_BYTES: Final = 256 * 1024
"""Bytes read in a turn from dropped input: as many as uvloop reads at once."""


OTHERS_PART: Final = 4
"""The part of a bound that a client with more than half of it leaves to others."""


_DATE: Final = "date: %a, %d %b %Y %H:%M:%S GMT\r\n"
"""The Date header. Names of days are English, as no part of the process sets a locale for times."""


class Share:
    """One address's share of a port."""

    __slots__ = ("bytes", "connections", "in_flight")

    def __init__(self) -> None:
        self.connections = 0
        self.in_flight = 0
        self.bytes = 0


class Handshake(NamedTuple):
    """An accepted connection during its handshake."""

    connection: socket.socket
    accepted_at: float
    """When it was accepted, on the monotonic clock."""


class Member(Protocol):
    """A connection of the port."""

    client: str
    """The address it comes from."""
    share: Share
    """The share that all connections of the same address have."""
    opening: Opening
    """When it was opened."""
    deadline: float
    """When its present state must have ended, on the monotonic clock."""

    @property
    def occupant(self) -> Occupant:
        """Returns the user of the request under way, and how much of it has arrived."""

    def expire(self) -> None:
        """Ends its present state."""

    def shutdown(self) -> None:
        """Closes when no request is under way."""

    def abort(self, reason: str) -> None:
        """Closes at once."""


class Hub:
    """One port's connections and requests. Only for its event loop's thread.

    Requests wait in one bounded queue. Between slices the loop reads sockets, so that an excess
    request is refused at once, and begins one handshake: the user of a request that has not arrived
    is unknown, while its time runs.
    """

    def __init__(self, limits: ConnectionLimits, registry: Registry, log: Logger) -> None:
        self.limits = limits
        self.registry = registry
        self.log = log
        self.connections: set[Member] = set()
        self._clients: dict[str, Share] = {}
        """The share of each client address."""
        self.handshakes: dict[int, Handshake] = {}
        """Connections in their handshake by descriptor, the oldest first."""
        self.queue = RequestQueue(self._bug_in, lambda: self.in_flight > 0)
        self.in_flight = 0
        """Queued requests that are neither answered nor abandoned; connections count down."""
        self.waiting_bytes = 0
        self.buffer = memoryview(mmap.mmap(-1, DROPPED_BYTES))
        """The shared read buffer: a connection reads into it and parses that before another reads.
        Only dropped input fills it; pages that nothing has filled take no memory.
        """
        self.reads = self.buffer[:READ_BYTES]
        self.large = LargeBodies(limits.body_bytes_max)
        self.dropping = Turns()
        """Connections whose input is dropped until they close."""
        self.draining = False
        self.at_once: Mapping[str, Responder] = {}
        """The responders by path, which answer without waiting and hence without a task."""
        self.peer_check: Callable[[asyncio.BaseTransport], str | None] | None = None
        """Returns why a TLS client is refused; None if it is not."""
        self.is_known: Callable[[asyncio.BaseTransport], bool] | None = None
        """Whether a TLS client is known to be an API server; None if clients cannot be known."""
        self.date_line = b""
        self.empty: asyncio.Event | None = None
        """Set when the last connection is closed, for a listener that waits for that."""
        self._refusing_since = self._refused_at = -math.inf
        self._scheduled = False
        self._ahead_seconds = 0.0
        """The time in this turn of the loop for requests that were answered as they arrived."""
        self._greetings: deque[asyncio.Future[None]] = deque()
        """The handshakes that wait to begin; the acceptor bounds their number."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.tick()

    def tick(self) -> None:
        """Refreshes the Date header; called each second."""
        self.date_line = time.strftime(_DATE, time.gmtime()).encode()

    def submit(self, exchange: Waiting, share: Share) -> bool:
        """Queues a request; False if there are too many, and then the caller keeps it."""
        if self.in_flight >= self.limits.in_flight_max and not self._leaves_room_for(share):
            return False
        self.in_flight += 1
        share.in_flight += 1
        self.queue.put(exchange)
        if not self._scheduled:
            self._schedule()
        return True

    def answer_ahead(self, exchange: Waiting) -> None:
        """Answers a request that has just arrived, if requests are shared out and it is next.

        Such requests have as much time in a turn of the loop as all others.
        """
        if self.queue.is_shared and self._ahead_seconds < CROWDED_SLICE_SECONDS:
            self._ahead_seconds += self.queue.answer_ahead(exchange)

    def greeting(self) -> asyncio.Future[None]:
        """Returns what is done when a handshake may begin: one begins in each turn of the loop.

        A hundred in one turn held up all requests for as many milliseconds.
        """
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._greetings.append(turn)
        if not self._scheduled:
            self._schedule()
        return turn

    def _schedule(self) -> None:
        self._scheduled = True
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        self._loop.call_soon(self._run)

    def occupants(self) -> Iterator[Occupant]:
        """Yields the users of unanswered requests, whole or arriving."""
        return (member.occupant for member in self.connections)

    def _leaves_room_for(self, share: Share) -> bool:
        """Whether one request more is accepted.

        Users other than the crowding ones have reserved places.
        """
        bound = self.limits.in_flight_max
        is_crowd = share.in_flight * 2 >= self.in_flight
        return not is_crowd and self.in_flight < bound + bound // OTHERS_PART

    def is_overfull(self, share: Share) -> bool:
        """Whether too many bytes wait; a single client leaves a part to others."""
        bound = self.limits.waiting_bytes_max
        if self.waiting_bytes > bound:
            return True
        own_bound = bound - bound // OTHERS_PART
        return share.bytes > own_bound and len(self._clients) > 1

    def _run(self) -> None:
        is_crowded = bool(self._greetings) or self.queue.is_shared
        while self._greetings:
            turn = self._greetings.popleft()
            if not turn.done():  # Its connection is still there.
                turn.set_result(None)
                break
        if self.queue:
            self.queue.answer(CROWDED_SLICE_SECONDS if is_crowded else SLICE_SECONDS)
        self._ahead_seconds = 0.0
        if self.queue or self._greetings:
            assert self._loop is not None
            self._loop.call_soon(self._run)
        else:
            self._scheduled = False

    def _bug_in(self, error: Exception, request: Waiting) -> None:
        self.log.fault("a request could not be answered", error)
        request.abandon()

    def keep(self, task: asyncio.Task[None]) -> None:
        """Keeps a reference to a task until it is done."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def refused(self, reason: str) -> None:
        """Counts a request answered without a decision."""
        self.registry.count(REFUSED, reason)

    def retry(self) -> tuple[tuple[bytes, bytes], ...]:
        """Returns the headers that ask the client to repeat an excess request.

        Only during a burst: the API server's client would repeat it until its deadline, and report
        only that. After refusals for as long as a retry waits, the refusal itself reaches the user.
        """
        now = time.monotonic()
        if now - self._refused_at > 2 * RETRY_SECONDS:
            self._refusing_since = now
        self._refused_at = now
        return _RETRY if now - self._refusing_since < RETRY_SECONDS else ()

    def closed(self, reason: str) -> None:
        """Counts a connection that this side closed."""
        self.registry.count(CLOSED, reason)

    def joined(self, connection: Member, descriptor: int) -> bool:
        """Adds a connection after its handshake; False if there are too many."""
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
        """Whether this address has its maximum of connections."""
        bound = self.limits.connections_per_client_max
        return 0 < bound <= self._connections_of(client)

    def _connections_of(self, client: str) -> int:
        share = self._clients.get(client)
        return 0 if share is None else share.connections

    def makes_room(self, client: str) -> bool:
        """Whether another connection was closed for a new one of this address.

        A client with the most connections loses one, so that no client crowds out others. A client
        loses its own connection only if ``newest_first``.
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
        """Forgets a connection."""
        if connection in self.connections:
            self.connections.discard(connection)
            connection.share.connections -= 1
            if not connection.share.connections:
                del self._clients[connection.client]
        if self.empty is not None and not self.connections:
            self.empty.set()

    def sweep(self, now: float) -> None:
        """Ends every connection whose time is over."""
        for connection in tuple(self.connections):
            if now > connection.deadline:
                connection.expire()
