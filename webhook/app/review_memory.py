"""Limits the memory of all reviews beside the admission thread, and chooses the one to stop.

A time limit does not limit memory: in a tenth of a second a policy makes 100 MiB of small objects,
and thirty times that with a large input. The memory of the process is checked as often as the
clock. After a large growth one review that has worked for a while continues alone, and the others
of that kind wait. Then further growth is known to be that review's, and it ends as an overrun.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Final

from webhook import heap
from webhook.rego.errors import EvaluationError

TOGETHER_BYTES_MAX: Final = 48 * 1024 * 1024
"""The limit of all reviews' memory together, in bytes, before one continues alone."""

ALONE_BYTES_MAX: Final = 64 * 1024 * 1024
"""The limit of that review's own memory, in bytes. The manifests' 512 MiB consist of 110 for the
policies and data in force, 48 for bodies, 192 for decoded objects, these two, and 50 that the
allocator keeps of freed memory."""

LIGHT_SECONDS: Final = 0.02
"""Processor time: a review with less has made some 20 MiB at most, and does not wait."""


BLOCK_BYTES: Final = 64
"""The size of an object at least, about, in bytes: memory that the interpreter has kept is used
again without the process growing by it, and only the number of objects shows that."""

COUNT_SECONDS: Final = 0.02
"""The pause between two counts of objects, each of which takes up to a millisecond; meanwhile some
20 MiB are made."""


class ReviewMemory:
    """Looked at by each thread that reviews, while it does."""

    def __init__(
        self,
        decoded: Callable[[], int],
        resident: Callable[[], int] | None = None,
        blocks: Callable[[], int] = sys.getallocatedblocks,
    ) -> None:
        """``decoded`` gives the memory accounted to requests, ``resident`` that of the process.

        ``blocks`` gives the number of allocated blocks.
        """
        self._blocks = blocks
        self._blocks_at_rest = 0
        self._blocks_seen = 0
        self._counted_at = 0.0
        self._decoded = decoded
        self._resident = resident or heap.ResidentMemory().bytes_now
        self._changed = threading.Condition()
        self._at_rest = 0
        self._alone: object | None = None
        self._since: int | None = None

    def begin(self) -> None:
        """A review begins while no other is under way."""
        self._at_rest = self._resident() - self._decoded()
        self._blocks_at_rest = self._blocks_seen = self._blocks() - self._decoded() // BLOCK_BYTES

    def _made(self) -> int:
        """Returns the growth in bytes: of the process, or of the number of blocks if that is more."""
        decoded, now = self._decoded(), time.monotonic()
        if now - self._counted_at > COUNT_SECONDS:
            self._counted_at = now
            self._blocks_seen = self._blocks() - decoded // BLOCK_BYTES
        grown = self._resident() - decoded - self._at_rest
        return max(grown, (self._blocks_seen - self._blocks_at_rest) * BLOCK_BYTES)

    def look(self, review: object, worked_seconds: float, until: float) -> None:
        """Checks whether this review may continue; waits while another one continues alone.

        ``until`` is on the monotonic clock. Raises :class:`~webhook.rego.errors.EvaluationError` if
        the review has made too much, or waited too long.
        """
        if worked_seconds < LIGHT_SECONDS:
            return
        memory = self._made()
        if memory <= TOGETHER_BYTES_MAX and self._alone is None:
            return
        with self._changed:
            while self._alone is not review:
                if self._alone is None:
                    memory = self._made()
                    if memory <= TOGETHER_BYTES_MAX:
                        return
                    self._alone, self._since = review, memory
                    return
                if not self._changed.wait(max(0.0, until - time.monotonic())):
                    raise EvaluationError("eval_cancel_error", "evaluation exceeded its deadline")
            if self._since is None:
                self._since = memory
            elif memory - self._since > ALONE_BYTES_MAX:
                self._since = None  # Its memory is freed with the evaluation; other evaluations of the review follow.
                raise EvaluationError(
                    "eval_cancel_error",
                    f"evaluation made more than {ALONE_BYTES_MAX // 1024 // 1024} MiB",
                )

    def end(self, review: object) -> None:
        """Frees the review's memory, and lets the next one continue if this one was alone."""
        with self._changed:
            if self._alone is not review:
                return
        # Before the next one continues: memory kept from this review would count as the next one's.
        heap.give_back()
        with self._changed:
            self._alone = None
            self._changed.notify_all()

    def wake(self) -> None:
        """Lets all waiting reviews check again."""
        with self._changed:
            self._alone = None
            self._changed.notify_all()
