"""The limits of a connection: bytes, seconds and numbers, each with its reason."""

from __future__ import annotations

from typing import Final, Literal

from webhook.values import dataclass

Reading = Literal["start", "head", "body"]
"""Where the parser of a connection is: between requests, or in which part of one."""

Ending = Literal["", "linger", "closing"]
"""How a connection ends: not yet, once its answer has arrived, or now."""

HEADERS_MAX: Final = 100
"""Header fields of a request; the API server sends seven, proxies add a few."""

PIPELINED_MAX: Final = 8
"""Requests that may wait behind another on one connection; Go's client sends none so."""

LINGER_SECONDS: Final = 0.3
"""How long bytes are read and dropped after a refusal. A connection closed with unread bytes is
reset, and the reset may overtake the answer that says why."""

DROP_SECONDS: Final = 10.0
"""How long a client may send after a refusal: the default time for which an API server waits for a
webhook. A client that sends all before it reads gets its answer by then."""

LARGE_BODY_BYTES: Final = 256 * 1024
"""A body beyond this needs a place among the large ones before it is read. Those of 64 connections
below it are 16 MiB together. Hardly any object is as large."""

LARGE_BODY_SECONDS: Final = 2.0
LARGE_BODY_BYTES_A_SECOND: Final = 5 * 1024 * 1024
"""The minimum rate of a large body once it has its place, because others wait for the place. An API
server sends it without pauses, and several are read at 40 MB a second together. A body of 40 MiB
has 10 s."""

CHUNK_BYTES_MIN: Final = 256
SMALL_CHUNKS: Final = f"chunks of less than {CHUNK_BYTES_MIN} bytes on average"
CHUNKS_FREE: Final = 1024
"""How small the chunks of a body may be on average, after the first few: each costs as much as
parsing a hundred bytes does, half a microsecond. An API server sends no chunks at all, curl some of 64 KiB."""

FRAMING: Final = "heads of chunks, their extensions and trailers are larger than the body"

PREFIX_BYTES: Final = 4096
"""The bytes read of a body that is too large, or waits: it begins with the request's uid and
user."""

LATE_BODY: Final = (
    504,
    "deadline",
    "the request's body did not arrive within its time limit",
)
"""Status, reason and message where an answer is due and its request's body is not there."""

CLOSE_SECONDS: Final = 5.0
"""How long a closing connection may take to send the rest and to close TLS."""

LAST_CHANCE_SECONDS: Final = 0.5
"""How long an open connection may still send a request after its port was closed. A request on its
way would be lost, and no client repeats a POST."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Bounds for the connections of one port; the admission port's are flags."""

    connections_max: int
    header_bytes_max: int
    """Of a request's line and headers."""
    body_bytes_max: int
    """Of one request's body."""
    waiting_bytes_max: int
    """Of all bodies that were received and are not answered."""
    in_flight_max: int
    """Requests accepted and not yet answered."""
    handshake_timeout_seconds: float
    header_timeout_seconds: float
    body_timeout_seconds: float
    idle_timeout_seconds: float
    newest_first: bool = False
    """Whether a new connection at the limit closes the one whose deadline is the soonest. Else the
    new one is closed, unless another client has more connections than its own. For probes and
    people: they send their request at once, and must be answered."""
    connections_per_client_max: int = 0
    """Of one address, so that there is room for others; 0 for as many as all may have."""

    def seconds_for(self, reading: Reading, large_bytes: int) -> float:
        """How long a client may take for a part of a request; others wait for the place of ``large_bytes``."""
        if reading == "start":
            return self.idle_timeout_seconds
        if reading == "head":
            return self.header_timeout_seconds
        if large_bytes:
            longest = LARGE_BODY_SECONDS + large_bytes / LARGE_BODY_BYTES_A_SECOND
            return min(self.body_timeout_seconds, longest)
        return self.body_timeout_seconds

    def raw_body_bytes_max(self, size: int) -> int:
        """The limit of what ``size`` bytes of a body came in: chunks' heads, extensions, trailers.

        The parser keeps an endless one, and copies it with each read.
        """
        return 2 * (size + self.header_bytes_max)

    @property
    def sweep_interval_seconds(self) -> float:
        """How often deadlines are looked at: one timer for all connections, not one each."""
        shortest = min(
            self.header_timeout_seconds, self.body_timeout_seconds, self.idle_timeout_seconds
        )
        return min(1.0, max(0.02, shortest / 4))
