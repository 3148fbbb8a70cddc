"""The sidecar's metrics, in Prometheus' text format, computed at each scrape.

Names begin with ``waddle_decisions_``; each is declared once, here.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

import orjson
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client.metrics_core import Metric
    from prometheus_client.registry import Collector

    from webhook.decisions.sidecar.log import SegmentLog
    from webhook.decisions.sidecar.process import Sidecar
    from webhook.decisions.sidecar.queue import Queue

PREFIX = "waddle_decisions_"


class SidecarCollector:
    """Reads the counters of a running sidecar."""

    def __init__(self, sidecar: Sidecar, now: Callable[[], dt.datetime]) -> None:
        self._sidecar = sidecar
        self._now = now

    def collect(self) -> Iterator[Metric]:
        """Yields every metric of the sidecar."""
        yield from self._intake()
        yield from self._log()
        yield from self._sinks()

    def _intake(self) -> Iterator[Metric]:
        sidecar = self._sidecar
        intake = sidecar.intake
        streams = sidecar.streams
        for name, text, value in (
            ("received", "New records received.", intake.received),
            ("committed", "Records stored on disk.", intake.committed),
            ("duplicates", "Records that arrived more than once.", streams.duplicates),
            ("gaps", "Sequence numbers that senders used and that never arrived.", streams.gaps),
            ("rejected", "Lines that were not records.", sidecar.rejected),
            ("commits", "Group commits, each one sync.", intake.commits),
            (
                "commit_failures",
                "Writes or syncs of the queue that failed.",
                intake.commit_failures,
            ),
            (
                "adopted_queues",
                "Queues of other Pods that were delivered and removed.",
                sidecar.adopted,
            ),
            (
                "adoption_failures",
                "Failed attempts to deliver another Pod's queue.",
                sidecar.adoption_failures,
            ),
        ):
            yield CounterMetricFamily(PREFIX + name, text, value=value)
        yield GaugeMetricFamily(
            PREFIX + "connections", "Senders connected.", value=sidecar.connections
        )

    def _log(self) -> Iterator[Metric]:
        queues = self._sidecar.queues
        for name, text, value in _GAUGES:
            family = GaugeMetricFamily(PREFIX + name, text, labels=["queue"])
            for queue_name, queue in queues.items():
                family.add_metric([queue_name], value(queue.log))
            yield family
        yield GaugeMetricFamily(
            PREFIX + "queue_blocked",
            "1 while the queue is full and nothing is acknowledged.",
            value=int(self._sidecar.intake.blocked),
        )

    def _sinks(self) -> Iterator[Metric]:
        now = self._now()
        families: list[CounterMetricFamily | GaugeMetricFamily] = [
            CounterMetricFamily(PREFIX + "sink_" + name, text, labels=["queue", "sink"])
            for name, text in COUNTERS.items()
        ]
        lag, age, failing = (
            GaugeMetricFamily(PREFIX + "sink_" + name, text, labels=["queue", "sink"])
            for name, text in (
                ("lag_records", "Records that a sink has yet to accept."),
                (
                    "oldest_unsent_seconds",
                    "Age of the oldest record that a sink has yet to accept.",
                ),
                ("consecutive_failures", "Failed attempts since the last success."),
            )
        )
        queues = self._sidecar.queues
        totals: dict[tuple[str, str, str], int] = {
            ("adopted", *key): value for key, value in self._sidecar.adopted_before.items()
        }
        for queue_name, queue in queues.items():
            for (sink, name), value in counts(queue).items():
                totals[queue_name, sink, name] = totals.get((queue_name, sink, name), 0) + value
        for name, family in zip(COUNTERS, families, strict=True):
            for (queue_name, sink, counter), value in totals.items():
                if counter == name:
                    family.add_metric([queue_name, sink], value)
        for queue_name, queue in queues.items():
            for drain in queue.drains:
                labels = [queue_name, drain.sink_name]
                lag.add_metric(labels, drain.lag)
                age.add_metric(labels, _age(drain.head() if drain.lag else None, now))
                failing.add_metric(labels, drain.counters.consecutive_failures)
        yield from (*families, lag, age, failing)


def counts(queue: Queue) -> dict[tuple[str, str], int]:
    """Returns the numbers of a queue's records, by sink and counter."""
    return {
        (drain.sink_name, name): getattr(
            drain.reader if name in {"dropped", "corrupt"} else drain.counters, name
        )
        for drain in queue.drains
        for name in COUNTERS
    }


COUNTERS: Final = {
    "delivered": "Records that a sink has accepted.",
    "dead_lettered": "Records that a sink refused permanently; its dead-letter file keeps them.",
    "attempts": "Batches sent to a sink.",
    "failures": "Attempts that failed and were repeated.",
    "dropped": "The oldest records, dropped from a full queue before a sink had them.",
    "corrupt": "Records lost because of damage on the disk.",
}


def _free(log: SegmentLog) -> int:
    try:
        return log.disk.free_bytes(log.directory)
    except OSError:
        return -1


_GAUGES: Final[tuple[tuple[str, str, Callable[[SegmentLog], float]], ...]] = (
    ("queue_bytes", "Bytes of the queue on disk.", lambda log: log.size_bytes),
    ("queue_bytes_max", "The queue's limit.", lambda log: log.limits.max_bytes),
    (
        "queue_records",
        "Records in the queue, including delivered ones in its segments.",
        lambda log: log.end - log.first,
    ),
    (
        "queue_torn_bytes",
        "Bytes cut off the end of the queue at start.",
        lambda log: log.torn_bytes,
    ),
    (
        "queue_damaged",
        "Damaged places found in the queue at start.",
        lambda log: log.damaged,
    ),
    (
        "queue_free_bytes",
        "Free bytes on the queue's volume; -1 if not known.",
        _free,
    ),
    (
        "queue_free_bytes_min",
        "Free bytes to leave on the volume; below it nothing is acknowledged.",
        lambda log: log.limits.min_free_bytes,
    ),
)


def _age(line: bytes | None, now: dt.datetime) -> float:
    """Returns the seconds since a record's timestamp; 0 without one."""
    if line is None:
        return 0.0
    try:
        moment = dt.datetime.fromisoformat(orjson.loads(line)["timestamp"])
        return max((now - moment).total_seconds(), 0.0)
    except (ValueError, KeyError, TypeError):
        return 0.0


def render(collector: Collector) -> bytes:
    """Returns the text that Prometheus scrapes."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return generate_latest(registry)
