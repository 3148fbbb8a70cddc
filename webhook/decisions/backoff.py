"""Exponential back-off with full jitter, for reconnecting and for sinks."""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass(slots=True)
class Backoff:
    """Delays that double up to a cap, each drawn anew between 0 and its limit.

    Full jitter spreads replicas that lost the same peer at the same moment
    better than a jitter around the limit does. A floor of a tenth of the limit
    keeps a row of small draws from becoming a busy loop.
    """

    initial_seconds: float = 0.5
    max_seconds: float = 60.0
    source: random.Random = field(default_factory=random.Random, repr=False)
    failures: int = 0

    def next_seconds(self) -> float:
        """The delay after one more failure."""
        limit = min(self.max_seconds, self.initial_seconds * 2.0 ** min(self.failures, 60))
        self.failures += 1
        return self.source.uniform(limit / 10, limit)

    def reset(self) -> None:
        """Begin anew, after a success."""
        self.failures = 0
