"""Reviews that take too long for the admission thread, carried on beside it.

One policy must not hold up the others' requests. A review that takes more than
:data:`FAST_SECONDS` is begun anew here, with the whole budget of an evaluation,
on a thread that rests longer than it works: the interpreter has one lock, and
whoever has short work must not wait for it.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from webhook.constraint import enforcement
from webhook.constraint.limits import Budget, Limits
from webhook.rego.errors import EvaluationError
from webhook.server.profiling import SLOW_REVIEWS

if TYPE_CHECKING:
    from concurrent.futures import Future

    from webhook.constraint.breaker import Guard
    from webhook.constraint.result import Responses
    from webhook.constraint.review import AugmentedReview
    from webhook.constraint.snapshot import Snapshot

FAST_SECONDS: Final = 0.01
"""An evaluation's time on the admission thread. The heaviest of Gatekeeper's library took 8 ms
beside 10,000 Ingresses, and 10 ms for a Pod of 500 containers; a usual one takes a tenth of one."""

RESTS: Final = 2
"""How much longer than its work the thread rests: a third of the core is left for it."""

REST_SECONDS_MAX: Final = 0.05
"""A rest holds up whoever stops the process."""

WAITING_MAX: Final = 64
"""Reviews that wait here; each holds its request. More are told to try again."""


class SlowReviews:
    """One thread, and a bounded queue before it."""

    def __init__(self, evaluation_seconds: float, guard: Guard) -> None:
        self._stopping = False
        self._budget = Budget.of(evaluation_seconds, rest=self._rest, guard=guard)
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=SLOW_REVIEWS)
        self._room = threading.BoundedSemaphore(WAITING_MAX)

    def review(
        self, snapshot: Snapshot, subject: AugmentedReview, until: float
    ) -> Future[Responses] | None:
        """What the snapshot finds, by this moment on the monotonic clock; None without room."""
        if not self._room.acquire(blocking=False):
            return None
        limits = Limits(until, budget=self._budget)
        future = self._executor.submit(
            snapshot.review, subject, enforcement_point=enforcement.WEBHOOK, limits=limits
        )
        future.add_done_callback(lambda _: self._room.release())
        return future

    def _rest(self, worked_seconds: float) -> None:
        if self._stopping:
            raise EvaluationError("eval_cancel_error", "the process is stopping")
        time.sleep(min(RESTS * worked_seconds, REST_SECONDS_MAX))

    def stop(self) -> None:
        """Begin no more, and end what is being reviewed: the process waits for its threads."""
        self._stopping = True
        self._executor.shutdown(wait=False, cancel_futures=True)
