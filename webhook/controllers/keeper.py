"""The common loop of controllers that keep objects in the cluster in step, without a leader.

A key names an object that may differ. A keeper has each key settled by one worker at a time; an
error affects that key alone. The function that settles a key compares the current objects, and ends
in one of these cases:

1. nothing is left to do (:meth:`Keeper.settled`), or only a later look; 2. other replicas write
first (:meth:`Keeper.waits_for_turn`); 3. it failed, and is tried again after a back-off
(:meth:`Keeper.failed`, or :meth:`Keeper.retry` if another replica was faster).
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
"""How much longer each next replica in turn waits before it writes."""

WRITES_AT_ONCE: Final = 8
"""Requests under way: a start with 2,500 objects takes seconds, and no seat of the API server's
priority level is held for long."""

RETRY_SECONDS_MAX: Final = 60.0
"""The longest pause after repeated failures of a write or look. The first pause is a turn or less;
each next one doubles."""

KeyT = TypeVar("KeyT", bound="Hashable")


class Keeper(Generic[KeyT]):
    """Turns, back-offs and write counts of one kind of object. Used on one event loop."""

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
        """A failure is tried again after ``retry_seconds``, and later after each further failure.

        ``turn_seconds`` is how much longer each next replica in turn waits before it writes.
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
        """The time since when a key's object differs, and our part of the object at that time."""
        self.writes = 0
        """Requests that wrote, or tried to."""
        self.failures = 0
        """The number of turns that failed."""

    async def run(self) -> None:
        """Settles due keys until cancelled."""
        await self._object_faults.run(self._follower, self.queue, self._settle, self._workers)

    def add(self, key: KeyT, delay_seconds: float = 0.0) -> None:
        """Something about a key may differ: look at it, then."""
        self.queue.add(key, delay_seconds)

    def settled(self, key: KeyT, again_seconds: float | None = None) -> None:
        """Notes that a key needs no work; it is settled again after ``again_seconds``, if given."""
        self._since.pop(key, None)
        self.queue.forget(key)
        if again_seconds is not None:
            self.queue.add(key, again_seconds)

    def waits_for_turn(
        self, key: KeyT, rank: int, *, held: Any = None, not_before: float = 0.0
    ) -> bool:
        """Whether this replica must wait for its turn to write; if so, the key is queued for then.

        ``rank`` is the number of replicas that write before this one. ``held`` is our part of the
        object now. If it changes, another replica is writing, and the wait starts again.
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
        """Queues a key again after a back-off; returns its seconds."""
        return self.queue.retry(key)

    def failed(self, key: KeyT) -> None:
        """A write failed: count it, and try again."""
        self.failures += 1
        self.retry(key)
