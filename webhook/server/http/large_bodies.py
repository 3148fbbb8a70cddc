"""Places for large bodies: a few are read at a time, in turns, and the others wait."""

from __future__ import annotations

from collections import deque
from typing import Final, Protocol

from webhook.server.http.read_queue import Turns

KEPT_PART: Final = 8
"""The divisor of the total room that gives the reserve for bodies no larger than the reserve."""


AT_ONCE_BYTES_MAX: Final = 8 * 1024 * 1024
"""The largest body that is read without turns while it is the only one. An API server sends an
object and its old version of 3 MiB each. Beside a body of 38 MiB that was read at once, other
requests waited three times as long as in quiet; 8 MiB are read in 10 ms."""


class LargeBody(Protocol):
    """A connection that waits for a large body's place."""

    def let_in(self, size: int) -> None:
        """Continues reading: there is a place for this many bytes."""

    def read_more(self) -> None:
        """Reads what has arrived, once."""


class LargeBodies:
    """The places of one port.

    Together they are hardly larger than the largest body, so that small bodies always have room:
    large ones wait for each other, the smallest the shortest. Bodies with a place are read in
    turns, with small ones in between.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._waiting: deque[tuple[LargeBody, int]] = deque()
        self.turns = Turns()
        """The turns of bodies with a place."""

    def reserve(self, connection: LargeBody, size: int) -> bool:
        """Reserves a place, or queues for one."""
        if self._fits(size) and all(size < waiting for _, waiting in self._waiting):
            self._bytes += size
            return True
        self._waiting.append((connection, size))
        return False

    def is_alone(self, size: int) -> bool:
        """Whether a body of this size is the only one with a place."""
        return self._bytes == size

    def is_read_at_once(self, size: int) -> bool:
        """Whether a body of this size is the only one with a place, and no larger than usual."""
        return size <= AT_ONCE_BYTES_MAX and self.is_alone(size)

    def leave_line(self, connection: LargeBody) -> None:
        """Leaves the queue for a place."""
        self._waiting = deque(item for item in self._waiting if item[0] is not connection)
        self._let_in()

    def release(self, size: int) -> None:
        """Returns a place, and admits the next body."""
        self._bytes -= size
        self._let_in()

    def _fits(self, size: int) -> bool:
        # A slow client with a body of 40 MB must not delay a client with one small large body.
        kept = self._bytes_max // KEPT_PART
        return self._bytes + size <= self._bytes_max + (kept if size <= kept else 0)

    def _let_in(self) -> None:
        while self._waiting:
            connection, size = least = min(self._waiting, key=lambda waiting: waiting[1])
            if not self._fits(size):
                return
            self._waiting.remove(least)
            self._bytes += size
            connection.let_in(size)
