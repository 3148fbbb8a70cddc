"""Group commit: records that arrive during one sync go into the next.

Receivers hand over records on the event loop. One thread appends and syncs them. Then, on the event
loop, the receivers of streams with newly durable records are notified. There is no other way to an
acknowledgement.
"""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import TYPE_CHECKING, Final

import orjson

from webhook.backoff import Backoff
from webhook.decisions.sidecar.crash import crash_on_bug
from webhook.decisions.sidecar.log import LogFull, SegmentLog
from webhook.decisions.wire.framing import ProtocolError, Record, StreamID, checked, with_checksum

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from webhook.decisions.sidecar.disk import Disk
    from webhook.decisions.sidecar.streams import Streams
    from webhook.log import Logger

NAME: Final = "owners"
BYTES_MAX: Final = 8 * 1024 * 1024
"""More than as many streams as are remembered need, with names of the greatest length."""


def load_owners(disk: Disk, directory: Path) -> dict[StreamID, str]:
    """Returns the kept owners; empty if the file is missing or invalid.

    Raises :class:`OSError`: the file may be readable later. Without the owners, any peer could take
    over a stream.
    """
    try:
        rows = orjson.loads(checked(disk.read(directory / NAME, 0, BYTES_MAX)))
        return {StreamID(str(pod), str(process)): str(owner) for pod, process, owner in rows}
    except (FileNotFoundError, ValueError, TypeError):
        return {}


def save_owners(disk: Disk, directory: Path, owners: Mapping[StreamID, str]) -> None:
    """Replaces the file of owners, durably; raises :class:`OSError`."""
    rows = [[stream.pod_uid, stream.process, owner] for stream, owner in owners.items()]
    disk.replace(directory / NAME, with_checksum(orjson.dumps(rows)))


PENDING_BYTES_MAX: Final = 1 * 1024 * 1024
"""The most bytes received and not yet durable: some milliseconds of a disk. Four times as much was
no faster."""

FULL_SECONDS: Final = 1.0
"""Between two looks whether a full log has room; a sink's progress wakes sooner."""


class Intake:
    """Takes records from receivers and makes them durable; belongs to one event loop.

    ``received`` counts new records taken in, ``committed`` those durable: their difference is in
    memory. ``blocked`` is whether the log has no room.
    """

    def __init__(self, log: SegmentLog, streams: Streams, logger: Logger) -> None:
        self._log = log
        self.streams = streams
        self._logger = logger
        self._loop = asyncio.get_running_loop()
        self._condition = threading.Condition()
        self._pending: list[Record] = []
        self._pending_bytes = 0
        self._owners: dict[StreamID, str] | None = None
        self._began = streams.began
        self._closing = False
        self._giving_up = False
        self._room = asyncio.Event()
        self._room.set()
        self._listeners: dict[object, Callable[[], None]] = {}
        self._thread = threading.Thread(target=self._run, name="commit", daemon=True)
        self._done = asyncio.Event()
        self.received = 0
        self.committed = 0
        self.commits = 0
        self.commit_failures = 0
        self.blocked = False

    @property
    def has_room(self) -> bool:
        """Whether receivers may read more."""
        return self._room.is_set()

    @property
    def is_durable(self) -> bool:
        """Whether everything that was taken in is."""
        return self.received == self.committed

    async def wait_for_room(self) -> None:
        """Waits until receivers may read more."""
        await self._room.wait()

    def start(self) -> None:
        """Starts the committing thread."""
        self._thread.start()

    def listen(self, key: object, callback: Callable[[], None]) -> None:
        """Calls back after each commit, on the event loop, until :meth:`unlisten`."""
        self._listeners[key] = callback

    def unlisten(self, key: object) -> None:
        """Stops calling back."""
        self._listeners.pop(key, None)

    def accept(self, records: Sequence[Record], owner: str) -> list[ProtocolError]:
        """Queues the new records for the next commit; returns the errors of refused ones.

        Refused are records of streams with another owner, and numbers that cannot come next.
        """
        new: list[Record] = []
        refused: list[ProtocolError] = []
        size = 0
        streams = self.streams
        for record in records:
            if record.stream is not None:
                try:
                    if not streams.receive(record.stream, record.sequence, owner):
                        continue
                except ProtocolError as error:
                    refused.append(error)
                    continue
            new.append(record)
            size += len(record.line)
        if new:
            self._queue(new, size)
        return refused

    def _queue(self, records: list[Record], size: int) -> None:
        self.received += len(records)
        with self._condition:
            if self.streams.began != self._began:
                self._began = self.streams.began
                self._owners = self.streams.owners
            self._pending += records
            self._pending_bytes += size
            if self._pending_bytes > PENDING_BYTES_MAX:
                self._room.clear()
            self._condition.notify()

    async def close(self) -> None:
        """Commits pending records, then stops; call after the last :meth:`accept`.

        A full log can delay this without end, so the caller needs a deadline.
        """
        with self._condition:
            self._closing = True
            self._condition.notify()
        await self._done.wait()

    def abandon(self) -> None:
        """Stops without committing pending records, which were never acknowledged."""
        with self._condition:
            self._closing = self._giving_up = True
            self._pending.clear()
            self._condition.notify()
        self._log.wake()

    def _run(self) -> None:
        with crash_on_bug("committing", self._logger):
            self._commit_all()

    def _commit_all(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: bool(self._pending) or self._closing)
                records, self._pending = self._pending, []
                self._pending_bytes = 0
                owners, self._owners = self._owners, None
            if not records:
                self._notify(self._done.set)
                return
            for lines, marks in self._parts(records):
                if not self._append(lines, marks, owners):
                    break
                owners = None
                self._notify(partial(self._committed, len(lines), marks))

    def _parts(
        self, records: Sequence[Record]
    ) -> Iterator[tuple[list[bytes], dict[StreamID, int]]]:
        """Yields parts to append at once: a segment each at most, so that they fit a small queue."""
        lines: list[bytes] = []
        marks: dict[StreamID, int] = {}
        size = 0
        for record in records:
            if lines and size + len(record.line) > self._log.limits.segment_bytes:
                yield lines, marks
                lines, marks, size = [], {}, 0
            lines.append(record.line)
            size += len(record.line)
            if record.stream is not None:
                marks[record.stream] = record.sequence
        yield lines, marks

    def _append(
        self,
        lines: list[bytes],
        marks: dict[StreamID, int],
        owners: dict[StreamID, str] | None,
    ) -> bool:
        """Appends until it succeeds; False if :meth:`abandon` was called before."""
        backoff = Backoff(0.05, 2.0)
        while True:
            try:
                if owners is not None:
                    save_owners(self._log.disk, self._log.directory, owners)
                    owners = None
                self._log.append(lines, marks)
            except LogFull as full:
                was_blocked, self.blocked = self.blocked, True
                if not was_blocked:
                    self._logger.warning("the queue is full: senders wait", reason=str(full))
                self._log.wait_trimmed(FULL_SECONDS)
            except OSError as error:
                self.commit_failures += 1
                self.blocked = True
                failures = backoff.failures
                if failures & (failures + 1) == 0:  # the first, and each doubling
                    self._logger.warning(
                        "records cannot be written to the queue; trying again",
                        error=str(error),
                        directory=str(self._log.directory),
                        failures=failures + 1,
                    )
                self._log.wait_trimmed(backoff.next_seconds())
            else:
                self.blocked = False
                self.commits += 1
                return True
            if self._giving_up:
                return False

    def _notify(self, callback: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(callback)
        except RuntimeError:
            # The loop is closed: the process is ending without waiting for us.
            return

    def _committed(self, count: int, marks: dict[StreamID, int]) -> None:
        self.committed += count
        self.streams.commit(marks)
        self._room.set()
        for callback in list(self._listeners.values()):
            callback()
