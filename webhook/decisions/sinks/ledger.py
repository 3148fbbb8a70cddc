"""Records deliveries beside the delivered files, so that a batch sent twice is written once.

A killed sidecar sends the records again that its cursor had not passed. The ledger has, for each
file, the number of delivered bytes, and for each sender's stream, the last delivered sequence
number. Bytes beyond were left by a kill and are cut off; records up to the number are skipped.
Several queues may write to one place, each with marks of its own, one at a time by a lock.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections import OrderedDict
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

import orjson

from webhook.decisions.sinks.sink import Item, RecordsRefused
from webhook.decisions.wire.framing import checked, read_record, with_checksum
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from webhook.log import Logger

MARKS_MAX: Final = 256
"""The most streams remembered; the least recent is forgotten first. A mark matters for records sent
again after a kill, a second's worth: the streams of live replicas."""

LOCK_SECONDS: Final = 5.0
LOCK_POLL_SECONDS: Final = 0.02
"""The pause between attempts to lock the files against other writers: one batch takes some
milliseconds."""


@dataclass(frozen=True, slots=True)
class Extent:
    """A file as far as it was delivered; ``began`` is when it was, in seconds since 1970."""

    inode: int
    size: int
    began: float


@dataclass(slots=True)
class Entries:
    """The ledger's content; ``renames`` are under way: name now to name then."""

    files: dict[str, Extent] = field(default_factory=dict)
    marks: OrderedDict[tuple[str, str, str], int] = field(default_factory=OrderedDict)
    renames: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fresh:
    """A decoded record that was not delivered yet."""

    value: dict[str, Any]
    lines: Sequence[bytes]
    stream: tuple[str, str]
    sequence: int


class Ledger:
    """The ledger ``name`` of a directory, used by one queue (``origin``) of maybe several.

    All use is within :meth:`locked`; uncommitted changes are lost. Raises :class:`OSError` from the
    disk.
    """

    def __init__(
        self, directory: Path, name: str, origin: str, logger: Logger, *, file_mode: int = 0o600
    ) -> None:
        self.directory = directory
        self._path = directory / name
        self._lock_path = directory / f"{name}.lock"
        self._origin = origin
        self._logger = logger
        self._file_mode = file_mode
        self._seen: tuple[int, int, int] | None = None
        self.entries = Entries()

    @contextlib.contextmanager
    def locked(self) -> Iterator[bool]:
        """Locks the files and finishes interrupted renames; yields whether a ledger exists.

        After a fault nothing is kept in memory: the next use reads the ledger again.
        """
        self.directory.mkdir(mode=0o750, parents=True, exist_ok=True)
        descriptor = os.open(
            self._lock_path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        try:
            _lock(descriptor)
            state = self._load()
            if self.entries.renames:
                self.settle()
            yield state
        except BaseException:
            self._seen = None
            raise
        finally:
            os.close(descriptor)

    def fresh(self, items: Sequence[Item]) -> list[Fresh]:
        """Returns the records of a batch not delivered before; marks them for the next commit.

        Raises :class:`RecordsRefused` for a line that is not a record.
        """
        values: list[Fresh] = []
        staged: dict[tuple[str, str, str], int] = {}
        marks = self.entries.marks
        for item in items:
            value = _object(item.record)
            record = read_record(item.record, value)
            if record.stream is None:
                values.append(Fresh(value, item.lines, ("", ""), 0))
                continue
            stream = record.stream.pod_uid, record.stream.process
            key = (self._origin, *stream)
            if record.sequence <= staged.get(key, marks.get(key, 0)):
                continue
            staged[key] = record.sequence
            values.append(Fresh(value, item.lines, stream, record.sequence))
        for key, sequence in staged.items():
            marks[key] = sequence
            marks.move_to_end(key)
        while len(marks) > MARKS_MAX:
            marks.popitem(last=False)
        return values

    def append(self, name: str, lines: Sequence[bytes]) -> None:
        """Appends lines to a file, synced; bytes beyond its delivered ones are cut off first."""
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self.directory / name, flags, self._file_mode)
        try:
            extent = self._extent(name, os.fstat(descriptor))
            os.ftruncate(descriptor, extent.size)
            data = b"\n".join(lines) + b"\n"
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(descriptor, view) :]
                os.fdatasync(descriptor)
            except OSError:
                os.ftruncate(descriptor, extent.size)  # a disk that is full gets its bytes back
                raise
        finally:
            os.close(descriptor)
        self.entries.files[name] = Extent(extent.inode, extent.size + len(data), extent.began)

    def extent(self, name: str) -> Extent | None:
        """Returns the delivered part of a file; None if the file is missing."""
        try:
            status = (self.directory / name).stat()
        except FileNotFoundError:
            return None
        return self._extent(name, status)

    def take_in(self, name: str) -> None:
        """Counts the whole lines of a file unknown to this ledger as delivered."""
        path = self.directory / name
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            status = os.fstat(file.fileno())
            size = _end_of_lines(file.fileno(), status.st_size)
            self.entries.files[name] = Extent(status.st_ino, size, status.st_mtime)

    def rename(self, name: str, target: str) -> None:
        """Rename at the next :meth:`settle`; with :meth:`commit` before, a kill cannot undo it."""
        self.entries.renames[name] = target

    def commit(self) -> None:
        """Makes the entries durable: from now on they define the delivered records."""
        entries = self.entries
        body = with_checksum(
            orjson.dumps(
                {
                    "files": {
                        name: [extent.inode, extent.size, extent.began]
                        for name, extent in entries.files.items()
                    },
                    "marks": [[*key, sequence] for key, sequence in entries.marks.items()],
                    "renames": entries.renames,
                }
            )
        )
        beside = self._path.with_name(f"{self._path.name}.new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(beside, flags, 0o600)
        try:
            view = memoryview(body)
            while view:
                view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        beside.replace(self._path)
        self.sync_names()
        self._seen = _version(self._path)

    def settle(self) -> None:
        """Carries out the committed renames; those already done are skipped."""
        entries = self.entries
        for name, target in entries.renames.items():
            with contextlib.suppress(FileNotFoundError):
                (self.directory / name).replace(self.directory / target)
        self.sync_names()
        entries.renames = {}

    def sync_names(self) -> None:
        """Makes created, changed and removed names durable."""
        descriptor = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _extent(self, name: str, status: os.stat_result) -> Extent:
        known = self.entries.files.get(name)
        if known is None or known.inode != status.st_ino:
            return Extent(status.st_ino, 0, time.time())
        # Shorter than before: a user has emptied it, and it continues from there.
        return Extent(known.inode, min(known.size, status.st_size), known.began)

    def _load(self) -> bool:
        version = _version(self._path)
        if version is None:
            self.entries = Entries()
        elif version != self._seen:
            state = _read(self._path)
            if state is None:
                self._logger.warning(
                    "the ledger is damaged: records of audits may repeat", file=str(self._path)
                )
                self.entries = Entries()
                return False
            self.entries = state
        self._seen = version
        return version is not None


def _version(path: Path) -> tuple[int, int, int] | None:
    """Identifies a version of the ledger; each version is a new file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _read(path: Path) -> Entries | None:
    """Reads a ledger; None for an invalid file."""
    try:
        value = orjson.loads(checked(path.read_bytes()))
        return Entries(
            {
                str(name): Extent(int(extent[0]), int(extent[1]), float(extent[2]))
                for name, extent in value["files"].items()
            },
            OrderedDict(
                ((str(origin), str(pod), str(process)), int(sequence))
                for origin, pod, process, sequence in value["marks"]
            ),
            {str(name): str(target) for name, target in value["renames"].items()},
        )
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return None


def _lock(descriptor: int) -> None:
    """Waits for the lock for a limited time; raises OSError if another writer keeps it."""
    until = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise OSError(errno.EBUSY, "another sidecar is writing here") from None
            time.sleep(LOCK_POLL_SECONDS)
        else:
            return


def _end_of_lines(descriptor: int, size: int) -> int:
    """Returns the size of a file without a last line that was never finished."""
    end = size
    while end:
        start = max(0, end - 65536)
        newline = os.pread(descriptor, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def _object(line: bytes) -> dict[str, Any]:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise RecordsRefused(f"not JSON: {error}") from None
    if type(record) is not dict:
        raise RecordsRefused("not a JSON object")
    return record
