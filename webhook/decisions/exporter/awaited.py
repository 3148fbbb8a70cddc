"""Records of traced decisions: their traces get a span that ends when the sidecar has them."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from webhook.decisions.exporter.exporter import Exporter
    from webhook.serving.trace import Trace, Tracer

AWAITED_MAX: Final = 1024
"""While a sidecar is away. Of more, the oldest traces get no such span."""


class AwaitedExports:
    """Traced records that are queued; for the thread that the exporter lives on."""

    def __init__(self, exporter: Exporter, tracer: Tracer) -> None:
        self._exporter = exporter
        self._tracer = tracer
        self._awaited: deque[tuple[int, int, Trace]] = deque(maxlen=AWAITED_MAX)
        exporter.outbox.tell = self._left

    def recorded(self) -> int:
        """The sequence of the record that was queued last."""
        return self._exporter.newest

    def await_export(self, trace: Trace) -> None:
        """Give the trace another span once the newest record is acknowledged."""
        self._awaited.append((self._exporter.newest, time.monotonic_ns(), trace.later()))

    def _left(self, sequence: int) -> None:
        now = time.monotonic_ns()
        while self._awaited and self._awaited[0][0] <= sequence:
            _, began, later = self._awaited.popleft()
            later.add("export", began, now)
            self._tracer.finish(later)
