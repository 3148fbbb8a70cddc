"""Places for large bodies: a few are read at a time, in turns, and the others wait."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from webhook.server.turns import Turns


class LargeBody(Protocol):
    """A connection that waits until a large body may be read."""

    def let_in(self, size: int) -> None:
        """Go on reading in turns: there is a place for this many bytes now."""

    def read_more(self) -> None:
        """Read what has arrived, once."""


class LargeBodies:
    """The places of one port.

    Together they are no larger than the largest body may be, so that small ones always
    have room: a few large ones wait for each other instead. Those that have a place are
    read in turns, and small ones in between.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._waiting: deque[tuple[LargeBody, int]] = deque()
        self.turns = Turns()
        """Of those that have a place."""

    def reserve(self, connection: LargeBody, size: int) -> bool:
        """Take a place, or else a place in the line of those that wait for one."""
        if not self._waiting and self._fits(size):
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
        return self._bytes + size <= self._bytes_max

    def _let_in(self) -> None:
        while self._waiting and self._fits(self._waiting[0][1]):
            connection, size = self._waiting.popleft()
            self._bytes += size
            connection.let_in(size)
