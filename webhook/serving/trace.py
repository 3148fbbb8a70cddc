"""The trace of one request: spans with their times.

Only sampled requests have a trace. Times are of the monotonic clock in nanoseconds, so that setting
the wall clock makes no span negative; a trace keeps the wall-clock time of its beginning.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.constraint.constraint import Constraint

Attribute = str | int | bool

SPANS_MAX: Final = 256
"""Of one trace. A review of more templates has spans for the first ones, and a count of the others.
"""

NAMES_MAX: Final = 16
"""The most constraints that one span names."""

_identifiers: Final = random.Random()  # noqa: S311  # names, and no secrets


def new_identifier(bits: int) -> int:
    """Returns a random identifier of this many bits, never zero (W3C Trace Context)."""
    return _identifiers.getrandbits(bits) or 1


class Span(NamedTuple):
    """A part of a request's time."""

    name: str
    began_ns: int
    ended_ns: int
    span_id: int
    parent_id: int
    attributes: Mapping[str, Attribute]
    error: str = ""


class Sampled(NamedTuple):
    """The trace that a request belongs to."""

    trace_id: int
    parent_id: int
    """Of the caller's span; 0 where there is none."""
    state: str
    """The caller's tracestate."""


class Trace:
    """The spans of one request. One thread at a time adds to it."""

    __slots__ = (
        "attributes",
        "began_ns",
        "dropped",
        "ended_ns",
        "error",
        "parent_id",
        "review_began_ns",
        "review_ended_ns",
        "review_id",
        "span_id",
        "spans",
        "state",
        "trace_id",
        "wall_ns",
        "whole",
    )

    def __init__(self, trace_id: int, parent_id: int, state: str, began_ns: int) -> None:
        """``parent_id`` is the caller's span, 0 where there is none; ``state`` its tracestate."""
        self.trace_id = trace_id
        self.parent_id = parent_id
        self.state = state
        self.span_id = new_identifier(64)
        self.review_id = new_identifier(64)
        """The identifier of the span of deciding, the parent of constraints' spans."""
        self.review_began_ns = self.review_ended_ns = 0
        self.began_ns = began_ns
        self.ended_ns = began_ns
        self.wall_ns = time.time_ns() - (time.monotonic_ns() - began_ns)
        self.attributes: dict[str, Attribute] = {}
        self.error = ""
        self.spans: list[Span] = []
        self.dropped = 0
        """The number of spans beyond :data:`SPANS_MAX`."""
        self.whole = True
        """Whether the request's own span is included; false for spans sent later."""

    def later(self) -> Trace:
        """Returns a trace for spans that end after the request's trace was handed over."""
        trace = Trace(self.trace_id, self.parent_id, self.state, self.began_ns)
        trace.span_id, trace.wall_ns, trace.whole = self.span_id, self.wall_ns, False
        return trace

    def add(
        self,
        name: str,
        began_ns: int,
        ended_ns: int,
        attributes: Mapping[str, Attribute] | None = None,
        *,
        span_id: int = 0,
        parent_id: int = 0,
        error: str = "",
    ) -> None:
        """Adds a span; by default its parent is the request's span."""
        if len(self.spans) >= SPANS_MAX and not span_id:
            self.dropped += 1
            return
        span = Span(
            name,
            began_ns,
            ended_ns,
            span_id or new_identifier(64),
            parent_id or self.span_id,
            attributes or {},
            error,
        )
        self.spans.append(span)

    def evaluated(
        self,
        constraints: Sequence[Constraint],
        began_ns: int,
        ended_ns: int,
        violations: int,
        error: str,
    ) -> None:
        """Adds the span of an evaluation.

        Constraints of one template with equal parameters, and the result.
        """
        first = constraints[0]
        attributes: dict[str, Attribute] = {
            "waddle.template": first.kind,
            "waddle.constraint": ",".join(item.name for item in constraints[:NAMES_MAX]),
            "waddle.constraints": len(constraints),
            "waddle.violations": violations,
        }
        name = f"constraint {first.kind}"
        self.add(name, began_ns, ended_ns, attributes, parent_id=self.review_id, error=error)


class CurrentTrace:
    """The trace of the request that a thread is working on, if it is sampled."""

    __slots__ = ("trace",)

    def __init__(self) -> None:
        self.trace: Trace | None = None


class Exports(Protocol):
    """Knows when the record of a decision was acknowledged outside of the process."""

    def recorded(self) -> int:
        """Returns the number of records queued so far; for the admission thread."""

    def await_export(self, trace: Trace) -> None:
        """Adds a span to the trace when the newest record is acknowledged."""


class Tracer(Protocol):
    """Decides which requests are sampled, and takes their traces without waiting."""

    def sample(self, headers: Sequence[tuple[bytes, bytes]]) -> Sampled | None:
        """Returns the trace of a request with these headers; None if it is not sampled."""

    def finish(self, trace: Trace) -> None:
        """Takes the trace of an answered request."""


@dataclass(frozen=True, slots=True)
class Tracing:
    """The tracing options of the admission thread."""

    tracer: Tracer
    current: CurrentTrace
    exports: Exports | None = None
    """The acknowledgements of the decision log, if there is one."""
