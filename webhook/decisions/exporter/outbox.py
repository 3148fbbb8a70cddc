"""The exporter client's queue: bounded in records and bytes, until acknowledged."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from dataclasses import field
from typing import Final

from webhook.values import dataclass

PAGE_BYTES: Final = 64 * 1024
"""Some sixty records of reviews."""

_NEWLINE: Final = 10
_NOTHING: Final = memoryview(b"")

SPARE_PAGES: Final = 8
"""The most empty pages kept: a busy moment fills as many between two acknowledgements, some 400
records."""


@dataclass(slots=True, eq=False)
class _Page:
    """Consecutive lines of records, each with its newline."""

    text: memoryview
    """A memoryview, since assigning a slice of one copies it once; a bytearray copies it twice."""
    sequences: list[int] = field(default_factory=list)
    """For each line, the number of its last record."""
    ends: list[int] = field(default_factory=list)
    """For each line, the position of the next one."""
    totals: list[int] = field(default_factory=list)
    """For each line, the number of records on the page up to its end."""
    end: int = 0
    gone: int = 0
    """The number of acknowledged lines."""
    sent: int = 0
    """The number of sent lines, including acknowledged ones."""

    def begin(self, number: int) -> int:
        """Where a line begins, by its place on the page."""
        return self.ends[number - 1] if number else 0

    def records(self, start: int, stop: int) -> int:
        """Returns the number of records on these lines."""
        if stop <= start:
            return 0
        return self.totals[stop - 1] - (self.totals[start - 1] if start else 0)

    def clear(self) -> None:
        """Drops the records, and keeps the place."""
        self.sequences.clear()
        self.ends.clear()
        self.totals.clear()
        self.end = self.gone = self.sent = 0


@dataclass(slots=True)
class Outbox:
    """Records in order of sequence, first those in flight, then those unsent.

    Not thread-safe. A record leaves when it is acknowledged (or, without acknowledgements, sent). A
    new one is refused while there is no room, so that queued records keep their order and their
    place. A line is one record or several, which leave together.

    Records are copied to pages that are reused. As separate objects, the memory of each was
    allocated from the system and returned to it. That took two page faults a record: as much time
    as making it.
    """

    max_records: int
    max_bytes: int
    queued_bytes: int = 0
    notify: Callable[[int], None] | None = None
    """Called with the number up to which records have left for good; None for no listener."""
    _count: int = 0
    _in_flight: int = 0
    _pages: deque[_Page] = field(default_factory=deque)
    _spare: list[_Page] = field(default_factory=list)

    def __len__(self) -> int:
        return self._count

    @property
    def newest(self) -> int:
        """The sequence number of the record queued last; 0 if none waits."""
        return self._pages[-1].sequences[-1] if self._count else 0

    @property
    def in_flight(self) -> int:
        """The number of records sent and not yet acknowledged."""
        return self._in_flight

    @property
    def unsent(self) -> int:
        """The number of records that wait to be sent."""
        return self._count - self._in_flight

    def has_room(self, size: int, count: int = 1) -> bool:
        """Whether a line of this many bytes and records would be taken."""
        return (
            self._count + count <= self.max_records and self.queued_bytes + size <= self.max_bytes
        )

    def add(self, sequence: int, *parts: bytes | memoryview, count: int = 1) -> None:
        """Queues a line of records up to this number; it has no newline and may be in parts.

        The caller has checked :meth:`has_room`.
        """
        size = 0
        for part in parts:
            size += len(part)
        page = self._pages[-1] if self._pages else self._turn(size + 1)
        begin = page.end
        if begin + size >= len(page.text):
            page = self._turn(size + 1)
            begin = 0
        text, end = page.text, begin
        for part in parts:
            begin, end = end, end + len(part)
            text[begin:end] = part
        text[end] = _NEWLINE
        page.end = end + 1
        page.sequences.append(sequence)
        page.ends.append(end + 1)
        page.totals.append(count + (page.totals[-1] if page.totals else 0))
        self._count += count
        self.queued_bytes += size

    def take(self, max_bytes: int) -> memoryview:
        """Moves unsent lines into flight, up to ``max_bytes`` and at least one; returns their text.

        The lines are of one page, which is reused after their acknowledgement: callers that keep
        them copy them.
        """
        for page in self._pages:
            first = page.sent
            if first == len(page.ends):
                continue
            begin = page.begin(first)
            last = max(bisect_right(page.ends, begin + max_bytes, first), first + 1)
            page.sent = last
            self._in_flight += page.records(first, last)
            return page.text[begin : page.ends[last - 1]]
        return _NOTHING

    def acknowledge(self, sequence: int) -> int:
        """Removes all records up to ``sequence``; returns their number.

        Records put back by :meth:`rewind` count too: a receiver may hold records that the lost
        connection could not acknowledge.
        """
        count = 0
        while self._pages:
            page = self._pages[0]
            upto = bisect_right(page.sequences, sequence, page.gone)
            count += self._forget(page, upto)
            if upto < len(page.sequences):
                break
            self._close_first()
        return count

    def release(self) -> int:
        """Drops all records in flight, for a receiver that never acknowledges; returns their number."""
        count = 0
        while self._in_flight:
            page = self._pages[0]
            count += self._forget(page, page.sent)
            if page.gone == len(page.sequences):
                self._close_first()
        return count

    def rewind(self) -> int:
        """Moves all records in flight back before the unsent ones; returns their number."""
        count = self._in_flight
        for page in self._pages:
            page.sent = page.gone
        self._in_flight = 0
        return count

    def clear(self) -> int:
        """Drops all records; returns their number."""
        count = self._count
        self._pages.clear()
        self._count = self._in_flight = self.queued_bytes = 0
        return count

    def _turn(self, size: int) -> _Page:
        """Adds an empty page behind the others, with room for so many bytes; returns it."""
        if size > PAGE_BYTES:
            page = _Page(memoryview(bytearray(size)))
        else:
            page = self._spare.pop() if self._spare else _Page(memoryview(bytearray(PAGE_BYTES)))
        self._pages.append(page)
        return page

    def _forget(self, page: _Page, upto: int) -> int:
        """Removes a page's lines up to this position; returns the number of their records."""
        count = page.records(page.gone, upto)
        self.queued_bytes -= page.begin(upto) - page.begin(page.gone) - (upto - page.gone)
        self._in_flight -= page.records(page.gone, min(upto, page.sent))
        self._count -= count
        page.gone = upto
        page.sent = max(page.sent, upto)
        if count and self.notify is not None:
            self.notify(page.sequences[upto - 1])
        return count

    def _close_first(self) -> None:
        """The first page has nothing left."""
        page = self._pages.popleft()
        if len(page.text) == PAGE_BYTES and len(self._spare) < SPARE_PAGES:
            page.clear()
            self._spare.append(page)
