"""Reads segments from end to end: headers of any length, and whole frames after damage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.decisions.sidecar import segment
from webhook.decisions.wire.framing import MAX_LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from webhook.decisions.sidecar.disk import Disk

CHUNK_BYTES: Final = 256 * 1024
"""The bytes read at a time: a batch for a sink in one read, and little of the 40 MiB limit."""

WINDOW_BYTES: Final = 4 * MAX_LINE_BYTES
"""The bytes searched at a time for a whole frame after damage: more than the longest record."""


class Stretch(NamedTuple):
    """Consecutive records, the end of their frames, and whether damage lies before them."""

    lines: list[bytes]
    stop: int
    after_damage: bool


def read_header(disk: Disk, path: Path) -> tuple[segment.Header | None, int]:
    """Returns a segment's header and its end; None and 0 if it is torn or damaged."""
    data = disk.read(path, 0, CHUNK_BYTES)
    stop = segment.header_end(data)
    if stop > len(data):
        data = disk.read(path, 0, stop)
    header = segment.decode_header(data)
    return header, 0 if header is None else stop


def resync(disk: Disk, path: Path, position: int, end: int) -> int | None:
    """Returns the position of the first whole frame from ``position`` on.

    None if none before ``end``.
    """
    while position < end:
        data = disk.read(path, position, min(WINDOW_BYTES, end - position))
        offset = segment.find_frame(data)
        if offset >= 0:
            return position + offset
        if len(data) < WINDOW_BYTES:
            return None
        position += len(data) - MAX_LINE_BYTES - segment.FRAME.size
    return None


def scan(disk: Disk, path: Path, position: int, end: int) -> Iterator[Stretch]:
    """Yields the frames of a file from ``position``, a chunk at a time.

    It skips damage, and ends if no whole frame follows before ``end``.
    """
    want = CHUNK_BYTES
    after_damage = False
    while position < end:
        data = disk.read(path, position, min(want, end - position))
        lines, stop, damaged = segment.decode_frames(data)
        if lines:
            position += stop
            yield Stretch(lines, position, after_damage)
            want, after_damage = CHUNK_BYTES, False
        elif not damaged and len(data) == want:
            want *= 2  # one frame is longer than a chunk
        else:
            following = resync(disk, path, position + 1, end)
            if following is None:
                return
            position, want, after_damage = following, CHUNK_BYTES, True
