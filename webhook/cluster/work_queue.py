"""A queue of keys with delays; each key is queued once and has one worker at a time.

It works like client-go's rate-limiting work queue, with a bound. Adding a queued key changes
nothing, so a key that is added all the time is still processed. Adding a key while a worker has it
queues it again after that worker. :meth:`WorkQueue.run` calls the reconciler ``settle(key)``, which
compares the current state, acts, and adds the key again if it must look later.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from webhook.backoff import Backoff

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
        """``keys_max`` bounds the waiting keys, not counting those with a worker.

        Without it they are bounded by the objects of the process. ``backoff`` makes the back-off of
        a key that is retried.
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
        """Returns the number of keys that wait, or will wait again after their worker."""
        return len(self._due) + len(self._again)

    def __contains__(self, key: K) -> bool:
        """Whether the key waits, or a worker has it."""
        return key in self._due or key in self._working

    @property
    def is_idle(self) -> bool:
        """Whether no key waits and no worker is busy."""
        return not self._due and not self._working

    def has_worker(self, key: K) -> bool:
        """Whether a worker has the key."""
        return key in self._working

    def add(self, key: K, delay_seconds: float = 0.0) -> bool:
        """Queues a key with a delay, or earlier if it already waits; False if there is no room."""
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
        """Queues a key again after its back-off; returns the delay in seconds."""
        if key not in self._failing:
            self._failing[key] = self._backoff()
        seconds = self._failing[key].next_seconds()
        self.add(key, seconds)
        return seconds

    def forget(self, key: K) -> None:
        """Resets the key's failures."""
        self._failing.pop(key, None)

    async def run(
        self,
        settle: Callable[[K], Awaitable[None]],
        workers: int,
        *,
        fault: Callable[[K, Exception], None] | None = None,
    ) -> None:
        """Calls ``settle`` for each due key, at most ``workers`` at once, until cancelled.

        An unexpected exception is passed to ``fault``, and its key is retried as by :meth:`retry`.
        Without ``fault`` it ends the queue; so does any exception that is no ``Exception``, such as
        cancellation.

        A worker is a task that starts with its key, so an idle queue has one waiting task. Each
        turn of the event loop starts at most ``workers`` keys, so that thousands of keys without
        requests do not delay the watches.
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
        """Waits until another key can be added."""
        await self._room.wait()

    async def get(self) -> K:
        """Waits for the next due key; :meth:`done` must follow."""
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
        """Ends the work on a key; it may be given out again."""
        self._working.discard(key)
        due = self._again.pop(key, None)
        if due is not None:
            # Never refused: it was given out before, and its room is still its own.
            self._wait(key, due)

    def _wait(self, key: K, due: float) -> None:
        """Schedules a key; wakes the waiting task if it waits for a later one."""
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
        """Returns the timer that wakes the waiting task.

        Asyncio's timeout costs four times as much.
        """
        if not self._heap:
            return None
        seconds = max(self._heap[0][0] - self._clock(), 0.0)
        return asyncio.get_running_loop().call_later(seconds, self._changed.set)
