"""Traces and numbers as OpenTelemetry's messages."""

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from webhook.metrics.admission import VALIDATION_SECONDS, VIOLATIONS
from webhook.metrics.registry import Registry
from webhook.metrics.server import READY
from webhook.serving.trace import SPANS_MAX, Trace
from webhook.telemetry.messages import metrics_message, resource_of, traces_message

RESOURCE = resource_of({"service.name": "waddle", "k8s.pod.name": ""})


def spans(*traces: Trace) -> list[Span]:
    """What is sent of traces."""
    (resource,) = traces_message(RESOURCE, traces).resource_spans
    (scope,) = resource.scope_spans
    return list(scope.spans)


def test_what_is_empty_is_left_out_of_the_resource():
    assert [item.key for item in RESOURCE.attributes] == ["service.name"]


def test_times_of_spans_are_on_the_clock_of_the_wall():
    trace = Trace(1, 2, "", 1_000)
    trace.wall_ns, trace.ended_ns = 5_000, 1_900
    trace.add("decode", 1_200, 1_300)
    root, decode = spans(trace)
    assert (root.start_time_unix_nano, root.end_time_unix_nano) == (5_000, 5_900)
    assert (decode.start_time_unix_nano, decode.end_time_unix_nano) == (5_200, 5_300)
    assert decode.parent_span_id == root.span_id
    assert (root.trace_id, root.parent_span_id) == (bytes(15) + b"\1", bytes(7) + b"\2")


def test_a_trace_has_so_many_spans_and_says_how_many_more_there_were():
    trace = Trace(1, 0, "", 0)
    for _ in range(SPANS_MAX + 7):
        trace.add("constraint", 0, 1)
    trace.add("review", 0, 1, span_id=trace.review_id)
    root, *others = spans(trace)
    assert len(others) == SPANS_MAX + 1
    assert {item.key: item.value.int_value for item in root.attributes}["waddle.spans.dropped"] == 7


def test_text_that_utf_8_cannot_hold_and_endless_errors_are_sent_anyway():
    trace = Trace(1, 0, "", 0)
    trace.add("review", 0, 1, {"name": "\ud800"}, error="x" * 100_000)
    _, review = spans(trace)
    assert review.attributes[0].value.string_value == "?"
    assert len(review.status.message) == 1024


def test_what_comes_later_brings_no_second_span_of_the_request():
    trace = Trace(1, 2, "", 1_000)
    later = trace.later()
    later.add("export", 1_100, 1_200)
    (export,) = spans(later)
    assert export.name == "export"
    assert export.parent_span_id == trace.span_id.to_bytes(8)


def test_each_kind_of_metric_has_its_form():
    registry = Registry()
    registry.set(READY, 1)
    registry.violations.count("Kind", "name", "deny")
    histogram = registry.histogram(VALIDATION_SECONDS, "deny")
    histogram.observe(0.0002)
    histogram.observe(1e9)
    histogram.exemplify(1e9, 7, 8)
    (resource,) = metrics_message(RESOURCE, registry, 42).resource_metrics
    found = {item.name: item for item in resource.scope_metrics[0].metrics}
    assert found.keys() == {READY.name, VIOLATIONS.name, VALIDATION_SECONDS.name}
    assert found[READY.name].gauge.data_points[0].as_int == 1
    (counted,) = found[VIOLATIONS.name].sum.data_points
    assert (counted.as_int, counted.start_time_unix_nano) == (1, 42)
    assert [item.value.string_value for item in counted.attributes] == ["Kind", "name", "deny"]
    (point,) = found[VALIDATION_SECONDS.name].histogram.data_points
    assert (point.count, point.bucket_counts[-1]) == (2, 1)
    assert (point.exemplars[0].trace_id, point.exemplars[0].as_double) == (bytes(15) + b"\7", 1e9)
