"""The thread that sends traces and metrics.

It drops and counts traces that it cannot send in time.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from webhook.backoff import Backoff
from webhook.metrics.server import TELEMETRY_FAILURES, TRACES
from webhook.telemetry import messages
from webhook.telemetry.delivery import CollectorUnavailable, MessageRefused, make_delivery
from webhook.telemetry.traces import traces_message
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.serving.trace import Trace
    from webhook.telemetry.context import SampledTracer
    from webhook.telemetry.delivery import CollectorAddress, Delivery

BATCH: Final = 256
"""The most traces in a message, some 2 KiB each: well below a collector's limit of 4 MiB."""

TRACE_SECONDS: Final = 2.0
"""The interval of sending traces, unless there are many: people look for a trace by hand."""

ATTEMPTS: Final = 5
"""The attempts to send a batch. Then it is dropped, as newer ones wait."""

LAST_SECONDS: Final = 3.0
"""The time for the last batches at the end, in seconds; by then all other work has ended."""


@dataclass(frozen=True, slots=True)
class SendingOptions:
    """The sending process, and the interval of its metrics."""

    resource: Mapping[str, str]
    metric_seconds: float = 0.0
    """The interval of sending metrics, in seconds; 0 for never."""


class Sending:
    """Sends traces and metrics until it is stopped."""

    def __init__(
        self,
        collector: CollectorAddress,
        options: SendingOptions,
        tracer: SampledTracer | None,
        registry: Registry,
        log: Logger,
        *,
        refresh: Callable[[], None],
        begin: Callable[[], None] | None = None,
    ) -> None:
        """``refresh`` updates gauges; the thread calls ``begin`` first.

        Raises :class:`OSError`.
        """
        self._delivery: Delivery = make_delivery(collector)
        self._resource = messages.resource_of(options.resource)
        self._metric_seconds = options.metric_seconds
        self._tracer = tracer
        self._registry = registry
        self._log = log
        self._refresh = refresh
        self._begin = begin
        self._began_ns = time.time_ns()
        self._backoff = Backoff()
        self._failing: set[str] = set()
        self._sent = self._failed = 0
        self._failures = {"traces": 0, "metrics": 0}
        self._stopping = threading.Event()
        self._wake = threading.Event() if tracer is None else tracer.ready
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Sends the rest within ``LAST_SECONDS``, and ends the thread."""
        self._stopping.set()
        self._wake.set()
        self._thread.join(timeout=LAST_SECONDS)
        if self._thread.is_alive():
            # A delivery in progress is aborted: a thread in gRPC would not survive the
            # interpreter's end.
            self._delivery.close()
            self._thread.join(timeout=LAST_SECONDS)

    def count(self) -> None:
        """Updates the thread's own counters; safe on any thread."""
        tracer = self._tracer
        if tracer is not None:
            self._registry.counters[TRACES] = {
                ("sent",): self._sent,
                ("failed",): self._failed,
                ("queue_full",): tracer.overflowed,
                ("too_many",): tracer.refused,
            }
        self._registry.counters[TELEMETRY_FAILURES] = {
            (signal,): count for signal, count in self._failures.items()
        }

    def _run(self) -> None:
        if self._begin is not None:
            self._begin()
        try:
            self._loop()
        except Exception as error:  # noqa: BLE001  # the thread must not end silently
            self._log.fault("bug: traces and numbers are no longer sent", error)
        finally:
            self._delivery.close()

    def _loop(self) -> None:
        due = time.monotonic()
        while not self._stopping.is_set():
            if self._metric_seconds and time.monotonic() >= due:
                due = max(due + self._metric_seconds, time.monotonic())
                self._send_numbers()
            self._send_traces()
            seconds = TRACE_SECONDS if self._tracer is not None else self._metric_seconds
            if self._metric_seconds:
                seconds = min(seconds, max(0.0, due - time.monotonic()))
            self._wake.wait(seconds)
            if not self._stopping.is_set():
                self._wake.clear()
        self._send_traces()
        if self._metric_seconds:
            self._send_numbers()

    def _send_numbers(self) -> None:
        """Sends the metrics once, without retries: the next ones include them."""
        self._refresh()
        message = messages.metrics_message(self._resource, self._registry, self._began_ns)
        try:
            self._delivery.send("metrics", message)
        except (CollectorUnavailable, MessageRefused) as error:
            self._notify("metrics", error)
        else:
            self._succeeded("metrics")

    def _send_traces(self) -> None:
        while self._tracer is not None and (batch := self._tracer.take(BATCH)):
            if self._send_batch(batch):
                self._sent += sum(trace.whole for trace in batch)
            else:
                self._failed += sum(trace.whole for trace in batch)

    def _send_batch(self, batch: list[Trace]) -> bool:
        """Returns whether the collector accepted a batch; tries it several times."""
        message = traces_message(self._resource, batch)
        for _ in range(ATTEMPTS):
            try:
                self._delivery.send("traces", message)
            except MessageRefused as error:
                self._notify("traces", error)
                return False
            except CollectorUnavailable as error:
                self._notify("traces", error)
                if self._stopping.wait(self._backoff.next_seconds()):
                    return False
            else:
                self._backoff.reset()
                self._succeeded("traces")
                return True
        return False

    def _notify(self, signal: str, error: Exception) -> None:
        """Counts a failure; logs only the first in a row."""
        self._failures[signal] += 1
        if signal not in self._failing:
            self._failing.add(signal)
            self._log.warning(
                "the collector does not accept telemetry; trying again",
                signal=signal,
                error=str(error),
            )

    def _succeeded(self, signal: str) -> None:
        if signal in self._failing:
            self._failing.discard(signal)
            self._log.info("the collector accepts telemetry again", signal=signal)
