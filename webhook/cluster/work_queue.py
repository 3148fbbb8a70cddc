"""Keys that become due after a delay, each once, and with one worker at a time for each.

As client-go's rate-limiting work queue, and with a bound: adding a key again while it
waits changes nothing, so that what changes all the time is still written; adding
it while a worker has it makes it due again when that worker is done. Whoever
reconciles is a function ``settle(key)`` that :meth:`WorkQueue.run` calls: it looks at
what there is now, does what that needs, and says itself when to look again.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import time
from typing import TYPE_CHECKING, Generic, TypeVar

from webhook.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

K = TypeVar("K", bound="Hashable")


class WorkQueue(Generic[K]):
    """Used on one event loop."""

    def __init__(
        self,
        keys_max: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        backoff: Callable[[], Backoff] = Backoff,
    ) -> None:
        """``keys_max`` bounds those waiting, those with a worker not counted.

        Without it they are bounded by what they name: objects that the process holds.
        ``backoff`` makes that of a key which is tried again.
        """
        self._max = math.inf if keys_max is None else keys_max
        self._clock = clock
        self._backoff = backoff
        self._failing: dict[K, Backoff] = {}
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._sequence = 0
        self._working: set[K] = set()
        self._again: dict[K, float] = {}
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    def __len__(self) -> int:
        """Keys that wait, or will again after their worker."""
        return len(self._due) + len(self._again)

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits and no worker has anything."""
        return not self._due and not self._working

    def has_worker(self, key: K) -> bool:
        """Whether a worker has the key now."""
        return key in self._working

    def add(self, key: K, delay_seconds: float = 0.0) -> bool:
        """Make a key due then, unless it is sooner; False where there is no room for it."""
        due = self._clock() + delay_seconds
        if key in self._working:
            self._again[key] = min(due, self._again.get(key, due))
            return True
        known = self._due.get(key)
        if known is not None and known <= due:
            return True
        if known is None and len(self._due) >= self._max:
            return False
        self._wait(key, due)
        if len(self._due) >= self._max:
            self._room.clear()
        return True

    def retry(self, key: K) -> float:
        """Make a key due again after the back-off of its failures in a row: so many seconds."""
        if key not in self._failing:
            self._failing[key] = self._backoff()
        seconds = self._failing[key].next_seconds()
        self.add(key, seconds)
        return seconds

    def forget(self, key: K) -> None:
        """A key has no failures any more."""
        self._failing.pop(key, None)

    async def run(
        self,
        settle: Callable[[K], Awaitable[None]],
        workers: int,
        *,
        fault: Callable[[K, Exception], None] | None = None,
    ) -> None:
        """Settle each key that is due, so many at once, until cancelled.

        What settling a key raises that nobody foresaw costs that key alone: it is tried again as
        by :meth:`retry`, and ``fault`` is told. Without ``fault`` it ends this, and always does
        what is no ``Exception``: cancellation, and what ends the process.

        A worker is a task that begins with its key: where nothing is due one task waits, and
        not all of them. One turn of the loop takes no more keys than there are workers, so that
        thousands that need no request do not hold the watches.
        """
        idle = asyncio.Semaphore(workers)

        async def work(key: K) -> None:
            try:
                await settle(key)
            except Exception as error:
                if fault is None:
                    raise
                self.retry(key)
                fault(key, error)
            finally:
                self.done(key)
                idle.release()

        async with asyncio.TaskGroup() as tasks:
            while True:
                await idle.acquire()
                tasks.create_task(work(await self.get()))

    async def room(self) -> None:
        """Wait until another key can be added."""
        await self._room.wait()

    async def get(self) -> K:
        """Wait for the next key that is due; :meth:`done` must follow."""
        while True:
            key = self._pop()
            if key is not None:
                self._working.add(key)
                if len(self._due) < self._max:
                    self._room.set()
                return key
            self._changed.clear()
            alarm = self._alarm()
            try:
                await self._changed.wait()
            finally:
                if alarm is not None:
                    alarm.cancel()

    def done(self, key: K) -> None:
        """The worker is done with a key; it may be given out again."""
        self._working.discard(key)
        due = self._again.pop(key, None)
        if due is not None:
            # Never refused: it was given out before, and its room is still its own.
            self._wait(key, due)

    def _wait(self, key: K, due: float) -> None:
        """Give the key out then; who waits for a later one is told."""
        is_next = not self._heap or due < self._heap[0][0]
        self._due[key] = due
        self._sequence += 1
        heapq.heappush(self._heap, (due, self._sequence, key))
        if is_next:
            self._changed.set()

    def _pop(self) -> K | None:
        now = self._clock()
        while self._heap:
            due, _, key = self._heap[0]
            if self._due.get(key) != due:  # made due sooner since, or given out
                heapq.heappop(self._heap)
                continue
            if due > now:
                return None
            heapq.heappop(self._heap)
            del self._due[key]
            # Other workers may sleep until a time that was this key's.
            self._changed.set()
            return key
        return None

    def _alarm(self) -> asyncio.TimerHandle | None:
        """Wakes who waits when the next key is due: a deadline that cancels costs four times that."""
        if not self._heap:
            return None
        seconds = max(self._heap[0][0] - self._clock(), 0.0)
        return asyncio.get_running_loop().call_later(seconds, self._changed.set)
