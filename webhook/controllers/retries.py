"""Templates that the machine could not compile, and when each is tried again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import field
from typing import Final

from webhook.backoff import Backoff
from webhook.values import dataclass

FIRST_SECONDS: Final = 5.0
"""The longest first wait: a short lack of resources is over soon."""

MAX_SECONDS: Final = 300.0
"""The longest wait; each attempt writes a status, and may take as much memory as was missing."""


@dataclass(slots=True)
class _Retry:
    backoff: Backoff
    at: float = field(default=0.0)


class Retries:
    """Used by one task. ``clock`` is in seconds since the epoch, as statuses show the time."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._waiting: dict[str, _Retry] = {}

    def failed(self, name: str) -> None:
        """Schedules the next attempt, later after each failure."""
        retry = self._waiting.get(name)
        if retry is None:
            # Failures count until it succeeds, however long that takes.
            backoff = Backoff(FIRST_SECONDS, MAX_SECONDS, healthy_seconds=math.inf)
            retry = self._waiting[name] = _Retry(backoff)
        retry.at = self._clock() + retry.backoff.next_seconds()

    def forget(self, name: str) -> None:
        """Ends the retries of a template that was compiled, deleted or changed."""
        self._waiting.pop(name, None)

    def next_at(self, name: str) -> float | None:
        """Returns the time of the next retry; None without one."""
        retry = self._waiting.get(name)
        return None if retry is None else retry.at

    def due(self) -> list[str]:
        """Returns the keys whose retry is due."""
        now = self._clock()
        return [name for name, retry in self._waiting.items() if retry.at <= now]
