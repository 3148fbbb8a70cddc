"""Queues that deleted Pods left behind: found, locked, drained and removed.

Each sidecar keeps its queue in a directory named for its Pod, beside others on one persistent
volume. It holds a lock in the directory while it runs. A directory whose lock stays free for a
while has lost its Pod.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

from webhook.decisions.sidecar import segment
from webhook.decisions.sidecar.metrics import COUNTERS, counts
from webhook.decisions.sidecar.queue import Queue

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from webhook.decisions.sidecar.disk import Disk, Lock
    from webhook.decisions.sidecar.settings import SidecarSettings
    from webhook.log import Logger


class Adopter:
    """Drains abandoned queues beside ``settings.directory``, one at a time.

    :meth:`step` is called periodically; it never waits for a sink.
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
        self._lock: Lock | None = None
        self.queue: Queue | None = None
        self.adopted = 0
        self.failures = 0
        # Present from the first scrape on, so that an increase differs from a constant value.
        self.before: Counter[tuple[str, str]] = Counter(
            {(sink.drain.name, name): 0 for sink in settings.sinks for name in COUNTERS}
        )

    def step(self) -> None:
        """Looks for an abandoned queue, or ends the adoption of a drained one."""
        if self.queue is not None:
            if self.queue.finished:
                self._end(self.queue)
            return
        for directory in self._candidates():
            lock = self._disk.lock(directory)
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
        """Stops the adoption of a queue; the rest is adopted later."""
        if self.queue is not None:
            self.queue.stop()
            self.queue = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _candidates(self) -> list[Path]:
        own_directory = self._settings.directory
        return [
            path
            for name in self._disk.names(own_directory.parent)
            if name != own_directory.name
            and self._disk.is_queue(path := own_directory.parent / name)
        ]

    def _begin(self, directory: Path, lock: Lock) -> None:
        settings = self._settings
        try:
            queue = Queue(self._disk, directory, settings.limits, settings.sinks, self._logger)
        except OSError as error:
            self.failures += 1
            lock.release()
            self._logger.fault(
                "another sidecar's queue could not be taken over", error, queue=directory.name
            )
            return
        self._lock = lock
        self.queue = queue
        self._logger.info(
            "this sidecar took over the queue of one that is gone",
            queue=directory.name,
            records=queue.log.end - queue.log.first,
        )
        queue.start()
        queue.finish()

    def _end(self, queue: Queue) -> None:
        """Removes a queue that every sink has delivered whole; keeps its dead letters."""
        directory = queue.log.directory
        drained = queue.drained
        queue.stop()
        self.queue = None
        self.before.update(counts(queue))
        # A directory that cannot be removed is adopted again, but not at once.
        self._free_since.pop(directory.name, None)
        try:
            if drained:
                self._remove(directory)
                self.adopted += 1
                self._logger.info(
                    "a queue that was taken over is delivered and removed", queue=directory.name
                )
        finally:
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    def _remove(self, directory: Path) -> None:
        """Moves dead letters here, then removes the directory, its lock last of all."""
        for name in self._disk.names(directory):
            if ".dead-letters" in name:
                self._disk.rename(
                    directory / name, self._settings.directory / f"{name}.{directory.name}"
                )
        self._disk.sync_directory(self._settings.directory)
        for name in self._disk.names(directory):
            if segment.first_offset(name) is not None:
                self._disk.remove(directory / name)
        self._disk.remove_directory(directory)
        self._disk.sync_directory(directory.parent)
