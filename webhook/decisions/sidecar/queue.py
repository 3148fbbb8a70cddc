"""One directory's log with a worker for each sink, for a sidecar's own or an adopted queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from webhook.decisions.rules import RecordSelection
from webhook.decisions.sidecar import gatekeeper
from webhook.decisions.sidecar.dead_letter import DeadLetters
from webhook.decisions.sidecar.drain import Drain, Formatter
from webhook.decisions.sidecar.log import LogLimits, SegmentLog

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from webhook.decisions.sidecar.disk import Disk
    from webhook.decisions.sidecar.settings import SinkSettings
    from webhook.log import Logger

JOIN_SECONDS = 5.0
"""How long to wait for a worker to finish its current attempt; a worker that hangs longer is left
alone."""


def _formatter(sink: SinkSettings) -> Formatter | None:
    """Returns the formatter of a sink; it gives nothing for records that are not selected."""
    selection = sink.selection
    events = gatekeeper.events if sink.format == "gatekeeper" else None
    if selection == RecordSelection():
        return events

    def select(line: bytes) -> Sequence[bytes]:
        record = orjson.loads(line)
        if type(record) is dict and not selection.takes(record):
            return ()
        return (line,) if events is None else events(line)

    return select


class Queue:
    """A log and its workers; raises :class:`OSError` if the directory cannot be used."""

    def __init__(
        self,
        disk: Disk,
        directory: Path,
        limits: LogLimits,
        sinks: Sequence[SinkSettings],
        logger: Logger,
    ) -> None:
        self._logger = logger
        self.log = SegmentLog(disk, directory, limits)
        if self.log.torn_bytes:
            logger.warning(
                "the queue's last write was cut short; it was removed", bytes=self.log.torn_bytes
            )
        if self.log.damaged:
            logger.error(
                "the queue is damaged: records at these places are lost",
                directory=str(directory),
                places=self.log.damaged,
            )
        self.dead_letters = [
            DeadLetters(disk, directory, sink.drain.name, sink.dead_letter_bytes) for sink in sinks
        ]
        self.drains = [
            Drain(
                self.log,
                sink.drain,
                sink.make(f"{sink.drain.name}@{directory.name}", logger),
                letters,
                formatter=_formatter(sink),
                on_progress=self._trim,
                logger=logger,
            )
            for sink, letters in zip(sinks, self.dead_letters, strict=True)
        ]
        # The previous process may have failed to remove delivered segments. If they fill the queue,
        # nothing else would ever make room. The cursors must be durable before the removal.
        disk.sync_directory(directory)
        self._trim()

    def start(self) -> None:
        """Starts draining."""
        for drain in self.drains:
            drain.start()

    def finish(self) -> None:
        """Makes the workers end after all records are delivered."""
        for drain in self.drains:
            drain.finish()

    @property
    def finished(self) -> bool:
        """Whether every drain has ended."""
        return not any(drain.is_alive() for drain in self.drains)

    @property
    def drained(self) -> bool:
        """Whether every sink has taken everything."""
        return all(drain.lag == 0 for drain in self.drains)

    def stop(self) -> None:
        """Stops the workers at once, and closes the log."""
        for drain in self.drains:
            drain.stop()
        for drain in self.drains:
            drain.join(JOIN_SECONDS)
        self.log.close()

    def _trim(self) -> None:
        try:
            self.log.trim(min(drain.counters.durable_offset for drain in self.drains))
        except OSError as error:
            # Tried again with the next cursor, or by a thread that finds the log full.
            self._logger.warning(
                "a delivered segment of the queue was not removed", error=str(error)
            )
