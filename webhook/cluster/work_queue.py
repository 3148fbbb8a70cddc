"""Keys that become due after a delay, each once, and with one worker at a time for each.

As client-go's delaying work queue, and with a bound: adding a key again while it
waits changes nothing, so that what changes all the time is still written; adding
it while a worker has it makes it due again when that worker is done.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

K = TypeVar("K", bound="Hashable")


class WorkQueue(Generic[K]):
    """Used on one event loop."""

    def __init__(self, keys_max: int, clock: Callable[[], float] = time.monotonic) -> None:
        """``keys_max`` bounds those waiting, those with a worker not counted."""
        self._max = keys_max
        self._clock = clock
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
        self._due[key] = due
        self._sequence += 1
        heapq.heappush(self._heap, (due, self._sequence, key))
        if len(self._due) >= self._max:
            self._room.clear()
        self._changed.set()
        return True

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
            try:
                async with asyncio.timeout(self._wait_seconds()):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def done(self, key: K) -> None:
        """The worker is done with a key; it may be given out again."""
        self._working.discard(key)
        due = self._again.pop(key, None)
        if due is not None:
            # Never refused: it was given out before, and its room is still its own.
            self._due[key] = due
            self._sequence += 1
            heapq.heappush(self._heap, (due, self._sequence, key))
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

    def _wait_seconds(self) -> float | None:
        return max(self._heap[0][0] - self._clock(), 0.0) if self._heap else None
