"""When a decision was made, as text."""

from __future__ import annotations

import datetime as dt
import time

_second = (-1, "")
"""The last second that was written, and its text: each costs a third of isoformat."""


def timestamp(now: float | None = None) -> str:
    """Now, or ``now`` in seconds since 1970: RFC 3339 with microseconds, UTC."""
    global _second  # noqa: PLW0603  # a pair, replaced whole: threads may have it made twice
    if now is None:
        now = time.time()
    whole = int(now)
    second, text = _second
    if whole != second:
        text = dt.datetime.fromtimestamp(whole, dt.UTC).isoformat(timespec="seconds")[:19]
        _second = whole, text
    return f"{text}.{int((now - whole) * 1e6):06d}Z"
