"""Requests that wait for the thread that answers, each with a moment by which it must be answered."""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

from webhook.server.http.fair_queue import FairQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.server.http.fair_queue import Party
    from webhook.server.responsibility import Delay

LONG_SECONDS: Final = 0.001
"""Behind a request that took so long those that follow are shared out at once: a usual one takes a
third of it."""

SECONDS_A_BYTE: Final = 5e-8
"""About how long a request of a user takes that is not known yet: 3 ms of 60 KB."""


class Waiting(Protocol):
    """A request in the queue."""

    before: Delay
    """The requests that waited before it, and its own user's share of them."""

    @property
    def party(self) -> Party:
        """Return the party that the request is answered for."""

    @property
    def size(self) -> int:
        """Return the bytes of its body."""

    @property
    def run_until(self) -> float:
        """From when on, on the monotonic clock, it cannot be decided in its time any more."""

    def run(self) -> None:
        """Answer it."""

    def give_up(self) -> None:
        """Answer that there was no time for it."""

    def abandon(self) -> None:
        """Close its connection: a bug keeps it from being answered."""


class RequestQueue:
    """First in, first out, as long as each is short and nobody waits for longer than a slice of time.

    What waits for longer is shared out by user, who had least of the thread first, and each
    user's by namespace: what many wait behind is then their own. Whose time is nearly over is
    answered before all others, undecided; the API server would give it up, and store it.
    """

    def __init__(self, on_bug: Callable[[Exception, Waiting], None]) -> None:
        self._arrived: deque[Waiting] = deque()
        # How many there may be is the port's to say.
        self._shared: FairQueue[Waiting] = FairQueue(waiting_max=sys.maxsize, workers=1)
        self._soonest = math.inf
        """When the next of those that are shared out has to be given up."""
        self._on_bug = on_bug

    def __len__(self) -> int:
        return len(self._arrived) + self._shared.size

    def put(self, request: Waiting) -> None:
        """Let a request wait behind those of its user; it is sorted in at the next turn."""
        self._arrived.append(request)

    def answer(self, seconds: float) -> None:
        """Answer requests for about so long, or until there are none."""
        began = time.monotonic()
        end = began + seconds
        if self._shared.size:
            self._share_out()
        if began >= self._soonest:
            self._give_up(began)
        now = began
        while self._shared.size or self._arrived:
            before, now = now, self._answer_next()
            if now - before > LONG_SECONDS or now > end:
                self._share_out()
            if now > end:
                return

    def _answer_next(self) -> float:
        """Answer one; the time after it."""
        taken = self._shared.take() if self._shared.size else None
        if taken is None:
            self._run(self._arrived.popleft())
            return time.monotonic()
        party, request = taken
        # What a user waited itself, for a processor or the interpreter, it did not use.
        worked = time.thread_time()
        self._run(request)
        self._shared.done(party, time.thread_time() - worked)
        return time.monotonic()

    def _share_out(self) -> None:
        """Queue what has arrived behind its own user's."""
        while self._arrived:
            request = self._arrived.popleft()
            party = request.party
            request.before = self._shared.before(party)
            self._shared.put(party, request, expected_seconds=request.size * SECONDS_A_BYTE)
            self._soonest = min(self._soonest, request.run_until)

    def _give_up(self, now: float) -> None:
        """Answer those whose time is nearly over."""
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
        except Exception as error:  # noqa: BLE001  # a bug must cost one request, not the queue
            self._on_bug(error, request)
