"""The deadline of a review: the API server's timeout, less the time of the answer."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import parse_qs

from webhook.duration import duration_seconds

CEILING_SECONDS: Final = 30.0
"""A webhook's longest timeoutSeconds."""

MARGIN: Final = 0.1
"""The part of the time that is kept for the answer. The API server stops reading at its deadline,
and a 504 that arrives says more than a broken connection. It also covers rounding to whole seconds.
"""

MARGIN_SECONDS_MIN: Final = 0.05

PROMPT_SECONDS: Final = 3.0
LATE_PART: Final = 0.5
"""A further part that is kept of the time beyond 3 seconds. The API server counts from before it
writes a request. With too few processors (150 objects of 100 to 230 kB at once, on two cores) it
wrote some up to 2.6 s later: half of 10 s less 3 s is 3.5 s.
"""


ROOM_SECONDS: Final = 0.15
"""The time between the end of a review on another thread and the end of waiting for it. Such a
thread may rest for 50 ms, wait for three others, and the event loop for a slice of 5 ms: three
times the largest.
"""

ROOM: Final = 0.2
"""The largest part of the time for this room."""


class InvalidTimeout(ValueError):
    """The query parameter ``timeout`` is no duration."""


class RequestTime(NamedTuple):
    """The time of a request, on the monotonic clock."""

    received_at: float
    """When the request's head had arrived. The API server counts from a little before."""
    until: float
    """When the answer is due."""

    @property
    def review_until(self) -> float:
        """Returns the deadline of a review on another thread, so that its findings arrive in time."""
        return self.until - min(ROOM_SECONDS, ROOM * (self.until - self.received_at))


_known: dict[bytes, float] = {}


def seconds_for(query: bytes, default_seconds: float) -> float:
    """Returns the seconds for a review by a request's query; raises :class:`InvalidTimeout`."""
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
