"""Bounds the memory of all reviews beside the admission thread, and decides which has to stop.

Time bounds no memory: in a tenth of a second a policy makes 100 MiB of what is small, and a large
object has thirty times that. What the process holds is looked at as often as the clock is. Where it
has grown by much, whoever has worked for a while goes on alone, the others of that kind wait: so
it is known whose doing further growth is, and that evaluation ends as an overrun.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Final

from webhook import heap
from webhook.rego.errors import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Callable

TOGETHER_BYTES_MAX: Final = 48 * 1024 * 1024
"""The bound of all reviews' memory together, in bytes, before one goes on alone."""

ALONE_BYTES_MAX: Final = 64 * 1024 * 1024
"""The bound of that one review's memory, in bytes. The manifests' 512 MiB are 110 for what is in
force, 48 for bodies, 192 for what is decoded, these two, and 50 for what is kept of all this after
it was freed."""

LIGHT_SECONDS: Final = 0.02
"""Of a processor: who has worked for less has made some 20 MiB at most, and waits for nobody."""


BLOCK_BYTES: Final = 64
"""The size of an object at least, about, in bytes: memory that the interpreter has kept is used
again without the process growing by it, and only the number of objects shows that."""

COUNT_SECONDS: Final = 0.02
"""Between two counts of objects, each of which takes up to a millisecond; some 20 MiB are made so."""


class ReviewMemory:
    """Looked at by each thread that reviews, while it does."""

    def __init__(
        self,
        decoded: Callable[[], int],
        resident: Callable[[], int] | None = None,
        blocks: Callable[[], int] = sys.getallocatedblocks,
    ) -> None:
        """``decoded`` is what requests are accounted for, ``resident`` what the process holds.

        ``blocks`` counts objects.
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
        """Bytes: of what the process grew, or of the objects that there are more."""
        decoded, now = self._decoded(), time.monotonic()
        if now - self._counted_at > COUNT_SECONDS:
            self._counted_at = now
            self._blocks_seen = self._blocks() - decoded // BLOCK_BYTES
        grown = self._resident() - decoded - self._at_rest
        return max(grown, (self._blocks_seen - self._blocks_at_rest) * BLOCK_BYTES)

    def look(self, review: object, worked_seconds: float, until: float) -> None:
        """See whether this review may go on, and wait while another goes on alone.

        ``until`` is on the monotonic clock. Raises
        :class:`~webhook.rego.errors.EvaluationError` where it has made too much, or waited too long.
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
                self._since = None  # What it made goes with the evaluation; others of it follow.
                raise EvaluationError(
                    "eval_cancel_error",
                    f"evaluation made more than {ALONE_BYTES_MAX // 1024 // 1024} MiB",
                )

    def end(self, review: object) -> None:
        """Give its memory back, and let the next one on if it was alone."""
        with self._changed:
            if self._alone is not review:
                return
        # Before another is let on: what is kept of this one would be taken for its.
        heap.give_back()
        with self._changed:
            self._alone = None
            self._changed.notify_all()

    def wake(self) -> None:
        """Have who waits look anew."""
        with self._changed:
            self._alone = None
            self._changed.notify_all()
