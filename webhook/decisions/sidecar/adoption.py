"""Queues that deleted pods left behind: found, locked, drained and removed.

Each sidecar keeps its queue in a directory of its own, named for its pod,
beside others on one persistent volume, and holds a lock there while it lives.
A directory whose lock stays free for a while has lost its pod.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from webhook.decisions.sidecar import segment
from webhook.decisions.sidecar.metrics import counts
from webhook.decisions.sidecar.queue import Queue

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from webhook.decisions.sidecar.disk import Disk
    from webhook.decisions.sidecar.settings import SidecarSettings
    from webhook.log import Logger

LOCK: Final = "lock"


class DirectoryLock:
    """An exclusive lock on a queue's directory, gone with the process that holds it."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def try_acquire(cls, directory: Path) -> DirectoryLock | None:
        """The lock, or None while another process holds it; raises :class:`OSError`.

        A directory removed between opening and locking is not locked at all.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(directory / LOCK, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            here = os.fstat(descriptor)
            there = (directory / LOCK).stat()
        except (BlockingIOError, FileNotFoundError):
            os.close(descriptor)
            return None
        except OSError:
            os.close(descriptor)
            raise
        if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino):
            os.close(descriptor)
            return None
        return cls(descriptor)

    def release(self) -> None:
        """Let others have the directory."""
        os.close(self._descriptor)


class Adopter:
    """Drains abandoned queues beside ``settings.directory``, one at a time.

    :meth:`step` is called now and then; it never waits for a sink.
    """

    def __init__(
        self,
        disk: Disk,
        settings: SidecarSettings,
        logger: Logger,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._disk = disk
        self._settings = settings
        self._logger = logger
        self._clock = clock
        self._free_since: dict[str, float] = {}
        self._lock: DirectoryLock | None = None
        self.queue: Queue | None = None
        self.adopted = 0
        self.failures = 0
        self.before: Counter[tuple[str, str]] = Counter()

    def step(self) -> None:
        """Look for an abandoned queue, or end the adoption of one that is drained."""
        if self.queue is not None:
            if self.queue.finished:
                self._end(self.queue)
            return
        for directory in self._candidates():
            lock = DirectoryLock.try_acquire(directory)
            if lock is None:
                self._free_since.pop(directory.name, None)
                continue
            since = self._free_since.setdefault(directory.name, self._clock())
            assert self._settings.adopt_after_seconds is not None
            if self._clock() - since < self._settings.adopt_after_seconds:
                lock.release()
                continue
            self._begin(directory, lock)
            return

    def stop(self) -> None:
        """Leave a queue under adoption as far as it has come."""
        if self.queue is not None:
            self.queue.stop()
            self.queue = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _candidates(self) -> list[Path]:
        own = self._settings.directory
        return [
            path
            for name in self._disk.names(own.parent)
            if name != own.name
            and (path := own.parent / name).is_dir()
            and not path.is_symlink()
            and (path / LOCK).exists()
        ]

    def _begin(self, directory: Path, lock: DirectoryLock) -> None:
        settings = self._settings
        try:
            queue = Queue(self._disk, directory, settings.limits, settings.sinks, self._logger)
        except OSError as error:
            self.failures += 1
            self._logger.fault("adoption failed", error, queue=directory.name)
            lock.release()
            return
        self._lock = lock
        self.queue = queue
        self._logger.info(
            "queue adopted", queue=directory.name, records=queue.log.end - queue.log.first
        )
        queue.start()
        queue.finish()

    def _end(self, queue: Queue) -> None:
        """Remove a queue that every sink has taken whole; keep its dead letters."""
        directory = queue.log.directory
        drained = queue.drained
        queue.stop()
        self.queue = None
        self.before.update(counts(queue))
        if drained:
            self._remove(directory)
            self._free_since.pop(directory.name, None)
            self.adopted += 1
            self._logger.info("adopted queue drained", queue=directory.name)
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _remove(self, directory: Path) -> None:
        """Move dead letters here, then remove the directory, its lock last of all."""
        for name in self._disk.names(directory):
            if ".dead-letters" in name:
                self._disk.rename(
                    directory / name, self._settings.directory / f"{name}.{directory.name}"
                )
        self._disk.sync_directory(self._settings.directory)
        for name in self._disk.names(directory):
            if segment.first_offset(name) is not None:
                self._disk.remove(directory / name)
        shutil.rmtree(directory)
        self._disk.sync_directory(directory.parent)
