"""A file with rotation by size and age, each batch synced before it counts as delivered."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from webhook.decisions.sinks.sink import SinkUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.decisions.configuration import Section
    from webhook.decisions.sinks.sink import Sink


@dataclass(frozen=True, slots=True)
class FileSettings:
    """Where to write and when to rotate; ``max_files`` counts the current one too."""

    path: Path
    max_bytes: int = 64 * 1024 * 1024
    max_age_seconds: float = 24 * 3600.0
    max_files: int = 8


class RotatingFile:
    """Appends lines; ``path.1`` is the youngest of the rotated files."""

    def __init__(self, settings: FileSettings, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._clock = clock
        self._descriptor: int | None = None
        self._size = 0
        self._opened = 0.0

    def send(self, lines: Sequence[bytes]) -> None:
        """Append and sync; a batch is never split between two files."""
        data = b"\n".join(lines) + b"\n"
        try:
            descriptor = self._writable(len(data))
            start = self._size
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(descriptor, view) :]
                os.fdatasync(descriptor)
            except OSError:
                os.ftruncate(descriptor, start)  # no half line, and nothing twice
                raise
            self._size += len(data)
        except OSError as error:
            self.close()
            raise SinkUnavailable(f"{self._settings.path}: {error.strerror}") from None

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _writable(self, needed: int) -> int:
        if self._descriptor is not None:
            old = self._clock() - self._opened >= self._settings.max_age_seconds
            if self._size and (old or self._size + needed > self._settings.max_bytes):
                self.close()
                self._rotate()
        if self._descriptor is None:
            path = self._settings.path
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            self._descriptor = os.open(path, flags, 0o600)
            self._size = _repair(self._descriptor)
            self._opened = self._clock()
            _sync_directory(path.parent)
        return self._descriptor

    def _rotate(self) -> None:
        path = self._settings.path
        last = self._settings.max_files - 1
        for number in range(last - 1, 0, -1):
            source = path.with_name(f"{path.name}.{number}")
            if source.exists():
                source.replace(path.with_name(f"{path.name}.{number + 1}"))
        if last:
            path.replace(path.with_name(f"{path.name}.1"))
        else:
            path.unlink()


def _repair(descriptor: int) -> int:
    """Cut off a line that a crash left unfinished; the size of the file after that."""
    size = os.fstat(descriptor).st_size
    end = size
    while end:
        start = max(0, end - 65536)
        newline = os.pread(descriptor, end - start, start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    if end < size:
        os.ftruncate(descriptor, end)
    return end


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def configure(section: Section) -> Callable[[], Sink]:
    """Settings ``path``, ``maxBytes``, ``maxAgeSeconds``, ``maxFiles``."""
    settings = FileSettings(
        path=Path(section.text("path")),
        max_bytes=section.integer("maxBytes", 64 * 1024 * 1024, least=1024),
        max_age_seconds=section.number("maxAgeSeconds", 24 * 3600.0, least=1),
        max_files=section.integer("maxFiles", 8),
    )
    section.finish()
    return lambda: RotatingFile(settings)
