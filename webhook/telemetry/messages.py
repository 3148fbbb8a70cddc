"""OpenTelemetry's messages (opentelemetry-proto 1.x) for the sender and the registry's numbers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from webhook import __version__
from webhook.metrics.exposition import METRICS, counts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.metrics.registry import Exemplar, Histogram, Metric, Registry
    from webhook.serving.trace import Attribute

SCOPE: Final = InstrumentationScope(name="waddle", version=__version__)

_ERROR_MAX: Final = 1024
"""The longest error in a message, in characters: a policy's message may have any length."""

_CUMULATIVE: Final = metrics_pb2.AGGREGATION_TEMPORALITY_CUMULATIVE

_SUFFIXES: Final = {"_seconds": "s", "_bytes": "By"}
"""The units of metrics, by the suffixes of their names."""


def resource_of(attributes: Mapping[str, str]) -> Resource:
    """Returns the sender's attributes by OpenTelemetry's conventions; leaves out empty ones."""
    return Resource(attributes=[attribute(name, text) for name, text in attributes.items() if text])


def metrics_message(resource: Resource, registry: Registry, began_ns: int) -> bytes:
    """Returns all numbers of the registry, counted since ``began_ns`` on the wall clock."""
    now = time.time_ns()
    metrics = [
        message
        for metric in METRICS
        if (message := _metric(registry, metric, began_ns, now)) is not None
    ]
    scoped = metrics_pb2.ScopeMetrics(scope=SCOPE, metrics=metrics)
    of_resource = metrics_pb2.ResourceMetrics(resource=resource, scope_metrics=[scoped])
    return ExportMetricsServiceRequest(resource_metrics=[of_resource]).SerializeToString()


def _metric(registry: Registry, metric: Metric, began: int, now: int) -> metrics_pb2.Metric | None:
    unit = next((unit for end, unit in _SUFFIXES.items() if metric.name.endswith(end)), "")
    message = metrics_pb2.Metric(name=metric.name, description=metric.help, unit=unit)
    if metric.kind == "histogram":
        for labels, histogram in list(registry.histograms.get(metric, {}).items()):
            message.histogram.data_points.append(
                _distribution(metric, labels, histogram, began, now)
            )
        message.histogram.aggregation_temporality = _CUMULATIVE
        return message if message.histogram.data_points else None
    if metric.kind == "counter":
        message.sum.aggregation_temporality = _CUMULATIVE
        message.sum.is_monotonic = True
        for labels, count in list(counts(registry, metric).items()):
            message.sum.data_points.append(_number(metric, labels, count, began, now))
        return message if message.sum.data_points else None
    for labels, level in list(registry.gauges.get(metric, {}).items()):
        message.gauge.data_points.append(_number(metric, labels, level, 0, now))
    return message if message.gauge.data_points else None


def _number(
    metric: Metric, labels: Sequence[str], value: float, began: int, now: int
) -> metrics_pb2.NumberDataPoint:
    point = metrics_pb2.NumberDataPoint(
        attributes=_labels(metric, labels), start_time_unix_nano=began, time_unix_nano=now
    )
    if isinstance(value, int):
        point.as_int = value
    else:
        point.as_double = value
    return point


def _distribution(
    metric: Metric, labels: Sequence[str], histogram: Histogram, began: int, now: int
) -> metrics_pb2.HistogramDataPoint:
    counts = list(histogram.counts)
    return metrics_pb2.HistogramDataPoint(
        attributes=_labels(metric, labels),
        start_time_unix_nano=began,
        time_unix_nano=now,
        count=sum(counts),
        sum=histogram.total,
        bucket_counts=counts,
        explicit_bounds=histogram.bounds,
        exemplars=[_exemplar(item) for item in list(histogram.exemplars.values())],
    )


def _exemplar(item: Exemplar) -> metrics_pb2.Exemplar:
    return metrics_pb2.Exemplar(
        time_unix_nano=int(item.timestamp * 1e9),
        as_double=item.value,
        trace_id=item.trace_id.to_bytes(16),
        span_id=item.span_id.to_bytes(8),
    )


def _labels(metric: Metric, labels: Sequence[str]) -> list[KeyValue]:
    return [attribute(name, text) for name, text in zip(metric.labels, labels, strict=True)]


def attributes_of(attributes: Mapping[str, Attribute]) -> list[KeyValue]:
    """Returns attributes as key-value messages."""
    return [attribute(name, value) for name, value in attributes.items()]


def attribute(name: str, value: Attribute) -> KeyValue:
    """Returns one attribute as a key-value message."""
    if isinstance(value, bool):
        return KeyValue(key=name, value=AnyValue(bool_value=value))
    if isinstance(value, int):
        return KeyValue(key=name, value=AnyValue(int_value=value))
    return KeyValue(key=name, value=AnyValue(string_value=shortened(value)))


def shortened(value: str) -> str:
    """Returns a text shortened for a message; replaces lone surrogates, which JSON may contain."""
    return value[:_ERROR_MAX].encode("utf-8", "replace").decode()
