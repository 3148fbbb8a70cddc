"""OpenTelemetry's messages: the sending resource, and numbers."""

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from webhook.metrics.admission import VALIDATION_SECONDS, VIOLATIONS
from webhook.metrics.registry import Registry
from webhook.metrics.server import READY
from webhook.telemetry.messages import metrics_message, resource_of

RESOURCE = resource_of({"service.name": "waddle", "k8s.pod.name": ""})


def test_what_is_empty_is_left_out_of_the_resource():
    assert [item.key for item in RESOURCE.attributes] == ["service.name"]


def test_each_kind_of_metric_has_its_form():
    registry = Registry()
    registry.set(READY, 1, "admission")
    registry.violations.count("Kind", "name", "deny")
    histogram = registry.histogram(VALIDATION_SECONDS, "deny")
    histogram.observe(0.0002)
    histogram.observe(1e9)
    histogram.exemplify(1e9, 7, 8)
    message = ExportMetricsServiceRequest.FromString(metrics_message(RESOURCE, registry, 42))
    (resource,) = message.resource_metrics
    found = {item.name: item for item in resource.scope_metrics[0].metrics}
    assert found.keys() == {READY.name, VIOLATIONS.name, VALIDATION_SECONDS.name}
    assert found[READY.name].gauge.data_points[0].as_int == 1
    (counted,) = found[VIOLATIONS.name].sum.data_points
    assert (counted.as_int, counted.start_time_unix_nano) == (1, 42)
    assert [item.value.string_value for item in counted.attributes] == ["Kind", "name", "deny"]
    (point,) = found[VALIDATION_SECONDS.name].histogram.data_points
    assert (point.count, point.bucket_counts[-1]) == (2, 1)
    assert (point.exemplars[0].trace_id, point.exemplars[0].as_double) == (bytes(15) + b"\7", 1e9)
