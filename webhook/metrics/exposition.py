"""All metrics, and their text for a scrape.

prometheus-client renders the text, and is imported at the first scrape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from webhook.metrics import (
    admission,
    audit,
    cluster,
    decisions,
    images,
    mutation,
    policies,
    providers,
    reports,
    server,
)
from webhook.metrics.registry import Exemplar, Histogram, LabelValues, Metric, Registry

METRICS: Final = tuple(
    declared
    for subject in (
        admission,
        mutation,
        providers,
        server,
        policies,
        decisions,
        cluster,
        audit,
        reports,
        images,
    )
    for declared in vars(subject).values()
    if isinstance(declared, Metric)
)
"""All metrics in the order of the documentation: by subject, as declared."""


class Collector:
    """An adapter of the registry for prometheus-client."""

    def __init__(
        self,
        registry: Registry,
        refresh: Callable[[], None] | None = None,
        metrics: Sequence[Metric] = METRICS,
    ) -> None:
        self._registry = registry
        self._refresh = refresh
        self._metrics = metrics

    def describe(self) -> list[Any]:
        """Returns nothing, so that registration does not collect."""
        return []

    def collect(self) -> Iterator[Any]:
        """Yields every metric; updates the gauges first."""
        if self._refresh is not None:
            self._refresh()
        for metric in self._metrics:
            yield from self._family(metric)

    def _family(self, metric: Metric) -> Iterator[Any]:
        from prometheus_client import metrics_core  # noqa: PLC0415  # costs 25 ms, at first scrape

        labels = metric.labels
        if metric.kind == "histogram":
            histogram = metrics_core.HistogramMetricFamily(metric.name, metric.help, labels=labels)
            for values, series in list(self._registry.histograms.get(metric, {}).items()):
                histogram.add_metric(values, _cumulative(series), series.total)
            yield histogram
        elif metric.kind == "counter":
            counter = metrics_core.CounterMetricFamily(metric.name, metric.help, labels=labels)
            for values, number in list(self._counts(metric).items()):
                counter.add_metric(values, number)
            yield counter
        else:
            gauge = metrics_core.GaugeMetricFamily(metric.name, metric.help, labels=labels)
            for values, level in list(self._registry.gauges.get(metric, {}).items()):
                gauge.add_metric(values, level)
            yield gauge

    def _counts(self, metric: Metric) -> Mapping[LabelValues, int]:
        return counts(self._registry, metric)


def counts(registry: Registry, metric: Metric) -> Mapping[LabelValues, int]:
    """Returns the series of a counter."""
    if metric is admission.VIOLATIONS:
        return registry.violations.series
    if metric is mutation.MUTATOR_OUTCOMES:
        return registry.mutators.series
    return registry.counters.get(metric, {})


def _cumulative(histogram: Histogram) -> list[tuple[Any, ...]]:
    """Returns cumulative counts by bucket, with exemplars if any; only OpenMetrics shows those."""
    buckets: list[tuple[Any, ...]] = []
    sum_ = 0
    for bucket, (bound, count) in enumerate(
        zip((*map(_bound, histogram.bounds), "+Inf"), list(histogram.counts), strict=True)
    ):
        sum_ += count
        exemplar = histogram.exemplars.get(bucket)
        shown = () if exemplar is None else (_exemplar(exemplar),)
        buckets.append((bound, sum_, *shown))
    return buckets


def _exemplar(exemplar: Exemplar) -> Any:
    from prometheus_client.samples import Exemplar as Shown  # noqa: PLC0415  # as above

    labels = {"trace_id": f"{exemplar.trace_id:032x}", "span_id": f"{exemplar.span_id:016x}"}
    return Shown(labels, exemplar.value, exemplar.timestamp)


def _bound(value: float) -> str:
    """Returns a bound as Go's client writes it: 1 instead of 1.0."""
    return f"{value:g}"


class Exposition:
    """Renders a registry, and prometheus-client's process metrics, for a scrape."""

    def __init__(
        self,
        registry: Registry,
        refresh: Callable[[], None] | None = None,
        metrics: Sequence[Metric] = METRICS,
    ) -> None:
        """``metrics`` are the metrics of a process other than a replica."""
        self._collector = Collector(registry, refresh, metrics)
        self._registry: Any = None

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """Returns the body and its content type, in the format that the reader accepts."""
        from prometheus_client import (  # noqa: PLC0415  # costs 25 ms, at first scrape
            CollectorRegistry,
            ProcessCollector,
            exposition,
        )

        if self._registry is None:
            registry = CollectorRegistry()
            registry.register(self._collector)
            ProcessCollector(registry=registry)
            self._registry = registry
        encode, content_type = exposition.choose_encoder(accept)
        return encode(self._registry), content_type
