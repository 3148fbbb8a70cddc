"""Decides whether a request is traced.

By its caller (W3C Trace Context), or else by a random share.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from webhook.serving.trace import Sampled, Trace, new_identifier

QUEUED_MAX: Final = 1024
"""The most traces that wait to be sent, a few KiB each."""

PER_SECOND_MAX: Final = 100
"""The most traces begun in a second. Callers decide about sampling, and none may make all its
requests costly. At a share of 1 in 100 it suffices for 10,000 requests a second."""

_STATE_MAX: Final = 512
"""The longest tracestate that is passed on, in bytes; the standard requires at least as much."""

_PARENT: Final = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")

_PARENT_BYTES: Final = 55
_UNSAMPLED: Final = b"02468ace"
"""The last characters of a traceparent of that length without sampling, whose flag is the lowest
bit. An unreadable traceparent that ends so counts as missing; it is not sampled either."""

_lots: Final = random.Random()  # noqa: S311  # a share of requests, no secret


class Parent(NamedTuple):
    """The caller's span of a request."""

    trace_id: int
    span_id: int
    sampled: bool


def parse_parent(text: bytes) -> Parent | None:
    """Returns the parent in a ``traceparent``; None for an invalid one (W3C Trace Context, 3.2).

    Versions after 00 are read as version 00, and more text may follow.
    """
    match = _PARENT.fullmatch(text.strip())
    if match is None:
        return None
    version, trace, span, flags, rest = match.groups()
    trace_id, span_id = int(trace, 16), int(span, 16)
    if version == b"ff" or (version == b"00" and rest) or not trace_id or not span_id:
        return None
    return Parent(trace_id, span_id, bool(int(flags, 16) & 1))


class SampledTracer:
    """Decides which requests are traced, and keeps finished traces until they are sent.

    One thread samples and finishes, another one takes.
    """

    def __init__(
        self,
        per_million: int,
        *,
        per_second_max: int = PER_SECOND_MAX,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``per_million`` is the number of traces per million requests without a caller's trace."""
        # Compared with the low 56 bits of an identifier, which are random (W3C Trace Context, level
        # 2).
        self._bound = per_million * (1 << 56) // 1_000_000
        self._per_second_max = per_second_max
        self._clock = clock
        self._second = 0
        self._begun = 0
        self._finished: deque[Trace] = deque()
        self.begun = 0
        """The number of traces begun."""
        self.refused = 0
        """The number of traces not begun because of the limit per second."""
        self.overflowed = 0
        """The number of finished traces that were dropped for lack of room."""
        self.ready = threading.Event()
        """Set once there are enough traces to send them at once."""

    def sample(self, headers: Sequence[tuple[bytes, bytes]]) -> Sampled | None:
        """Returns the trace for a request with these headers; None for most requests.

        The first lines run for every request, so they allocate nothing. A caller without sampling,
        the usual case, is recognized by one byte.
        """
        header = None
        for name, value in headers:
            if name == b"traceparent":
                header = value
        low = _lots.getrandbits(56)
        if low >= self._bound and (
            header is None or (len(header) == _PARENT_BYTES and header[-1] in _UNSAMPLED)
        ):
            return None
        parent = None if header is None else parse_parent(header)
        if parent is None:
            if low >= self._bound:
                return None
            trace_id, span_id, state = (new_identifier(72) << 56) | low, 0, b""
        elif not parent.sampled:
            return None
        else:
            trace_id, span_id = parent.trace_id, parent.span_id
            state = dict(headers).get(b"tracestate", b"")
        now = int(self._clock())
        if now != self._second:
            self._second, self._begun = now, 0
        self._begun += 1
        if self._begun > self._per_second_max:
            self.refused += 1
            return None
        self.begun += 1
        shown = state.decode("ascii", "ignore") if len(state) <= _STATE_MAX else ""
        return Sampled(trace_id, span_id, shown)

    def finish(self, trace: Trace) -> None:
        """Keeps a trace until it is taken; drops and counts it if the queue is full."""
        if len(self._finished) >= QUEUED_MAX:
            self.overflowed += 1
            return
        self._finished.append(trace)
        if len(self._finished) >= QUEUED_MAX // 4:
            self.ready.set()

    def take(self, count: int) -> list[Trace]:
        """Returns the oldest finished traces, at most ``count``."""
        taken: list[Trace] = []
        while self._finished and len(taken) < count:
            taken.append(self._finished.popleft())
        return taken
