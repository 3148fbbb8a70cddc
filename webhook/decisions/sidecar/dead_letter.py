"""Where records go that a sink refuses for good: a file of their own, with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from pathlib import Path

    from webhook.decisions.sidecar.disk import AppendFile, Disk

SUFFIX = ".dead-letters"


class DeadLetters:
    """One sink's refused records, each ``{"sink", "reason", "record"}`` on a line.

    Synced before the cursor passes them. At ``max_bytes`` the file is set
    aside as ``.1`` in place of the one before, whose bytes are counted in
    ``discarded_bytes``: a bound, since nobody may ever read them.
    """

    def __init__(self, disk: Disk, directory: Path, sink: str, max_bytes: int) -> None:
        self._disk = disk
        self._path = directory / f"{sink}{SUFFIX}"
        self._sink = sink
        self._max_bytes = max_bytes
        self._file: AppendFile | None = None
        self._size = 0
        self.discarded_bytes = 0

    def write(self, line: bytes, reason: str) -> None:
        """Keep one record; raises :class:`OSError`."""
        entry = orjson.dumps(
            {"sink": self._sink, "reason": reason, "record": orjson.Fragment(line)},
            option=orjson.OPT_APPEND_NEWLINE,
        )
        if self._file is not None and self._size + len(entry) > self._max_bytes:
            self._rotate()
        if self._file is None:
            self._file = self._disk.append(self._path)
            self._disk.sync_directory(self._path.parent)
            self._size = self._disk.size(self._path)
        try:
            self._file.write(entry)
            self._file.sync()
        except OSError:
            self.close()
            raise
        self._size += len(entry)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _rotate(self) -> None:
        self.close()
        aside = self._path.with_name(self._path.name + ".1")
        if aside.name in self._disk.names(self._path.parent):
            self.discarded_bytes += self._disk.size(aside)
        self._disk.rename(self._path, aside)
        self._disk.sync_directory(self._path.parent)
