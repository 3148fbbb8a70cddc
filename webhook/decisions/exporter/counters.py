"""What became of the records that were offered."""

from __future__ import annotations

from dataclasses import field
from typing import Final

from webhook.values import dataclass

DROP_REASONS: Final = (
    *("queue_full", "rule", "sampled", "too_large"),
    *("shutdown", "bug", "audit_timeout"),
)
"""Why records are dropped, each a series from the start: one that appears has no increase."""


@dataclass(slots=True)
class Counters:
    """Records by what became of them, each counted where it happens.

    ``offered`` is every record there was; with those still queued,
    ``offered = acknowledged + sent + dropped + queued`` at any time (``sent``
    is for a receiver that never acknowledges). ``retried`` counts records sent
    again and is no outcome; ``faults`` counts connections that a bug ended.
    """

    offered: int = 0
    acknowledged: int = 0
    sent: int = 0
    retried: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    connects: int = 0
    connect_failures: int = 0
    faults: int = 0

    def drop(self, reason: str, count: int = 1) -> None:
        """Count records that will never be delivered."""
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count
