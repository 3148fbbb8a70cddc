"""Places for large bodies: a few are read at a time, in turns, and the others wait."""

from __future__ import annotations

from collections import deque
from typing import Final, Protocol

from webhook.server.http.read_queue import Turns

KEPT_PART: Final = 8
"""The part of all room, as a divisor, that is there besides for bodies no larger than that part."""


class LargeBody(Protocol):
    """A connection that waits until a large body may be read."""

    def let_in(self, size: int) -> None:
        """Go on reading in turns: there is a place for this many bytes now."""

    def read_more(self) -> None:
        """Read what has arrived, once."""


class LargeBodies:
    """The places of one port.

    Together they are hardly larger than the largest body may be, so that small ones always
    have room: a few large ones wait for each other instead, the smallest the shortest.
    Those that have a place are read in turns, and small ones in between.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._waiting: deque[tuple[LargeBody, int]] = deque()
        self.turns = Turns()
        """Of those that have a place."""

    def reserve(self, connection: LargeBody, size: int) -> bool:
        """Take a place, or else a place in the line of those that wait for one."""
        if self._fits(size) and all(size < waiting for _, waiting in self._waiting):
            self._bytes += size
            return True
        self._waiting.append((connection, size))
        return False

    def is_alone(self, size: int) -> bool:
        """Whether a body with a place of this size is the only one that has a place."""
        return self._bytes == size

    def leave_line(self, connection: LargeBody) -> None:
        """Wait no more for a place."""
        self._waiting = deque(item for item in self._waiting if item[0] is not connection)
        self._let_in()

    def release(self, size: int) -> None:
        """Give a place back, and let in who waits for it."""
        self._bytes -= size
        self._let_in()

    def _fits(self, size: int) -> bool:
        # Who sends 40 MB slowly must not hold up who sends one of them.
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
