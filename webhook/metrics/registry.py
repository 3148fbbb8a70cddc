"""Declares metrics, and keeps the numbers of one process.

A count on the admission path is one addition on a dictionary, without a lock. Admission has one
thread, and the thread of ``/metrics`` only reads (:mod:`webhook.metrics.exposition`).
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

from webhook.values import dataclass

MetricKind = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True, slots=True, eq=False)  # hashed by identity: they are keys on the hot path
class Metric:
    """A declared metric; a counter's name lacks the ``_total`` of the exposition."""

    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...] = ()
    gatekeeper: bool = False
    buckets: tuple[float, ...] = ()


LabelValues = tuple[str, ...]


class Exemplar(NamedTuple):
    """An observation with a trace."""

    value: float
    trace_id: int
    span_id: int
    timestamp: float
    """Seconds since 1970."""


class Histogram:
    """Counts of observations by bucket, and their sum."""

    __slots__ = ("bounds", "counts", "exemplars", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0
        self.exemplars: dict[int, Exemplar] = {}
        """The newest exemplar of each bucket; some buckets have none."""

    def observe(self, value: float) -> None:
        """Counts one value; a value on a bound belongs to the bucket of that bound."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def exemplify(self, value: float, trace_id: int, span_id: int) -> None:
        """Adds the trace of a value that was just observed."""
        bucket = bisect_left(self.bounds, value)
        self.exemplars[bucket] = Exemplar(value, trace_id, span_id, time.time())


class Registry:
    """The numbers of one process. The thread of a subject writes them, any thread reads them."""

    __slots__ = ("counters", "gauges", "histograms", "mutators", "violations")

    def __init__(self, *, constraint_series_max: int = 1000) -> None:
        self.counters: dict[Metric, dict[LabelValues, int]] = {}
        self.gauges: dict[Metric, dict[LabelValues, float]] = {}
        self.histograms: dict[Metric, dict[LabelValues, Histogram]] = {}
        self.violations = ObjectSeries(constraint_series_max)
        self.mutators = ObjectSeries(constraint_series_max)

    def count(self, metric: Metric, *labels: str, by: int = 1) -> None:
        """Adds to a counter."""
        series = self.counters.get(metric)
        if series is None:
            series = self.counters[metric] = {}
        series[labels] = series.get(labels, 0) + by

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        """Sets a gauge."""
        self.gauges.setdefault(metric, {})[labels] = value

    def replace(self, metric: Metric, series: Mapping[LabelValues, float]) -> None:
        """Sets all series of a gauge at once; drops all others."""
        self.gauges[metric] = dict(series)

    def histogram(self, metric: Metric, *labels: str) -> Histogram:
        """Returns the histogram of a metric with these labels; creates it if needed."""
        series = self.histograms.setdefault(metric, {})
        histogram = series.get(labels)
        if histogram is None:
            histogram = series[labels] = Histogram(metric.buckets)
        return histogram


OTHER: Final = "_other"
"""Kubernetes does not allow this name, so it cannot be a constraint's."""


class ObjectGroup:
    """Objects that are counted together repeatedly; compared by identity."""

    __slots__ = ("objects",)

    def __init__(self, objects: Iterable[tuple[str, str]]) -> None:
        """``objects`` are unique kinds and names."""
        self.objects = tuple(objects)


GROUPS_MAX: Final = 64
"""The most groups with one number each; beyond, their counts are added to the objects'."""


class ObjectSeries:
    """Counts by constraint or mutator, for a bounded number of them."""

    __slots__ = ("_known", "_max", "_state")

    def __init__(self, series_max: int) -> None:
        self._max = series_max
        self._known: set[tuple[str, str]] = set()
        # Counts by object and by group, replaced together so that no count appears in both.
        self._state: tuple[dict[LabelValues, int], dict[tuple[ObjectGroup, str], list[int]]] = (
            {},
            {},
        )

    @property
    def series(self) -> dict[LabelValues, int]:
        """Returns the counts by kind, name and action."""
        series, groups = self._state
        if not groups:
            return series
        counts = series.copy()
        for (group, action), (number,) in groups.copy().items():
            for kind, name in group.objects:
                labels = self._labels(kind, name, action)
                counts[labels] = counts.get(labels, 0) + number
        return counts

    def count(self, kind: str, name: str, action: str, by: int = 1) -> None:
        """Counts events of an object: violations by action, mutations by outcome."""
        series = self._state[0]
        if (kind, name, action) not in series:
            self._know(kind, name)
        labels = self._labels(kind, name, action)
        series[labels] = series.get(labels, 0) + by

    def count_all(self, group: ObjectGroup, action: str) -> None:
        """Counts one for each object of a group."""
        groups = self._state[1]
        number = groups.get((group, action))
        if number is None:
            if len(groups) >= GROUPS_MAX:
                self._state = self.series, {}
                groups = self._state[1]
            for kind, name in group.objects:
                self._know(kind, name)
            groups[group, action] = [1]
        else:
            number[0] += 1

    def keep(self, objects: Iterable[tuple[str, str]]) -> None:
        """Drops all other objects, which makes room for new ones."""
        kept = self._known & set(objects)
        if kept != self._known:
            series = self.series
            self._known = kept
            self._state = (
                {
                    labels: value
                    for labels, value in series.items()
                    if labels[:2] in kept or labels[1] == OTHER
                },
                {},
            )

    def _know(self, kind: str, name: str) -> None:
        if len(self._known) < self._max:
            self._known.add((kind, name))

    def _labels(self, kind: str, name: str, action: str) -> LabelValues:
        return (kind, name, action) if (kind, name) in self._known else ("", OTHER, action)
