"""Exponential back-off with full jitter, for all retries.

Full jitter spreads replicas that lost the same peer at the same moment better than a jitter around
the limit. A floor of a tenth of the limit prevents a busy loop after a row of small draws.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final

from webhook.values import dataclass

_DOUBLINGS_MAX: Final = 60
"""Beyond any cap, and far below the overflow of a float."""


@dataclass(slots=True)
class Backoff:
    """Delays between 0 and a limit that doubles up to a cap; client-go's figures for reflectors.

    :meth:`reset` after a success forgets the failures. So does ``healthy_seconds`` without a
    failure, for callers that do not notice a success.
    """

    initial_seconds: float = 0.8
    max_seconds: float = 30.0
    healthy_seconds: float = 120.0
    clock: Callable[[], float] = time.monotonic
    failures: int = 0
    _last_failure: float = 0.0

    def next_seconds(self) -> float:
        """Returns the delay after one more failure, in seconds."""
        now = self.clock()
        if now - self._last_failure > self.healthy_seconds:
            self.failures = 0
        self._last_failure = now
        doubled = self.initial_seconds * 2.0 ** min(self.failures, _DOUBLINGS_MAX)
        limit = min(self.max_seconds, doubled)
        self.failures += 1
        return random.uniform(limit / 10, limit)  # noqa: S311  # jitter is no secret

    def reset(self) -> None:
        """Forgets the failures, after a success."""
        self.failures = 0
