"""The file for records that a sink has refused for good, with the reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

if TYPE_CHECKING:
    from pathlib import Path

    from webhook.decisions.sidecar.disk import AppendFile, Disk

SUFFIX = ".dead-letters"

CHUNK_BYTES: Final = 64 * 1024


class DeadLetters:
    """One sink's refused records, each ``{"sink", "reason", "record"}`` on a line.

    A record is synced before the cursor passes it. The remains of a failed write are cut off, so
    that the next record begins on its own line. At ``max_bytes`` the file is renamed to ``.1``, in
    place of the previous one. The bound is needed since the file may never be read.
    """

    def __init__(self, disk: Disk, directory: Path, sink: str, max_bytes: int) -> None:
        self._disk = disk
        self._path = directory / f"{sink}{SUFFIX}"
        self._sink = sink
        self._max_bytes = max_bytes
        self._file: AppendFile | None = None
        self._size = 0
        self._torn = False

    def write(self, line: bytes, reason: str) -> None:
        """Keeps one record; raises :class:`OSError`."""
        entry = orjson.dumps(
            {"sink": self._sink, "reason": reason, "record": orjson.Fragment(line)},
            option=orjson.OPT_APPEND_NEWLINE,
        )
        if self._file is not None and self._size + len(entry) > self._max_bytes:
            self._rotate()
        file = self._open() if self._file is None else self._file
        if self._torn:
            entry = b"\n" + entry
        try:
            file.write(entry)
            file.sync()
        except OSError:
            self._cut(file)
            self.close()
            raise
        self._torn = False
        self._size += len(entry)

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _cut(self, file: AppendFile) -> None:
        """Cuts off a failed write: after a failed sync the page cache proves nothing."""
        try:
            file.truncate(self._size)
        except OSError:
            self._torn = True

    def _open(self) -> AppendFile:
        """Returns the file, to which whole lines are appended; its name is durable."""
        file = self._disk.append(self._path)
        try:
            self._disk.sync_directory(self._path.parent)
            size = self._disk.size(self._path)
            whole = self._end_of_lines(size)
            if whole < size:
                file.truncate(whole)
        except OSError:
            file.close()
            raise
        self._file, self._size = file, whole
        return file

    def _end_of_lines(self, size: int) -> int:
        """Where the last whole line ends."""
        while size:
            start = max(size - CHUNK_BYTES, 0)
            newline = self._disk.read(self._path, start, size - start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            size = start
        return 0

    def _rotate(self) -> None:
        self.close()
        aside = self._path.with_name(self._path.name + ".1")
        self._disk.rename(self._path, aside)
        self._disk.sync_directory(self._path.parent)
