"""What a connection may cost: bytes, seconds and numbers, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

HEADERS_MAX: Final = 100
"""Header fields of a request; the API server sends seven, proxies add a few."""

PIPELINED_MAX: Final = 8
"""Requests that may wait behind another on one connection; Go's client sends none so."""

LINGER_SECONDS: Final = 0.3
"""How long bytes are read and dropped after a refusal. A connection closed with unread bytes is
reset, and the reset may overtake the answer that says why."""

CLOSE_SECONDS: Final = 5.0
"""How long a closing connection may take to send what is left and take leave of TLS."""

LAST_CHANCE_SECONDS: Final = 0.5
"""How long an open connection may still send a request after its port was closed: one that is on
its way would be lost, and no client repeats a POST."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Bounds for the connections of one port."""

    connections_max: int = 2000
    header_bytes_max: int = 64 * 1024
    body_bytes_max: int = 7 * 1024 * 1024
    """etcd's 1.5 MB an object, twice that as JSON; object and oldObject; 1 MB for the rest."""
    waiting_bytes_max: int = 64 * 1024 * 1024
    """Bodies are decoded one at a time, at about ten times their size; all others are bytes."""
    in_flight_max: int = 512
    """An API server lets 200 mutating requests run at a time (--max-mutating-requests-inflight)
    and there are commonly three; at a millisecond each, the last waits half a second."""
    handshake_timeout_seconds: float = 5.0
    header_timeout_seconds: float = 10.0
    body_timeout_seconds: float = 30.0
    """No API server waits longer for a webhook."""
    idle_timeout_seconds: float = 120.0
    """Go's client, and so the API server, closes an idle connection after 90 s; a server that
    closes first sometimes loses a request that is on its way."""

    @property
    def sweep_interval_seconds(self) -> float:
        """How often deadlines are looked at: one timer for all connections, not one each."""
        shortest = min(
            self.header_timeout_seconds, self.body_timeout_seconds, self.idle_timeout_seconds
        )
        return min(1.0, max(0.02, shortest / 4))
