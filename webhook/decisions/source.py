"""Records read back: from a file of lines, standard input, or a sidecar's queue as it grows."""

from __future__ import annotations

import errno
import gzip
import io
import os
import sys
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson

from webhook.api.shapes import object_of
from webhook.decisions.exporter.record import SPEC_VERSION
from webhook.decisions.sidecar import segment
from webhook.decisions.sidecar.disk import LOCK, OSDisk
from webhook.decisions.sidecar.scan import read_header, scan

POLL_SECONDS: Final = 0.2
"""The pause between two looks for added lines: short for a reader, negligible for a disk."""


_GZIP: Final = b"\x1f\x8b"
"""The first bytes of a compressed file (RFC 1952)."""

_MAJOR: Final = SPEC_VERSION.partition(".")[0]

_QUEUES_MAX: Final = 3
"""Queues that a complaint about the folder around them names."""

_TEXTS: Final = (
    "podUID",
    "process",
    "eventType",
    "verdict",
    "enforcementPoint",
    "timestamp",
    "resourceNamespace",
)
"""The fields of a record that records are compared and counted by."""


def _is_record(value: Any) -> bool:
    """Whether a line has the shape of a record: senders may send any object to a sidecar.

    A container's log mixes records with the sidecar's own lines, which have no ``eventType``. In
    records of another major version the fields may have another meaning.
    """
    if type(value) is not dict or "eventType" not in value:
        return False
    version = value.get("specVersion", SPEC_VERSION)
    if version != SPEC_VERSION and str(version).partition(".")[0] != _MAJOR:
        return False
    results, errors = value.get("results", []), value.get("errors", [])
    excused = value.get("excused", [])
    return (
        all(type(value.get(name, "")) is str for name in _TEXTS)
        and type(value.get("sequence", 0)) is int
        and type(errors) is list
        and type(results) is list
        and type(excused) is list
        and all(
            type(result) is dict and type(result.get("constraint", {})) is dict
            for result in (*results, *excused)
        )
    )


def _is_compressed(file: BinaryIO) -> bool:
    """Whether a file begins as gzip's do; nothing is read from it."""
    return isinstance(file, io.BufferedReader) and file.peek(len(_GZIP)).startswith(_GZIP)


def excused_by(item: Mapping[str, Any]) -> str:
    """Returns the exception of an item of ``excused``, by kind and name."""
    exception = object_of(item.get("exception"))
    place = f"{exception['namespace']}/" if exception.get("namespace") else ""
    return f"{exception.get('kind', '')} {place}{exception.get('name', '')}"


def actions_of(result: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the actions of a recorded violation; those at the place of the review if it is scoped."""
    action, scoped = str(result.get("enforcementAction", "")), result.get("enforcementActions")
    return tuple(map(str, scoped)) if action == "scoped" and type(scoped) is list else (action,)


def first_deliveries(
    records: Iterable[Mapping[str, Any]], repeated: Callable[[], object] = lambda: None
) -> Iterator[Mapping[str, Any]]:
    """Yields each record once, however often it was delivered; calls ``repeated`` for the others.

    Records of other senders may have no number, and then all count.
    """
    seen: defaultdict[tuple[Any, Any], set[Any]] = defaultdict(set)
    for record in records:
        number = record.get("sequence")
        if number is not None:
            known = seen[record.get("podUID"), record.get("process")]
            if number in known:
                repeated()
                continue
            known.add(number)
        yield record


class RecordSource:
    """The records of ``path``, each a mapping; ``unreadable`` counts other lines.

    A directory is a sidecar's queue and is only read. A file may be compressed by gzip, and so may
    standard input ("-"). With ``follow`` the records never end, but wait for more, except for those
    that are compressed. Raises :class:`OSError`.
    """

    def __init__(self, path: Path, *, follow: bool = False) -> None:
        self._path = path
        self._follow = follow
        self.unreadable = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for line in self._lines():
            if not line.strip():
                continue
            try:
                record = orjson.loads(line)
            except orjson.JSONDecodeError:
                record = None
            if _is_record(record):
                yield record
            else:
                self.unreadable += 1

    def _lines(self) -> Iterator[bytes]:
        if str(self._path) == "-":
            lines: BinaryIO = sys.stdin.buffer
            yield from self._decompressed(lines) if _is_compressed(lines) else lines
        elif self._path.is_dir():
            yield from self._queue()
        else:
            yield from self._file()

    def _file(self) -> Iterator[bytes]:
        while True:
            with self._path.open("rb") as file:
                if _is_compressed(file):
                    yield from self._decompressed(file)
                    return
                rest, is_left = b"", False
                while True:
                    for line in file:
                        if line.endswith(b"\n"):
                            yield rest + line
                            rest = b""
                        else:
                            rest += line  # still being written, or the last line
                    if is_left or not self._follow:
                        break
                    time.sleep(POLL_SECONDS)
                    is_left = self._is_another(
                        file
                    )  # lines added before the rotation are read first
                if rest:
                    yield rest
            if not self._follow:
                return

    def _decompressed(self, file: BinaryIO) -> Iterator[bytes]:
        try:
            with gzip.open(file) as lines:
                yield from lines
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            message = f"the compressed file is damaged or not complete ({error})"
            raise OSError(errno.EINVAL, message, str(self._path)) from None

    def _is_another(self, file: BinaryIO) -> bool:
        """Whether the file of this name was replaced: rotated by its sink, or emptied by a user."""
        try:
            now = self._path.stat()
        except FileNotFoundError:
            return False
        if now.st_ino != os.fstat(file.fileno()).st_ino:
            return True
        return file.seekable() and now.st_size < file.tell()  # a pipe has neither

    def _queue(self) -> Iterator[bytes]:
        disk = OSDisk()
        first, position = -1, 0
        _check_queue(disk, self._path)
        while True:
            firsts = [
                offset
                for name in disk.names(self._path)
                if (offset := segment.first_offset(name)) is not None and offset >= first
            ]
            for current in firsts:
                path = self._path / segment.file_name(current)
                try:
                    if current != first:
                        header, position = read_header(disk, path)
                        if header is None and current == firsts[-1]:
                            break  # just begun: complete at the next look
                        first = current
                    for stretch in scan(disk, path, position, disk.size(path)):
                        position = stretch.stop
                        yield from stretch.lines
                except FileNotFoundError:
                    continue  # delivered to all sinks and removed
            if not self._follow:
                return
            time.sleep(POLL_SECONDS)


def _check_queue(disk: OSDisk, directory: Path) -> None:
    """Raises :class:`OSError` for a directory that no sidecar has used: it would pass for empty."""
    names = disk.names(directory)
    if LOCK in names or any(segment.first_offset(name) is not None for name in names):
        return
    queues = [name for name in names if disk.is_queue(directory / name)]
    message = "no sidecar's queue"
    if queues:
        message += f"; there are {len(queues)} in it: {', '.join(queues[:_QUEUES_MAX])}"
    raise OSError(errno.ENOENT, message, str(directory))
