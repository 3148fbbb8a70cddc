"""Traces as OpenTelemetry's message: what protobuf's own classes read of it."""

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from webhook.serving.trace import SPANS_MAX, Trace
from webhook.telemetry.messages import resource_of
from webhook.telemetry.traces import traces_message

RESOURCE = resource_of({"service.name": "waddle"})


def spans(*traces: Trace) -> list[Span]:
    """Returns the spans that are sent for traces."""
    message = ExportTraceServiceRequest.FromString(traces_message(RESOURCE, traces))
    (resource,) = message.resource_spans
    assert resource.resource == RESOURCE
    (scope,) = resource.scope_spans
    assert scope.scope.name == "waddle"
    return list(scope.spans)


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


@pytest.mark.parametrize("length", [0, 1, 100, 127, 128, 1000, 16383, 16384, 100_000])
def test_a_span_of_any_length_is_read_as_it_was_written(length):
    """Of those whose texts are kept, each time alike; lengths are written as varints."""
    trace = Trace((1 << 128) - 1, 0, "", 1_000)
    trace.wall_ns = trace.ended_ns = (1 << 62) + 1_000
    for number in range(2):
        trace.add(
            "constraint " + "é" * (length // 2),
            1_500 + number,
            1_600,
            {"waddle.violations": length, "waddle.beside": True, "waddle.template": "K"},
            parent_id=trace.review_id,
        )
    _, *found = spans(trace)
    first, second = found
    assert first.name == second.name == "constraint " + "é" * (length // 2)
    assert (first.trace_id, first.kind) == (b"\xff" * 16, Span.SPAN_KIND_INTERNAL)
    assert first.span_id != second.span_id
    assert len(first.span_id) == 8
    assert first.parent_span_id == trace.review_id.to_bytes(8)
    assert first.start_time_unix_nano == (1 << 62) + 1_500
    assert second.start_time_unix_nano == (1 << 62) + 1_501
    assert second.end_time_unix_nano == (1 << 62) + 1_600
    assert not second.HasField("status")
    assert {item.key: item.value.WhichOneof("value") for item in second.attributes} == {
        "waddle.violations": "int_value",
        "waddle.beside": "bool_value",
        "waddle.template": "string_value",
    }
    assert second.attributes[0].value.int_value == length


def test_many_traces_are_one_message():
    found = [Trace(number, 0, "", 0) for number in range(1, 40)]
    for trace in found:
        for number in range(12):
            trace.add(f"constraint K{number}", 0, 1, {"waddle.violations": 0})
    assert [span.trace_id for span in spans(*found)] == [
        trace.trace_id.to_bytes(16) for trace in found for _ in range(13)
    ]
