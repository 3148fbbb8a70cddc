"""Exponential back-off with full jitter, which forgets failures after a time of health."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(slots=True)
class Backoff:
    """Delays between 0 and a limit that doubles; client-go's figures for its reflectors.

    A floor of a tenth of the limit keeps a row of small draws from being a busy loop.
    """

    initial_seconds: float = 0.8
    max_seconds: float = 30.0
    healthy_seconds: float = 120.0
    source: random.Random = field(default_factory=random.Random, repr=False)
    clock: Callable[[], float] = time.monotonic
    _failures: int = 0
    _last_failure: float = 0.0

    def next_seconds(self) -> float:
        """The delay after one more failure."""
        now = self.clock()
        if now - self._last_failure > self.healthy_seconds:
            self._failures = 0
        self._last_failure = now
        limit = min(self.max_seconds, self.initial_seconds * 2.0 ** min(self._failures, 30))
        self._failures += 1
        return self.source.uniform(limit / 10, limit)
