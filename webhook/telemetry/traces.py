"""Writes traces as OpenTelemetry's message in its wire format.

protobuf's Python classes take 0.3 ms for a trace of a dozen constraints, more than deciding the
request. Two properties of the encoding avoid most of that ("Last One Wins", "Field Order"): the
concatenation of a message's parts, in any order, is the message. So this module writes a span's
numbers, which have a fixed length and are new each time. protobuf encodes name and attributes once,
since they repeat with each evaluation of the same constraints.
"""

from __future__ import annotations

import functools
import struct
from typing import TYPE_CHECKING, Final

from opentelemetry.proto.trace.v1 import trace_pb2

from webhook.telemetry.messages import SCOPE, attributes_of, shortened

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opentelemetry.proto.resource.v1.resource_pb2 import Resource

    from webhook.serving.trace import Attribute, Span, Trace

_KEPT_MAX: Final = 1024
"""The most kept names with attributes, some hundred bytes each: enough for a large installation's
constraints, each without and with a few violations."""

_NUMBERS: Final = struct.Struct("<2s16s2s8s2s8scQcQ")
"""A span's fields of fixed length, each after its tag: the trace's identifier of 16 bytes, two of 8
bytes, begin and end."""

_TRACE_ID, _SPAN_ID, _PARENT_ID = b"\x0a\x10", b"\x12\x08", b"\x22\x08"
_BEGAN, _ENDED = b"\x39", b"\x41"
_FIRST, _SECOND = b"\x0a", b"\x12"
"""The tags of message fields 1 and 2."""


def traces_message(resource: Resource, traces: Sequence[Trace]) -> bytes:
    """Returns the spans of traces, the request's own span first (ExportTraceServiceRequest)."""
    spans = b"".join(_field(_SECOND, span) for trace in traces for span in _spans(trace))
    scoped = trace_pb2.ScopeSpans(scope=SCOPE).SerializeToString() + spans
    of_resource = trace_pb2.ResourceSpans(resource=resource).SerializeToString()
    return _field(_FIRST, of_resource + _field(_SECOND, scoped))


def _field(tag: bytes, message: bytes) -> bytes:
    """Returns a message inside another: its tag, its length as a varint, and itself."""
    length, size = [], len(message)
    while size > 127:
        length.append(size & 127 | 128)
        size >>= 7
    length.append(size)
    return tag + bytes(length) + message


def _spans(trace: Trace) -> list[bytes]:
    offset = trace.wall_ns - trace.began_ns
    trace_id = trace.trace_id.to_bytes(16)
    spans = []
    if trace.whole:
        attributes = {"http.request.method": "POST", **trace.attributes}
        if trace.dropped:
            attributes["waddle.spans.dropped"] = trace.dropped
        root = trace_pb2.Span(
            trace_id=trace_id,
            span_id=trace.span_id.to_bytes(8),
            parent_span_id=trace.parent_id.to_bytes(8) if trace.parent_id else b"",
            trace_state=trace.state,
            name=f"POST {trace.attributes.get('url.path', '')}",
            kind=trace_pb2.Span.SPAN_KIND_SERVER,
            start_time_unix_nano=trace.wall_ns,
            end_time_unix_nano=trace.ended_ns + offset,
            attributes=attributes_of(attributes),
            status=_status(trace.error),
        )
        spans.append(root.SerializeToString())
    spans += [_span(trace_id, span, offset) for span in tuple(trace.spans)]
    return spans


def _span(trace_id: bytes, span: Span, offset: int) -> bytes:
    if span.error:  # its text varies, so it is not kept
        named = _named(span.name, span.attributes, span.error)
    else:
        named = _kept(span.name, tuple(span.attributes.items()))
    numbers = _NUMBERS.pack(
        *(_TRACE_ID, trace_id),
        *(_SPAN_ID, span.span_id.to_bytes(8)),
        *(_PARENT_ID, span.parent_id.to_bytes(8)),
        *(_BEGAN, span.began_ns + offset),
        *(_ENDED, span.ended_ns + offset),
    )
    return numbers + named


@functools.lru_cache(_KEPT_MAX, typed=True)
def _kept(name: str, attributes: tuple[tuple[str, Attribute], ...]) -> bytes:
    return _named(name, dict(attributes), "")


def _named(name: str, attributes: Mapping[str, Attribute], error: str) -> bytes:
    """Returns all parts of a span except its numbers."""
    return trace_pb2.Span(
        name=name,
        kind=trace_pb2.Span.SPAN_KIND_INTERNAL,
        attributes=attributes_of(attributes),
        status=_status(error),
    ).SerializeToString()


def _status(error: str) -> trace_pb2.Status | None:
    if not error:
        return None
    return trace_pb2.Status(code=trace_pb2.Status.STATUS_CODE_ERROR, message=shortened(error))
