"""Times as Kubernetes writes them in objects: RFC 3339, UTC, whole seconds (metav1.Time)."""

from __future__ import annotations

import datetime as dt
import time
from typing import Final

_FORMAT: Final = "%Y-%m-%dT%H:%M:%SZ"


def text_of(seconds: float) -> str:
    """Returns the text of a time in seconds since the epoch; fractions are cut off."""
    return dt.datetime.fromtimestamp(seconds, tz=dt.UTC).strftime(_FORMAT)


def seconds_of(text: str) -> float:
    """Returns the time in seconds since the epoch.

    Raises ``ValueError`` for other texts, ``TypeError`` for no text.
    """
    return dt.datetime.strptime(text, _FORMAT).replace(tzinfo=dt.UTC).timestamp()


def now() -> str:
    """Returns the present time."""
    return text_of(time.time())
