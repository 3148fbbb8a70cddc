"""Reviews and mutations that take too long for the admission thread, continued on other threads.

One policy, or one large object, must not delay other users' requests. Work that takes more than
:data:`FAST_SECONDS` is begun anew here, with the whole budget of an evaluation, which grows with
the object. Work on a large object begins here. The threads share the work fairly, and rest longer
than they work: the interpreter has one lock, and short work must not wait for it.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from webhook import heap
from webhook.app.priority import compute_beside
from webhook.app.review_memory import ReviewMemory
from webhook.constraint.limits import Budget
from webhook.rego.errors import EvaluationError
from webhook.review.outcome import Found
from webhook.server.http.fair_queue import FairQueue, Flow
from webhook.server.preparation import SlowReview
from webhook.server.profiling import SLOW_REVIEWS
from webhook.server.responsibility import requester
from webhook.server.verdict import RESULTS_AT_ONCE
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from webhook.api.admission import AdmissionRequest
    from webhook.constraint.breaker import Guard
    from webhook.server.deadline import RequestTime
    from webhook.server.responsibility import Delay, ProcessorTime

T = TypeVar("T")

FAST_SECONDS: Final = 0.01
"""The time on the admission thread for one evaluation, and for all mutators together. The slowest
template of Gatekeeper's library took 8 ms beside 10,000 Ingresses, and 10 ms for a Pod of 500
containers; a usual one takes a tenth of that."""

BUDGET_BYTES: Final = 32 * 1024
"""The size of a request up to which an evaluation has the configured budget; larger ones have more
in proportion. A Pod of 500 containers is 36 KB, and took a tenth of that budget."""

BUDGET_GROWTH_MAX: Final = 30
"""The largest factor of the budget: beyond a MiB requests have no more time than three seconds."""

WORKERS: Final = 4
"""The number of threads. They share the rest of one core, so more threads do no more work. But a
short review need not wait for the end of a long one, nor for that of three."""

RESTS: Final = 2
"""How many times as long as their work the threads rest, together: a third of the core is left for
them."""

TURN_WAIT_SECONDS: Final = 0.02
"""How long a thread waits for the others to rest before it continues beside them."""

WORKED_SECONDS_MIN: Final = 0.001
"""The processor time from which on a thread rests between evaluations: about that of a whole review
of a usual object, which is large by its texts. With rests it took 3 ms longer."""

KEPT_SECONDS_MAX: Final = 0.02
"""How long a thread waits for the answer to be given before it leaves results to be freed there."""

LOOKED_SECONDS: Final = 0.002
"""How often it looks."""

FREED_SECONDS: Final = 0.0002
"""The pause between two slices of results that are freed."""

REST_SECONDS_MAX: Final = 0.05
"""The longest rest of a thread, which also delays the end of the process."""

NOTED_SECONDS: Final = 0.01
"""The processor time of a running review is recorded in steps of this."""

WAITING_MAX: Final = 64
"""The most reviews that wait here; each holds its request. Further ones must try again."""

ANSWER_SECONDS: Final = 0.004
"""The pause between two answers at their latest time. Each takes a millisecond or two to find its
undecided policies, and requests that began together end together. All requests that may wait here
have a quarter of a second, before the end of their time."""

HEAVY_BYTES_MIN: Final = 512 * 1024
"""A request of this size or more is heavy: decoded and evaluated it may take thirty times its
bytes, and as much again for values made by policies."""

HEAVY_BYTES_MAX: Final = 1024 * 1024
"""The most bytes of heavy requests under review at a time; one is always admitted, so at most two
are."""


@dataclass(frozen=True, slots=True)
class _Work:
    carry_out: Callable[[Budget], Any]
    request: AdmissionRequest
    until: float
    review: SlowReview[Any]
    flow: Flow


class _Lane:
    """The unfinished reviews of one flow."""

    __slots__ = ("bytes_min", "count")

    def __init__(self, size: int) -> None:
        self.count = 0
        self.bytes_min = size
        """The smallest request since the lane was empty, in bytes."""


class SlowReviews:
    """The threads, and a bounded queue before them."""

    def __init__(
        self,
        evaluation_seconds: float,
        guard: Guard,
        times: ProcessorTime,
        memory: ReviewMemory | None = None,
    ) -> None:
        """``times`` records all processor time; ``memory`` is checked during the work."""
        self._memory = memory or ReviewMemory(lambda: 0)
        self._times = times
        self._seconds = evaluation_seconds
        self._guard = guard
        self._stopping = False
        self._queue: FairQueue[_Work] = FairQueue(
            waiting_max=WAITING_MAX, workers=WORKERS, weight_max=HEAVY_BYTES_MAX
        )
        self._lanes: dict[Flow, _Lane] = {}
        """The flows with unfinished work."""
        self._answers: set[int] = set()
        """Moments that are taken for answers that cannot wait longer, in spaces between them."""
        self._active = 0
        self._turn = threading.Lock()
        """Held by the thread that computes. With several the thread that answers waits for the
        interpreter behind all of them: whoever gives it up cannot choose who has it next."""
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []

    def is_behind(self, request: AdmissionRequest) -> bool:
        """Whether a review of the same user and namespace that is no larger is unfinished."""
        if not self._lanes:  # As nearly always.
            return False
        lane = self._lanes.get(Flow(requester(request), request.namespace))
        return lane is not None and lane.bytes_min <= request.size

    def rests_of(self, user: str) -> int:
        """How many times as long as its last work a user's next work waits; 0 without other users.

        Decoding for one user takes the processor from reviews of others.
        """
        with self._changed:
            others = self._queue.others_than(user)
        return (RESTS + 1) * (others + 1) - 1 if others else 0

    def begin(
        self, work: Callable[[Budget], T], request: AdmissionRequest, span: RequestTime
    ) -> SlowReview[T] | Delay:
        """Begins work for a request within its time; returns a Delay if there is no room.

        ``work`` gets the budget of each of its evaluations, and rests as the budget says.
        """
        flow = Flow(requester(request), request.namespace)
        slow = SlowReview[T]()
        queued = _Work(work, request, span.review_until, slow, flow)
        weight = request.size if request.size > HEAVY_BYTES_MIN else 0
        with self._changed:
            slow.before = self._queue.before(flow)
            displaced = queued if self._stopping else self._queue.put(flow, queued, weight)
            if displaced is queued:
                return self._queue.delay(flow)
            slot = self._enter(flow, request.size, span.until)
            slow.answer_at = slot * ANSWER_SECONDS
            slow.future.add_done_callback(partial(self._leave, flow, slot))
            if displaced is not None:
                displaced.review.crowded_out = self._queue.delay(displaced.flow)
            idle = len(self._threads) - self._active
            if self._queue.size > idle and len(self._threads) < WORKERS:
                name = f"{SLOW_REVIEWS}_{len(self._threads)}"
                thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._threads.append(thread)
                thread.start()
            self._changed.notify()
        if displaced is not None:
            displaced.review.future.cancel()
        return slow

    def _enter(self, flow: Flow, size: int, until: float) -> int:
        """Counts work in, and takes the last free moment for an answer that cannot wait longer."""
        lane = self._lanes.setdefault(flow, _Lane(size))
        lane.count += 1
        lane.bytes_min = min(lane.bytes_min, size)
        slot = int(until / ANSWER_SECONDS)
        while slot in self._answers:
            slot -= 1
        self._answers.add(slot)
        return slot

    def _leave(self, flow: Flow, slot: int, _: Future[Any]) -> None:
        """Work has ended, or will not begin."""
        with self._changed:
            self._answers.discard(slot)
            lane = self._lanes[flow]
            lane.count -= 1
            if not lane.count:
                del self._lanes[flow]

    def _run(self) -> None:
        compute_beside()
        while True:
            with self._changed:
                while (taken := self._queue.take()) is None and not self._stopping:
                    self._changed.wait()
                if taken is None:
                    return
                if not self._active:
                    self._memory.begin()
                self._active += 1
            flow, work = taken
            began = time.thread_time()
            spent: list[Any] = []
            try:
                spent = self._carry_out(work)
            finally:
                self._memory.end(work)
                with self._changed:
                    self._active -= 1
                    self._queue.done(flow, time.thread_time() - began)
                    self._changed.notify_all()
                # An idle thread must not keep megabytes of its last review.
                del taken, work
            if spent:
                _free(spent)
            del spent

    def _carry_out(self, work: _Work) -> list[Any]:
        """Carries work out; returns many results, which are freed once they are answered."""
        future = work.review.future
        if not future.set_running_or_notify_cancel():
            return []  # The caller has given up.
        began = noted = rested = time.thread_time()
        has_turn = False

        def rest(worked_seconds: float) -> None:
            nonlocal noted, rested, has_turn
            now = time.thread_time()
            worked = now - rested  # Also between evaluations, where nobody counts it.
            is_within = worked_seconds > 0
            if not is_within and (worked < WORKED_SECONDS_MIN or time.monotonic() > work.until):
                return
            if has_turn:
                self._turn.release()
            has_turn = False
            work.review.worked_seconds = now - began
            if now - noted >= NOTED_SECONDS:
                self._times.note_beside(work.flow.user, now - noted)
                noted = now
            self._rest(work, worked, is_within=is_within)
            has_turn = self._turn.acquire(timeout=TURN_WAIT_SECONDS)
            rested = time.thread_time()

        outcome: Any = None
        fault: BaseException | None = None
        seconds = self._seconds * growth(work.request.size)
        try:
            has_turn = self._turn.acquire(timeout=TURN_WAIT_SECONDS)
            outcome = work.carry_out(Budget.of(seconds, rest=rest, guard=self._guard))
        except BaseException as error:  # noqa: BLE001  # passed to the waiting caller
            fault = error
        finally:
            if has_turn:
                self._turn.release()
        now = time.thread_time()
        work.review.worked_seconds = now - began
        self._times.note_beside(work.flow.user, now - noted)
        if fault is not None:
            future.set_exception(fault)
        else:
            future.set_result(outcome)
        results = outcome.responses.results if isinstance(outcome, Found) else ()
        return [results] if len(results) > RESULTS_AT_ONCE else []

    def _rest(self, work: _Work, worked_seconds: float, *, is_within: bool) -> None:
        """Rests, so that other threads and other users get their share of the core.

        Within an evaluation it raises what ends it; nothing else would catch that.
        """
        if is_within:
            self._memory.look(work, work.review.worked_seconds, work.until)
            if self._stopping:
                raise EvaluationError("eval_cancel_error", "the process is stopping")
        with self._changed:
            rests = (RESTS + 1) * self._queue.parts(work.flow) - 1
        time.sleep(min(rests * worked_seconds, REST_SECONDS_MAX))

    def stop(self) -> None:
        """Begins no more work, and ends the current work: the process waits for its threads."""
        with self._changed:
            self._stopping = True
            waiting = self._queue.clear()
            self._changed.notify_all()
        self._memory.wake()
        for work in waiting:
            work.review.future.cancel()


def _free(spent: list[Any]) -> None:
    """Frees a tuple of results once they are answered, in slices: twelve thousand take 2 ms.

    Others would wait for it on the thread that answers.
    """
    until = time.monotonic() + KEPT_SECONDS_MAX
    while heap.is_held(spent) and time.monotonic() < until:
        time.sleep(LOOKED_SECONDS)
    results = list(spent.pop())
    heap.free_in_slices([results], partial(time.sleep, FREED_SECONDS))


def growth(size: int) -> float:
    """Returns the factor of the configured budget for a request of this size."""
    return min(max(1.0, size / BUDGET_BYTES), BUDGET_GROWTH_MAX)
