"""Requests that wait for the thread that answers, each with a moment by which it must be answered."""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

from webhook.server.http.fair_queue import FairQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.server.http.fair_queue import Flow
    from webhook.server.responsibility import Delay

LONG_SECONDS: Final = 0.001
"""After a request that took longer than this, the waiting requests are shared out at once. A usual
request takes a third of it."""

SHARED_SECONDS: Final = 0.1
"""How long all requests are shared out after such a request, if others are under way. Else those of
a flood that find the queue empty count for nobody, and users with small requests have used the most
time. To share out a request takes 30 µs."""

SECONDS_A_BYTE: Final = 5e-8
"""The estimated time for a request of a user without a known time, in seconds a byte: 3 ms for 60
KB."""


SMALL_BYTES: Final = 16 * 1024
"""The size up to which a request may be answered as it arrives: nearly every object is smaller."""


class Waiting(Protocol):
    """A request in the queue."""

    before: Delay
    """The requests that waited before it, and its own user's share of them."""

    @property
    def flow(self) -> Flow:
        """Returns the flow that the request is answered for."""

    @property
    def size(self) -> int:
        """Returns the bytes of its body."""

    @property
    def run_until(self) -> float:
        """The time, on the monotonic clock, from which it cannot be decided in time any more."""

    def run(self) -> None:
        """Answers it."""

    def give_up(self) -> None:
        """Answers that there was no time for it."""

    def abandon(self) -> None:
        """Closes its connection: a bug keeps it from being answered."""


class RequestQueue:
    """First in, first out, while requests are short and none waits for longer than a slice of time.

    Requests that wait longer are shared out by user, the user with the least recent time first.
    Those of one user are shared out by namespace. So a long queue delays mainly the user who caused
    it. A request whose time is nearly over is answered first, undecided: otherwise the API server
    would give up and admit the object.
    """

    def __init__(
        self,
        on_bug: Callable[[Exception, Waiting], None],
        has_others: Callable[[], bool] = lambda: True,
    ) -> None:
        """``has_others`` says whether requests are under way beside those that wait here."""
        self._has_others = has_others
        self._arrived: deque[Waiting] = deque()
        # The port limits the number of requests.
        self._shared: FairQueue[Waiting] = FairQueue(waiting_max=sys.maxsize, workers=1)
        self._soonest = math.inf
        """The earliest time at which a shared-out request must be answered undecided."""
        self.is_shared = False
        """Whether requests are shared out even if none waits."""
        self._shares_until = -math.inf
        """How long they are."""
        self.take_beside: Callable[[], Mapping[str, float]] = dict
        """Returns the work of other threads by user, since the last call."""
        self._on_bug = on_bug

    def __len__(self) -> int:
        return len(self._arrived) + self._shared.size

    def put(self, request: Waiting) -> None:
        """Queues a request behind those of its user; it is sorted in at the next turn."""
        self._arrived.append(request)

    def answer(self, seconds: float) -> None:
        """Answers requests for about ``seconds``, or until the queue is empty."""
        began = time.monotonic()
        end = began + seconds
        self.is_shared = began < self._shares_until
        if self._shared.size or self.is_shared:
            self._share_out()
        if began >= self._soonest:
            self._give_up(began)
        now = began
        while self._shared.size or self._arrived:
            before, now = now, self._answer_next()
            is_long = now - before > LONG_SECONDS
            if is_long and self._has_others():
                self.is_shared, self._shares_until = True, now + SHARED_SECONDS
            if is_long or now > end:
                self._share_out()
            if now > end:
                return

    def answer_ahead(self, request: Waiting) -> float:
        """Answers a small request that has just arrived if it is next; returns the time for that.

        Else it would wait until all sockets of this turn of the loop are read.
        """
        began = time.monotonic()
        self.is_shared = began < self._shares_until
        if not self.is_shared or request.size > SMALL_BYTES:
            return 0.0
        self._share_out()
        if not self._shared.is_next(request):
            return 0.0
        return self._answer_next() - began

    def _answer_next(self) -> float:
        """Answers one request; returns the time afterwards."""
        taken = self._shared.take() if self._shared.size else None
        if taken is None:
            self._run(self._arrived.popleft())
            return time.monotonic()
        flow, request = taken
        # Only processor time counts as used: a user's waits for a core or the interpreter do not.
        worked = time.thread_time()
        self._run(request)
        self._shared.done(flow, time.thread_time() - worked)
        return time.monotonic()

    def _share_out(self) -> None:
        """Moves newly arrived requests into the queues of their users."""
        for user, seconds in self.take_beside().items():
            self._shared.charge(user, seconds)
        while self._arrived:
            request = self._arrived.popleft()
            flow = request.flow
            request.before = self._shared.before(flow)
            self._shared.put(flow, request, expected_seconds=request.size * SECONDS_A_BYTE)
            self._soonest = min(self._soonest, request.run_until)

    def _give_up(self, now: float) -> None:
        """Answers requests whose time is nearly over."""
        late = self._shared.remove(lambda request: request.run_until <= now)
        self._soonest = min((request.run_until for request in self._shared), default=math.inf)
        for request in late:
            self._run(request, too_late=True)

    def _run(self, request: Waiting, *, too_late: bool = False) -> None:
        try:
            if too_late:
                request.give_up()
            else:
                request.run()
        except Exception as error:  # noqa: BLE001  # a bug affects one request, not the queue
            self._on_bug(error, request)
