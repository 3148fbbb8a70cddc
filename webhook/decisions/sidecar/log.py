"""The segment log: records in order of arrival, durable before they are acknowledged.

One thread appends, and each sink's thread reads behind it. The thread that moved the slowest reader
trims. Offsets count records from 0 and are never used twice.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import orjson

from webhook.decisions.declaration import setting
from webhook.decisions.sidecar import segment
from webhook.decisions.sidecar.scan import read_header, resync, scan
from webhook.decisions.sidecar.streams import STREAMS_MAX
from webhook.decisions.wire.framing import MAX_LINE_BYTES, StreamID, read_record
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from webhook.decisions.sidecar.disk import AppendFile, Disk


class LogFull(Exception):
    """There is no room within the limits; the message names the limit."""


QUEUE_BYTES_MIN: Final = 4 * MAX_LINE_BYTES
"""The longest record with the rest of a queue: no record can block the queue for ever."""


@dataclass(frozen=True, slots=True)
class LogLimits:
    """The largest size of a log, and the effect of reaching it.

    ``min_free_bytes`` is kept free on the disk for other uses. With ``drop_oldest`` the oldest
    segment is dropped; otherwise nothing is acknowledged until sinks have drained.
    """

    segment_bytes: int = setting(8 * 1024 * 1024, least=64 * 1024)
    max_bytes: int = setting(1024 * 1024 * 1024, least=QUEUE_BYTES_MIN)
    min_free_bytes: int = setting(64 * 1024 * 1024, least=0)
    drop_oldest: bool = False


@dataclass(slots=True)
class Segment:
    """One file: its first record's offset, and its durable part."""

    first: int
    path: Path
    size: int
    header_bytes: int
    end: int


class SegmentLog:
    """The records of one directory.

    Opening repairs the log: a torn tail is cut off (``torn_bytes``). Damage before whole records is
    skipped (``damaged`` counts the places), and only the damaged records are lost. Raises
    :class:`OSError` from the disk.
    """

    def __init__(self, disk: Disk, directory: Path, limits: LogLimits) -> None:
        self.disk = disk
        self.directory = directory
        self.limits = limits
        self.marks: OrderedDict[StreamID, int] = OrderedDict()
        self.torn_bytes = 0
        self.damaged = 0
        self._passed = 0
        self._segments: list[Segment] = []
        self._file: AppendFile | None = None
        self._changed = threading.Condition()
        disk.make_directory(directory)
        self._recover()

    @property
    def first(self) -> int:
        """The offset of the oldest record held."""
        with self._changed:
            return self._segments[0].first if self._segments else 0

    @property
    def end(self) -> int:
        """One past the offset of the newest durable record."""
        with self._changed:
            return self._segments[-1].end if self._segments else 0

    @property
    def size_bytes(self) -> int:
        """The log's part of its limit: segments are counted whole until they are removed."""
        with self._changed:
            return sum(part.size for part in self._segments)

    def append(self, lines: Sequence[bytes], marks: Mapping[StreamID, int]) -> None:
        """Makes records durable, together with the positions of their streams.

        Raises :class:`LogFull` or :class:`OSError`. Then none of ``lines`` is in the log, and the
        same call may be tried again.
        """
        data = segment.encode_frames(lines)
        self._make_room(len(data))
        active = self._segments[-1] if self._segments else None
        if (
            self._file is None
            or active is None
            or (active.end > active.first and active.size + len(data) > self.limits.segment_bytes)
        ):
            active = self._roll()
        assert self._file is not None
        try:
            self._file.write(data)
            self._file.sync()
        except OSError:
            # After a failed sync the page cache proves nothing: never write behind it.
            self._abandon(active)
            raise
        for stream, sequence in marks.items():
            self.marks[stream] = sequence
            self.marks.move_to_end(stream)
        while len(self.marks) > STREAMS_MAX:
            self.marks.popitem(last=False)
        with self._changed:
            active.size += len(data)
            active.end += len(lines)
            self._changed.notify_all()

    def wait_for_more(
        self, offset: int, timeout_seconds: float, or_else: Callable[[], bool]
    ) -> None:
        """Waits for a record at ``offset``, for ``or_else``, or until the timeout."""
        with self._changed:
            self._changed.wait_for(
                lambda: (bool(self._segments) and self._segments[-1].end > offset) or or_else(),
                timeout_seconds,
            )

    def wake(self) -> None:
        """Wakes all waiting threads."""
        with self._changed:
            self._changed.notify_all()

    def segment_of(self, offset: int) -> Segment | None:
        """Returns the segment that holds ``offset``, or the first after it; None beyond the end.

        It is a copy of the current durable state; later appends do not change it.
        """
        with self._changed:
            for index, part in enumerate(self._segments):
                end = (
                    self._segments[index + 1].first if index + 1 < len(self._segments) else part.end
                )
                if offset < end:
                    return Segment(part.first, part.path, part.size, part.header_bytes, end)
        return None

    def trim(self, offset: int) -> int:
        """Removes segments with records below ``offset`` only; returns their number.

        Raises :class:`OSError` if a file cannot be removed; it is tried again the next time.
        """
        removed = 0
        with self._changed:
            self._passed = max(self._passed, offset)
            while len(self._segments) > 1 and self._segments[1].first <= offset:
                self.disk.remove(self._segments[0].path)
                del self._segments[0]
                removed += 1
            if removed:
                self._changed.notify_all()
        return removed

    def wait_trimmed(self, timeout_seconds: float) -> None:
        """Waits for a change, or until the timeout; for a thread that found the log full."""
        with self._changed:
            self._changed.wait(timeout_seconds)

    def close(self) -> None:
        """Closes the open file; everything appended is durable already."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _make_room(self, needed: int) -> None:
        while True:
            full = self._full(needed)
            if not full:
                return
            if self._give_up_drained():
                continue
            if not self.limits.drop_oldest or not self._segments:
                raise LogFull(full)
            if len(self._segments) == 1:
                if self._segments[0].end == self._segments[0].first:
                    raise LogFull(full)
                self._roll()
            with self._changed:
                self.disk.remove(self._segments.pop(0).path)

    def _give_up_drained(self) -> bool:
        """Begins a new segment if everything was delivered: the current segment is never trimmed."""
        active = self._segments[-1] if self._segments else None
        if active is None or active.end == active.first or self._passed < active.end:
            return False
        self._roll()
        return self.trim(self._passed) > 0

    def _full(self, needed: int) -> str:
        size = self.size_bytes
        if size + needed > self.limits.max_bytes:
            return f"{size} bytes are queued, the limit is {self.limits.max_bytes}"
        free = self.disk.free_bytes(self.directory)
        if free - needed < self.limits.min_free_bytes:
            return f"{free} bytes are free on the disk, {self.limits.min_free_bytes} are kept"
        return ""

    def _roll(self) -> Segment:
        """Begins a new segment; the old one keeps its durable records."""
        self.close()
        first = self._segments[-1].end if self._segments else 0
        path = self.directory / segment.file_name(first)
        streams = [[name.pod_uid, name.process, mark] for name, mark in self.marks.items()]
        header = segment.encode_header(segment.Header(first, streams))
        file = self.disk.append(path)
        try:
            file.truncate(0)
            file.write(header)
            file.sync()
            self.disk.sync_directory(self.directory)
        except OSError:
            file.close()
            raise
        fresh = Segment(first, path, len(header), len(header), first)
        with self._changed:
            if self._segments and self._segments[-1].first == first:
                self._segments.pop()
            self._segments.append(fresh)
        self._file = file
        return fresh

    def _abandon(self, active: Segment) -> None:
        file, self._file = self._file, None
        if file is None:
            return
        try:
            file.truncate(active.size)
        except OSError:
            # The remains are beyond the next segment's first offset, and are never read.
            pass
        finally:
            file.close()

    def _recover(self) -> None:
        names = self.disk.names(self.directory)
        firsts = [first for name in names if (first := segment.first_offset(name)) is not None]
        for name in names:
            if name.endswith(".new"):
                self.disk.remove(self.directory / name)
        last_whole = -1  # The newest segment whose header has the marks before it.
        headers: list[segment.Header | None] = []
        for first in firsts:
            path = self.directory / segment.file_name(first)
            size = self.disk.size(path)
            header, begins = read_header(self.disk, path)
            if header is None:
                position = resync(self.disk, path, 0, size)
                if position is None and first == firsts[-1]:
                    self.torn_bytes += size
                    self.disk.remove(path)
                    continue
                self.damaged += 1
                begins = size if position is None else position
            else:
                last_whole = len(self._segments)
            headers.append(header)
            self._segments.append(Segment(first, path, size, begins, first))
        if self._segments:
            self._recover_marks(headers[last_whole] if last_whole >= 0 else None, last_whole)
            self._recover_tail(self._segments[-1])

    def _recover_marks(self, header: segment.Header | None, index: int) -> None:
        """Restores the positions of streams before the newest segment."""
        for pod_uid, process, mark in () if header is None else header.streams:
            self.marks[StreamID(pod_uid, process)] = mark
        for part in self._segments[max(index, 0) : -1]:
            for stretch in scan(self.disk, part.path, part.header_bytes, part.size):
                self._mark(stretch.lines)

    def _mark(self, lines: Sequence[bytes]) -> None:
        for line in lines:
            record = read_record(line, orjson.loads(line))
            if record.stream is not None:
                self.marks[record.stream] = record.sequence
                self.marks.move_to_end(record.stream)
        while len(self.marks) > STREAMS_MAX:
            self.marks.popitem(last=False)

    def _recover_tail(self, tail: Segment) -> None:
        """Finds the last whole frame of the newest segment, and the marks up to there."""
        position = tail.header_bytes
        for stretch in scan(self.disk, tail.path, position, tail.size):
            position = stretch.stop
            tail.end += len(stretch.lines)
            if stretch.after_damage:
                tail.end += 1
                self.damaged += 1
            self._mark(stretch.lines)
        if position < tail.size:
            self.torn_bytes += tail.size - position
            tail.size = position
        file = self.disk.append(tail.path)
        try:
            file.truncate(tail.size)
            file.sync()
        except OSError:
            file.close()
            raise
        self._file = file
