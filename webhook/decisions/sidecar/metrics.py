"""The sidecar's metrics, in Prometheus' text format, read when asked for.

Names begin with ``waddle_decisions_``; each is declared once, here.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Protocol

import orjson
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client.metrics_core import Metric
    from prometheus_client.registry import Collector

    from webhook.decisions.sidecar.intake import Intake
    from webhook.decisions.sidecar.queue import Queue
    from webhook.decisions.sidecar.streams import Streams

PREFIX = "waddle_decisions_"


class Observed(Protocol):
    """A running sidecar, as far as its metrics go."""

    intake: Intake
    queue: Queue
    streams: Streams

    @property
    def connections(self) -> int:
        """Senders connected now."""

    @property
    def rejected(self) -> int:
        """Lines and connections that were no protocol of ours."""

    @property
    def adopted(self) -> int:
        """Queues of other pods drained so far."""


class SidecarCollector:
    """Reads the counters of a running sidecar."""

    def __init__(self, sidecar: Observed, now: Callable[[], dt.datetime]) -> None:
        self._sidecar = sidecar
        self._now = now

    def collect(self) -> Iterator[Metric]:
        """Every metric of the sidecar."""
        yield from self._intake()
        yield from self._log()
        yield from self._sinks()

    def _intake(self) -> Iterator[Metric]:
        sidecar = self._sidecar
        intake = sidecar.intake
        streams = sidecar.streams
        for name, text, value in (
            ("received", "New records received.", intake.received),
            ("committed", "Records made durable.", intake.committed),
            ("duplicates", "Records received again after they were taken.", streams.duplicates),
            ("gaps", "Sequence numbers that senders used and that never arrived.", streams.gaps),
            ("rejected", "Lines that were no record.", sidecar.rejected),
            ("commits", "Group commits, each one sync.", intake.commits),
            (
                "commit_failures",
                "Writes or syncs of the queue that failed.",
                intake.commit_failures,
            ),
            ("adopted_queues", "Queues of other pods drained and removed.", sidecar.adopted),
        ):
            yield CounterMetricFamily(PREFIX + name, text, value=value)
        yield GaugeMetricFamily(
            PREFIX + "connections", "Senders connected.", value=sidecar.connections
        )

    def _log(self) -> Iterator[Metric]:
        log = self._sidecar.queue.log
        limits = log.limits
        for name, text, value in (
            ("queue_bytes", "Bytes of the queue on disk.", log.size_bytes),
            ("queue_bytes_max", "The queue's limit.", limits.max_bytes),
            (
                "queue_records",
                "Records in the queue, delivered ones in its segments too.",
                log.end - log.first,
            ),
            (
                "queue_blocked",
                "1 while the queue has no room and nothing is acknowledged.",
                int(self._sidecar.intake.blocked),
            ),
            ("queue_torn_bytes", "Bytes cut off the queue's tail at start.", log.torn_bytes),
        ):
            yield GaugeMetricFamily(PREFIX + name, text, value=value)

    def _sinks(self) -> Iterator[Metric]:
        drains = self._sidecar.queue.drains
        now = self._now()
        counters = {
            "delivered": "Records a sink has taken.",
            "dead_lettered": "Records a sink refused for good, kept in its dead-letter file.",
            "attempts": "Batches offered to a sink.",
            "failures": "Attempts that failed and were tried again.",
            "dropped": "Records dropped from the queue's old end before a sink had them.",
            "corrupt": "Records lost to damage on the disk.",
        }
        for name, text in counters.items():
            family = CounterMetricFamily(PREFIX + "sink_" + name, text, labels=["sink"])
            for drain in drains:
                source = drain.reader if name in {"dropped", "corrupt"} else drain.counters
                family.add_metric([drain.sink_name], getattr(source, name))
            yield family
        lag = GaugeMetricFamily(
            PREFIX + "sink_lag_records", "Records a sink has yet to take.", labels=["sink"]
        )
        age = GaugeMetricFamily(
            PREFIX + "sink_oldest_unsent_seconds",
            "Age of the oldest record that a sink has yet to take.",
            labels=["sink"],
        )
        failing = GaugeMetricFamily(
            PREFIX + "sink_consecutive_failures",
            "Attempts failed since the last success.",
            labels=["sink"],
        )
        for drain in drains:
            lag.add_metric([drain.sink_name], drain.lag)
            age.add_metric([drain.sink_name], _age(drain.head() if drain.lag else None, now))
            failing.add_metric([drain.sink_name], drain.counters.consecutive_failures)
        yield from (lag, age, failing)


def _age(line: bytes | None, now: dt.datetime) -> float:
    """Seconds since a record's timestamp; 0 where there is none."""
    if line is None:
        return 0.0
    try:
        moment = dt.datetime.fromisoformat(orjson.loads(line)["timestamp"])
        return max((now - moment).total_seconds(), 0.0)
    except (ValueError, KeyError, TypeError):
        return 0.0


def render(collector: Collector) -> bytes:
    """The text that Prometheus scrapes."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return generate_latest(registry)
