"""The one loop of whoever keeps something in the cluster in step, with no leader.

What may differ is named by keys. A keeper has each settled by one worker at a time, within the
boundary of its object. Who settles a key looks at what there is now, and says how it goes on:

1. nothing is left to do (:meth:`Keeper.settled`), or only to be looked at again later;
2. others write before this replica does (:meth:`Keeper.waits_for_turn`);
3. it failed, and is tried again after a back-off (:meth:`Keeper.failed`, or :meth:`Keeper.retry`
   where another was faster).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from webhook.backoff import Backoff
from webhook.cluster.work_queue import WorkQueue

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

    from webhook.controllers.object_faults import Follower, ObjectFaults

TURN_SECONDS: Final = 5.0
"""How much longer each next replica waits for those before it to write."""

WRITES_AT_ONCE: Final = 8
"""Requests under way: a start with 2,500 objects takes seconds, and no seat of the API server's
priority level is held for long."""

RETRY_SECONDS_MAX: Final = 60.0
"""How long at most waits what fails again and again, a write or a look: it begins with a turn, or
less, and doubles."""

KeyT = TypeVar("KeyT", bound="Hashable")


class Keeper(Generic[KeyT]):
    """Turns, back-offs and counts of writes of one thing that is kept. Used on one event loop."""

    def __init__(  # the seams, each named
        self,
        follower: Follower,
        settle: Callable[[KeyT], Awaitable[None]],
        object_faults: ObjectFaults,
        *,
        workers: int = 1,
        retry_seconds: float = TURN_SECONDS,
        retry_seconds_max: float = RETRY_SECONDS_MAX,
        turn_seconds: float = TURN_SECONDS,
    ) -> None:
        """A failure is tried again after ``retry_seconds``, and later after each more.

        ``turn_seconds`` are how much longer each next replica waits for those before it.
        """
        self._follower = follower
        self._settle = settle
        self._object_faults = object_faults
        self._workers = workers
        self._turn_seconds = turn_seconds
        self.queue: WorkQueue[KeyT] = WorkQueue(
            backoff=lambda: Backoff(initial_seconds=retry_seconds, max_seconds=retry_seconds_max)
        )
        self._since: dict[KeyT, tuple[float, Any]] = {}
        """Since when a key's object differs, and what it had of ours then."""
        self.writes = 0
        """Requests that wrote, or tried to."""
        self.failures = 0
        """The number of turns that failed."""

    async def run(self) -> None:
        """Settle what is due until cancelled."""
        await self._object_faults.run(self._follower, self.queue, self._settle, self._workers)

    def add(self, key: KeyT, delay_seconds: float = 0.0) -> None:
        """Something about a key may differ: look at it, then."""
        self.queue.add(key, delay_seconds)

    def settled(self, key: KeyT, again_seconds: float | None = None) -> None:
        """Nothing is left to do about a key; it is looked at again after so long, if at all."""
        self._since.pop(key, None)
        self.queue.forget(key)
        if again_seconds is not None:
            self.queue.add(key, again_seconds)

    def waits_for_turn(
        self, key: KeyT, rank: int, *, held: Any = None, not_before: float = 0.0
    ) -> bool:
        """Whether it is not this replica's turn yet to write; it is looked at again then.

        So many replicas as ``rank`` says write before it. ``held`` is what the object has now:
        where it changes, somebody writes, and is given the time for this difference, too.
        """
        now = time.monotonic()
        since, before = self._since.get(key, (now, held))
        if before != held:
            since = now
        self._since[key] = since, held
        turn = max(since + self._turn_seconds * rank, not_before)
        if turn > now:
            self.queue.add(key, turn - now)
        return turn > now

    def retry(self, key: KeyT) -> float:
        """Another was faster, or it is not so yet: try again, after so many seconds."""
        return self.queue.retry(key)

    def failed(self, key: KeyT) -> None:
        """A write failed: count it, and try again."""
        self.failures += 1
        self.retry(key)
