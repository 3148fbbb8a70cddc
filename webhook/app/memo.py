"""The memo of the thread that answers admissions, its numbers, and the thread that derives read sets."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from webhook.app.jobs_thread import JobsThread
from webhook.constraint.memo import Memo, MemoCounts
from webhook.metrics.admission import MEMO_BYTES, MEMO_HITS, MEMO_MISSES, MEMO_RESTING

if TYPE_CHECKING:
    from webhook.log import Logger
    from webhook.metrics.registry import Registry

_KEY_BYTES = 32


class AdmissionMemo:
    """Owned by the review thread; the metrics thread reads its numbers."""

    def __init__(self, bytes_max: int, registry: Registry, log: Logger) -> None:
        self._jobs = JobsThread("derive", "the results of some constraints are not kept", log)
        self.memo = Memo(bytes_max, self._jobs.submit, key=os.urandom(_KEY_BYTES))
        self._registry = registry
        self._counted = MemoCounts()
        """The counts that the metrics have already."""

    def refresh(self) -> None:
        """Bring the numbers up to date for a scrape."""
        registry, now, before = self._registry, self.memo.counts, self._counted
        self._counted = now
        registry.count(MEMO_HITS, by=now.hits - before.hits)
        registry.count(MEMO_MISSES, by=now.misses - before.misses)
        registry.set(MEMO_BYTES, now.bytes)
        registry.set(MEMO_RESTING, now.resting)

    def stop(self) -> None:
        """Derive no more."""
        self._jobs.stop()
