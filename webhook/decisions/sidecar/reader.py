"""A sink's position in the log, and the reader of its next records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from webhook.decisions.sidecar import segment
from webhook.decisions.sidecar.scan import CHUNK_BYTES, resync, scan
from webhook.decisions.wire.framing import checked, with_checksum
from webhook.values import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from webhook.decisions.sidecar.disk import Disk
    from webhook.decisions.sidecar.log import Segment, SegmentLog

SUFFIX: Final = ".cursor"


@dataclass(frozen=True, slots=True)
class Cursor:
    """The next offset of one sink, with its segment and its position in it."""

    offset: int = 0
    segment_first: int = -1
    position: int = 0


def cursor_path(directory: Path, sink: str) -> Path:
    """Where a sink's cursor is kept."""
    return directory / f"{sink}{SUFFIX}"


def load_cursor(disk: Disk, path: Path) -> Cursor | None:
    """Returns the cursor in a file; None if the file is missing or invalid.

    Raises :class:`OSError`: the file may be readable later, and without it all records would be
    sent again.
    """
    try:
        value = orjson.loads(checked(disk.read(path, 0, 4096)))
        return Cursor(int(value["offset"]), int(value["segment"]), int(value["position"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def save_cursor(disk: Disk, path: Path, cursor: Cursor) -> None:
    """Replaces a cursor's file at once, durably; raises :class:`OSError`."""
    body = {
        "offset": cursor.offset,
        "segment": cursor.segment_first,
        "position": cursor.position,
    }
    disk.replace(path, with_checksum(orjson.dumps(body)))


class Reader:
    """Reads a log from a cursor; used by one thread.

    ``dropped`` counts records that the log dropped before they were read, ``corrupt`` records with
    damaged bytes.
    """

    __slots__ = ("_lines", "_log", "corrupt", "cursor", "dropped")

    def __init__(self, log: SegmentLog, cursor: Cursor | None) -> None:
        self._log = log
        # Without a cursor everything held is new: a sink that was just configured.
        self.cursor = Cursor(log.first) if cursor is None else cursor
        if self.cursor.offset > log.end:
            self.cursor = self._found_again(self.cursor)
        self._lines: list[bytes] = []
        self.dropped = 0
        self.corrupt = 0

    def _found_again(self, cursor: Cursor) -> Cursor:
        """Corrects a cursor beyond the log's end.

        Records before it were damaged, or the log is another.
        """
        log = self._log
        part = log.segment_of(log.end - 1)
        if part is None or part.first != cursor.segment_first or cursor.position > part.size:
            return Cursor(log.first)
        remaining = sum(
            len(stretch.lines) for stretch in scan(log.disk, part.path, cursor.position, part.size)
        )
        return Cursor(max(part.end - remaining, part.first), part.first, cursor.position)

    def peek(self, max_records: int, max_bytes: int) -> list[bytes]:
        """Returns the next records in order, at least one if there is any; the same until advanced.

        Raises :class:`OSError`, after which the same call may be made again.
        """
        if not self._lines:
            before = self.cursor, self.dropped, self.corrupt
            try:
                self._lines = self._read(max_bytes)
            except OSError:
                self.cursor, self.dropped, self.corrupt = before
                raise
        size = 0
        for index, line in enumerate(self._lines):
            size += len(line)
            if index and (index >= max_records or size > max_bytes):
                return self._lines[:index]
        return self._lines[:]

    def head(self) -> bytes | None:
        """Returns the next record, if it has been read; safe to call from another thread."""
        lines = self._lines[:1]
        return lines[0] if lines else None

    def advance(self, count: int) -> None:
        """The first ``count`` records of the last peek are done."""
        done = self._lines[:count]
        assert len(done) == count
        frames = sum(segment.FRAME.size + len(line) for line in done)
        here = self.cursor
        self.cursor = Cursor(here.offset + count, here.segment_first, here.position + frames)
        del self._lines[:count]

    def _read(self, max_bytes: int) -> list[bytes]:
        while True:
            part = self._log.segment_of(self.cursor.offset)
            if part is None:
                return []
            if self.cursor.offset < part.first:
                self.dropped += part.first - self.cursor.offset
                self.cursor = Cursor(part.first, part.first, part.header_bytes)
            if self.cursor.segment_first != part.first:
                if self.cursor.offset == part.first:
                    self.cursor = Cursor(part.first, part.first, part.header_bytes)
                elif not self._seek(part):
                    continue
            if self.cursor.position >= part.size:  # damaged places held more than one record
                self._skip_rest(part)
                continue
            try:
                lines = self._lines_at(part, max_bytes)
            except FileNotFoundError:
                # Dropped as the oldest segment between the look and the read; or deleted by a user.
                if self._log.first <= part.first:
                    self._skip_rest(part)
                continue
            if lines:
                return lines

    def _lines_at(self, part: Segment, max_bytes: int) -> list[bytes]:
        want = max(CHUNK_BYTES, min(max_bytes, 4 * CHUNK_BYTES))
        while True:
            here = self.cursor
            data = self._log.disk.read(
                part.path, here.position, min(want, part.size - here.position)
            )
            lines, _, damaged = segment.decode_frames(data)
            if lines:
                return lines[: part.end - here.offset]
            if not damaged and len(data) == want:
                want *= 2  # one frame is longer than the data read
                continue
            self._skip_damage(part)
            return []

    def _skip_damage(self, part: Segment) -> None:
        """Skips to the next whole frame, or to the end of the segment.

        The damaged place counts as one record; if it held more, the rest is counted at the end.
        """
        here = self.cursor
        position = resync(self._log.disk, part.path, here.position + 1, part.size)
        if position is None or here.offset + 1 >= part.end:
            self._skip_rest(part)
            return
        self.corrupt += 1
        self.cursor = Cursor(here.offset + 1, part.first, position)

    def _skip_rest(self, part: Segment) -> None:
        self.corrupt += part.end - self.cursor.offset
        self.cursor = Cursor(part.end, part.first, part.size)

    def _seek(self, part: Segment) -> bool:
        """Finds the cursor's offset in a segment by stepping over the records before it."""
        target = self.cursor.offset
        self.cursor = Cursor(part.first, part.first, part.header_bytes)
        while self.cursor.offset < target:
            try:
                lines = self._lines_at(part, CHUNK_BYTES)
            except FileNotFoundError:
                self._skip_rest(part)
                return False
            if not lines:
                return False
            self._lines = lines
            self.advance(min(len(lines), target - self.cursor.offset))
            self._lines = []
        return True
