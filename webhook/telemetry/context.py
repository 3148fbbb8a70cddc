"""Whether a request is traced: what its caller says (W3C Trace Context), else a share of all."""

from __future__ import annotations

import random
import re
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.serving.trace import Sampled, new_identifier

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.serving.trace import Trace

QUEUED_MAX: Final = 1024
"""Traces that wait to be sent: of a few KiB each."""

PER_SECOND_MAX: Final = 100
"""Traces begun in a second, whoever asks for them: a caller decides about sampling, and none may
make each of its requests costly. At 1 in 100 it is what 10,000 requests a second come to."""

_STATE_MAX: Final = 512
"""Bytes of a tracestate that is passed on; the standard asks for at least as many."""

_PARENT: Final = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")

_PARENT_BYTES: Final = 55
_UNSAMPLED: Final = b"02468ace"
"""The last characters of a traceparent of that length whose caller does not sample: the flag is its
lowest bit. One that ends so and cannot be read is as good as none, and not sampled by it either."""

_lots: Final = random.Random()  # noqa: S311  # a share of requests, and no secret


class Parent(NamedTuple):
    """The span that a request was sent by."""

    trace_id: int
    span_id: int
    sampled: bool


def parse_parent(text: bytes) -> Parent | None:
    """The value of a ``traceparent``; None where it is not one (W3C Trace Context, 3.2).

    Of versions after 00 the part that this one knows is read, and more may follow it.
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
    """Says which requests are traced, and keeps traces that are finished until they are sent.

    Asked and finished on one thread, taken by another.
    """

    def __init__(
        self,
        per_million: int,
        *,
        per_second_max: int = PER_SECOND_MAX,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``per_million`` requests are traced of those whose caller has no trace of its own."""
        # Of an identifier's low 56 bits, which are random (W3C Trace Context, level 2).
        self._bound = per_million * (1 << 56) // 1_000_000
        self._per_second_max = per_second_max
        self._clock = clock
        self._second = 0
        self._begun = 0
        self._finished: deque[Trace] = deque()
        self.begun = 0
        """How many there were so far."""
        self.refused = 0
        """How many more would have been begun in their second."""
        self.overflowed = 0
        """How many there was no room for when they were finished."""
        self.ready = threading.Event()
        """Set when there are enough to be sent at once."""

    def sample(self, headers: Sequence[tuple[bytes, bytes]]) -> Sampled | None:
        """The trace that a request with these headers belongs to; None, as for most, if it has none.

        Every request pays for the first lines, so nothing is made in them: a caller that does not
        sample, as nearly all, shows in one byte.
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
        """Keep a trace until it is taken; one too many is dropped, and counted."""
        if len(self._finished) >= QUEUED_MAX:
            self.overflowed += 1
            return
        self._finished.append(trace)
        if len(self._finished) >= QUEUED_MAX // 4:
            self.ready.set()

    def take(self, count: int) -> list[Trace]:
        """The oldest traces that are finished, so many at most."""
        taken: list[Trace] = []
        while self._finished and len(taken) < count:
            taken.append(self._finished.popleft())
        return taken
