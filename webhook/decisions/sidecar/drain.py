"""One sink's worker: peek, send, pop on success, for ever.

Each sink has a thread, so that a slow one delays no other. Records are dropped only by the limits
of the log. An unavailable sink is tried again with back-off. A refused batch is halved until the
refused records stand alone.
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

from webhook.backoff import Backoff
from webhook.decisions.declaration import setting
from webhook.decisions.sidecar.crash import crash_on_bug
from webhook.decisions.sidecar.reader import Reader, cursor_path, load_cursor, save_cursor
from webhook.decisions.sinks.sink import Item, RecordsRefused, Sink, SinkUnavailable
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.decisions.sidecar.dead_letter import DeadLetters
    from webhook.decisions.sidecar.log import SegmentLog
    from webhook.log import Logger

SAVE_SECONDS = 1.0
"""The pause between two writes of the cursor while busy; after a crash that much is sent twice."""

IDLE_SECONDS = 60.0
"""The longest sleep without new records; an append or a stop wakes the worker sooner."""


Formatter: TypeAlias = "Callable[[bytes], Sequence[bytes]]"
"""Turns a record into the lines for a sink: any number."""


@dataclass(frozen=True, slots=True)
class DrainSettings:
    """The settings of the deliveries to one sink."""

    name: str
    max_records: int = setting(512)
    max_bytes: int = setting(512 * 1024, least=1024)
    backoff_initial_seconds: float = setting(0.5, least=0.001)
    backoff_max_seconds: float = setting(60.0, least=0.001)


@dataclass(slots=True)
class DrainCounters:
    """Counters of one sink's records."""

    delivered: int = 0
    dead_lettered: int = 0
    attempts: int = 0
    failures: int = 0
    consecutive_failures: int = 0
    durable_offset: int = field(default=0)


class Drain(threading.Thread):
    """Drains a log into a sink until stopped; ``on_progress`` may trim the log."""

    def __init__(
        self,
        log: SegmentLog,
        settings: DrainSettings,
        sink: Sink,
        dead_letters: DeadLetters,
        *,
        formatter: Formatter | None = None,
        on_progress: Callable[[], None] = lambda: None,
        logger: Logger,
    ) -> None:
        super().__init__(name=f"sink {settings.name}", daemon=True)
        self._log = log
        self._settings = settings
        self._sink = sink
        self._dead_letters = dead_letters
        self._formatter = formatter
        self._on_progress = on_progress
        self._logger = logger
        self._path = cursor_path(log.directory, settings.name)
        self.reader = Reader(log, load_cursor(log.disk, self._path))
        self.counters = DrainCounters(durable_offset=self.reader.cursor.offset)
        self._saved = self.reader.cursor
        self._saved_at = 0.0
        self._losses = (0, 0)
        self._backoff = Backoff(
            settings.backoff_initial_seconds,
            settings.backoff_max_seconds,
            healthy_seconds=math.inf,
        )
        self._stop_requested = threading.Event()
        self._drain_only = threading.Event()

    @property
    def sink_name(self) -> str:
        """The sink's name in the configuration."""
        return self._settings.name

    @property
    def lag(self) -> int:
        """Records in the log that this sink has not taken."""
        return max(self._log.end - self.reader.cursor.offset, 0)

    def head(self) -> bytes | None:
        """Returns the oldest record that this sink has not taken, if it is in memory."""
        return self.reader.head()

    def finish(self) -> None:
        """Stops once all records in the log have been delivered."""
        self._drain_only.set()
        self._log.wake()

    def stop(self) -> None:
        """Stops after the attempt under way."""
        self._stop_requested.set()
        self._log.wake()

    def run(self) -> None:
        """Feed the sink; ends by :meth:`finish` or :meth:`stop`."""
        with crash_on_bug(f"draining to {self.sink_name}", self._logger):
            self._drain()

    def _drain(self) -> None:
        try:
            while not self._stop_requested.is_set():
                try:
                    lines = self.reader.peek(self._settings.max_records, self._settings.max_bytes)
                except OSError as error:
                    self._wait(SinkUnavailable(f"queue: {error.strerror}"))
                    continue
                self._report_losses()
                if lines:
                    self._deliver(lines)
                    self._save(at_once=False)
                    continue
                self._save(at_once=True)
                if self._drain_only.is_set():
                    break
                self._log.wait_for_more(self.reader.cursor.offset, IDLE_SECONDS, self._is_stopping)
        finally:
            self._save(at_once=True)
            self._sink.close()
            self._dead_letters.close()

    def _report_losses(self) -> None:
        losses = self.reader.dropped, self.reader.corrupt
        if losses != self._losses:
            self._losses = losses
            self._logger.error(
                "records were lost", sink=self.sink_name, dropped=losses[0], corrupt=losses[1]
            )

    def _is_stopping(self) -> bool:
        return self._stop_requested.is_set() or self._drain_only.is_set()

    def _deliver(self, lines: list[bytes]) -> None:
        """Delivers a batch and pops it, in order; halves refused batches."""
        parts = [lines]
        while parts and not self._stop_requested.is_set():
            part = parts.pop()
            try:
                self._attempt(part)
            except SinkUnavailable as error:
                parts.append(part)
                self._wait(error)
            except RecordsRefused as error:
                if len(part) > 1:
                    middle = len(part) // 2
                    parts += [part[middle:], part[:middle]]
                    continue
                self._bury(part[0], str(error), parts)
            else:
                self.counters.delivered += len(part)
                self.reader.advance(len(part))

    def _attempt(self, part: list[bytes]) -> None:
        self.counters.attempts += 1
        items = self._items(part)
        if items:
            self._sink.send(items)
        self._backoff.reset()
        self.counters.consecutive_failures = 0

    def _items(self, part: list[bytes]) -> list[Item]:
        """Returns the sink's items.

        Raises :class:`RecordsRefused` for a record that the formatter cannot take.

        A sender may send any object, and the record is durable by now. An error of the formatter
        would occur in the next process, too.
        """
        formatter = self._formatter
        if formatter is None:
            return [Item(line, (line,)) for line in part]
        try:
            return [Item(line, lines) for line in part if (lines := formatter(line))]
        except Exception as error:  # noqa: BLE001  # the record's boundary: it alone is a dead letter
            text = f"no record that this sink can be given: {type(error).__name__}: {error}"
            raise RecordsRefused(text) from None

    def _bury(self, line: bytes, reason: str, parts: list[list[bytes]]) -> None:
        try:
            self._dead_letters.write(line, reason)
        except OSError as error:
            parts.append([line])
            self._wait(SinkUnavailable(f"dead-letter file: {error.strerror}"))
            return
        self.counters.dead_lettered += 1
        self.reader.advance(1)
        self._logger.warning(
            "a sink refused a record permanently: it is in the dead-letter file",
            sink=self.sink_name,
            reason=reason,
        )

    def _wait(self, error: SinkUnavailable) -> None:
        counters = self.counters
        counters.failures += 1
        counters.consecutive_failures += 1
        seconds = max(self._backoff.next_seconds(), error.retry_after_seconds)
        # The first failure and then each doubling: a week's outage is a few dozen lines.
        if counters.consecutive_failures & (counters.consecutive_failures - 1) == 0:
            self._logger.warning(
                "a sink accepts no records; it is tried again",
                sink=self.sink_name,
                error=str(error),
                failures=counters.consecutive_failures,
                retry_seconds=round(seconds, 3),
            )
        self._save(at_once=False)
        self._stop_requested.wait(seconds)

    def _save(self, *, at_once: bool) -> None:
        """Writes the cursor, if due; always before the log may remove a segment behind it."""
        cursor = self.reader.cursor
        passed = cursor.segment_first != self._saved.segment_first
        now = time.monotonic()
        due = at_once or passed or now - self._saved_at >= SAVE_SECONDS
        if cursor == self._saved or not due:
            return
        try:
            save_cursor(self._log.disk, self._path, cursor)
        except OSError as error:
            # At worst, records are sent twice after a crash; the log keeps them till then.
            self._logger.warning(
                "a sink's position was not saved: after a crash it gets records twice",
                sink=self.sink_name,
                error=str(error.strerror),
            )
            return
        self._saved = cursor
        self._saved_at = now
        self.counters.durable_offset = cursor.offset
        self._on_progress()
