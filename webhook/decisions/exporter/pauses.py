"""How long the exporter waits after a connection that failed, and what it says of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from webhook.backoff import Backoff

if TYPE_CHECKING:
    from webhook.decisions.exporter.counters import Counters
    from webhook.decisions.exporter.settings import ExporterSettings
    from webhook.log import Logger


class Pauses:
    """Seconds to wait before the next connection, longer with each failure in a row."""

    def __init__(self, settings: ExporterSettings, counters: Counters, logger: Logger) -> None:
        self._counters = counters
        self._logger = logger
        self._failures = Backoff(healthy_seconds=math.inf)
        # No success, and no time, makes a bug harmless.
        self._bugs = Backoff(settings.backoff_initial_seconds, 60.0, healthy_seconds=math.inf)
        self.configure(settings)

    def configure(self, settings: ExporterSettings) -> None:
        """Put other limits in force."""
        self._failures.initial_seconds = settings.backoff_initial_seconds
        self._failures.max_seconds = settings.backoff_max_seconds
        self._bugs.max_seconds = settings.backoff_max_seconds

    def succeeded(self) -> None:
        """Something was acknowledged."""
        self._failures.reset()

    def after(self, error: BaseException) -> float:
        """Seconds to wait after this failure."""
        seconds = self._failures.next_seconds()
        failures = self._failures.failures
        # The first failure and then each doubling, not a line for every try.
        if failures & (failures - 1) == 0:
            self._logger.warning(
                "decisions disconnected",
                error=f"{type(error).__name__}: {error}",
                failures=failures,
                retry_seconds=round(seconds, 3),
            )
        return seconds

    def after_bug(self, error: Exception) -> float:
        """Seconds to wait after a bug: it ends a connection, not the export, and is counted."""
        self._counters.faults += 1
        seconds = self._bugs.next_seconds()
        faults = self._counters.faults
        if faults & (faults - 1) == 0:
            self._logger.fault(
                "bug: decisions are exported anew",
                error,
                faults=faults,
                retry_seconds=round(seconds, 3),
            )
        return seconds
