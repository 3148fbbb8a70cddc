"""How long a review may take: what the API server says, less what the answer's way takes."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import parse_qs

from webhook.duration import duration_seconds

CEILING_SECONDS: Final = 30.0
"""A webhook's longest timeoutSeconds."""

MARGIN: Final = 0.1
"""The part of the time that is kept for the answer: the API server stops reading at its end, and
a 504 that arrives says more than a connection it gave up on. It also rounds what is left up to
whole seconds."""

MARGIN_SECONDS_MIN: Final = 0.05

PROMPT_SECONDS: Final = 3.0
LATE_PART: Final = 0.5
"""Of the time beyond these seconds this part is kept, too. The API server counts since before it
writes a request. Short of processors itself (150 objects of 100 to 230 kB at once, on two cores)
it wrote some up to 2.6 s later: half of 10 s less 3 s is 3.5 s."""


ROOM_SECONDS: Final = 0.15
"""Between the end of a review beside the admission thread and that of the wait for it. A thread
there may be at rest for 50 ms, may wait for three others to look at the clock, and the loop for a
slice of 5 ms: three times the one that counts."""

ROOM: Final = 0.2
"""The part of the time that this room takes at most."""


class InvalidTimeout(ValueError):
    """A ``timeout`` that is no duration."""


class RequestTime(NamedTuple):
    """The time of a request, on the monotonic clock."""

    received_at: float
    """When its head had arrived. The API server counts since shortly before."""
    until: float
    """When its answer is to be there."""

    @property
    def review_until(self) -> float:
        """When a review beside the admission thread is to end, so that its findings are waited for."""
        return self.until - min(ROOM_SECONDS, ROOM * (self.until - self.received_at))


_known: dict[bytes, float] = {}


def seconds_for(query: bytes, default_seconds: float) -> float:
    """Seconds for a review whose request had this query; raises :class:`InvalidTimeout`."""
    if not query:
        return _less_margin(default_seconds)
    seconds = _known.get(query)
    if seconds is None:
        seconds = _read(query, default_seconds)
        # The API server's queries are few; a client that varies them must not fill memory.
        if len(_known) < 64 and b"timeout" in query:
            _known[query] = seconds
    return seconds


def _read(query: bytes, default_seconds: float) -> float:
    values = parse_qs(query.decode("latin-1"), max_num_fields=None).get("timeout")
    if not values:
        return _less_margin(default_seconds)
    seconds = duration_seconds(values[0])
    if seconds is None or seconds <= 0:
        raise InvalidTimeout(f"timeout must be a duration such as 10s, got {values[0]!r}")
    return _less_margin(seconds)


def _less_margin(seconds: float) -> float:
    seconds = min(seconds, CEILING_SECONDS)
    prompt = min(seconds, PROMPT_SECONDS)
    beyond = (seconds - prompt) * (1 - LATE_PART)
    return max(prompt - max(prompt * MARGIN, MARGIN_SECONDS_MIN), 0.0) + beyond
