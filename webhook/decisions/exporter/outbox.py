"""The exporter client's queue: bounded in records and bytes, until acknowledged."""

from __future__ import annotations

from collections import deque
from dataclasses import field

from webhook.values import dataclass


@dataclass(slots=True)
class Outbox:
    """Records in order of sequence, first those in flight, then those unsent.

    Not thread-safe. A record leaves when it is acknowledged (or, without
    acknowledgements, sent); a new one is refused while there is no room, so
    that what is already queued keeps its order and its place.
    """

    max_records: int
    max_bytes: int
    queued_bytes: int = 0
    _in_flight: deque[tuple[int, bytes]] = field(default_factory=deque)
    _unsent: deque[tuple[int, bytes]] = field(default_factory=deque)

    def __len__(self) -> int:
        return len(self._in_flight) + len(self._unsent)

    @property
    def in_flight(self) -> int:
        """How many were sent and not yet acknowledged."""
        return len(self._in_flight)

    @property
    def unsent(self) -> int:
        """How many wait to be sent."""
        return len(self._unsent)

    def has_room(self, size: int) -> bool:
        """Whether a record of this many bytes would be taken."""
        count = len(self._in_flight) + len(self._unsent)
        return count < self.max_records and self.queued_bytes + size <= self.max_bytes

    def add(self, sequence: int, line: bytes) -> None:
        """Queue a record; the caller has asked :meth:`has_room`."""
        self._unsent.append((sequence, line))
        self.queued_bytes += len(line)

    def take(self, max_bytes: int) -> list[bytes]:
        """Move unsent records into flight, up to ``max_bytes`` and at least one."""
        lines: list[bytes] = []
        size = 0
        while self._unsent and (not lines or size + len(self._unsent[0][1]) <= max_bytes):
            record = self._unsent.popleft()
            self._in_flight.append(record)
            lines.append(record[1])
            size += len(record[1])
        return lines

    def acknowledge(self, sequence: int) -> int:
        """Forget everything up to ``sequence``; how many records that were.

        Records put back by :meth:`rewind` count too: a receiver may hold what
        the lost connection could not acknowledge.
        """
        count = 0
        for queue in (self._in_flight, self._unsent):
            while queue and queue[0][0] <= sequence:
                self.queued_bytes -= len(queue.popleft()[1])
                count += 1
        return count

    def release(self) -> int:
        """Forget everything in flight, for a receiver that never acknowledges; how many."""
        count = len(self._in_flight)
        self.queued_bytes -= sum(len(line) for _, line in self._in_flight)
        self._in_flight.clear()
        return count

    def rewind(self) -> int:
        """Put everything in flight back before the unsent; how many records that were."""
        count = len(self._in_flight)
        self._unsent.extendleft(reversed(self._in_flight))
        self._in_flight.clear()
        return count

    def clear(self) -> int:
        """Give up everything; how many records that were."""
        count = len(self)
        self._in_flight.clear()
        self._unsent.clear()
        self.queued_bytes = 0
        return count
