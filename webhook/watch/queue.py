"""A queue of changes that coalesces: only the latest state of each object waits.

Its size is limited by the number of objects: a slow consumer gets each object once, however often
it changed, and a producer never waits. An object that was deleted and created again (another UID)
is not coalesced with its predecessor: the deletion is delivered first.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Literal

from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.api.gvk import GroupVersionKind
    from webhook.cluster.store import Key, Object


@dataclass(frozen=True, slots=True)
class Event:
    """An object of a kind exists in this state, was deleted, or all objects are known.

    ``kind`` is ``synced`` (without key and object) after all objects have been delivered that
    existed when the watch of the kind began.
    """

    kind: Literal["set", "delete", "synced"]
    gvk: GroupVersionKind
    key: Key | None = None
    object: Object | None = None


@dataclass(slots=True)
class _Waiting:
    """The waiting events of an object: perhaps a deletion, then perhaps its state."""

    since: float
    delete: Object | None = None
    set: Object | None = None


_Slot = tuple["GroupVersionKind", "Key | None"]


class EventQueue:
    """Events of one registrar, in the order in which their objects first changed."""

    def __init__(self) -> None:
        self._waiting: dict[_Slot, _Waiting] = {}
        self._delivered: dict[GroupVersionKind, dict[Key, None]] = {}
        """The objects that the consumer has. A set of thousands takes up to twice as much memory."""
        self._filled = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def set(self, gvk: GroupVersionKind, key: Key, obj: Object) -> None:
        """The object is there in this state."""
        self._slot((gvk, key)).set = obj

    def delete(self, gvk: GroupVersionKind, key: Key, obj: Object) -> None:
        """The object is there no more."""
        slot = (gvk, key)
        waiting = self._slot(slot)
        waiting.set = None
        if key in self._delivered.get(gvk, ()):
            waiting.delete = waiting.delete or obj
        elif waiting.delete is None:
            # It came and went before delivery: there is nothing to deliver.
            del self._waiting[slot]

    def synced(self, gvk: GroupVersionKind) -> None:
        """Queues the event that all objects of a kind have been delivered."""
        self._slot((gvk, None))

    def forget(self, gvk: GroupVersionKind) -> None:
        """Silently drops the waiting events of a kind that is no longer requested."""
        for slot in [slot for slot in self._waiting if slot[0] == gvk]:
            del self._waiting[slot]
        self._delivered.pop(gvk, None)

    def renew(self, gvk: GroupVersionKind) -> None:
        """Drops the waiting states of a kind, which will all be delivered anew; deletions stay.

        The deletion of an object that was created again waits for its new state.
        """
        for slot in [slot for slot in self._waiting if slot[0] == gvk]:
            waiting = self._waiting[slot]
            if waiting.delete is None or waiting.set is not None:
                del self._waiting[slot]

    def known(self, gvk: GroupVersionKind) -> Iterable[Key]:
        """Returns the objects of the kind that the consumer has received."""
        return list(self._delivered.get(gvk, ()))

    def waiting(self, gvk: GroupVersionKind) -> dict[Key, Object]:
        """Returns the objects of a kind with a waiting state, in their order."""
        return {
            key: waiting.set
            for (kind, key), waiting in self._waiting.items()
            if kind == gvk and key is not None and waiting.set is not None
        }

    async def get(self) -> Event:
        """Returns the next event, which is taken out."""
        await self.wait()
        return self._pop()

    async def wait(self) -> None:
        """Returns once there is an event, and leaves it in the queue; it may still coalesce."""
        while not self._waiting:
            self._filled.clear()
            await self._filled.wait()

    def _slot(self, slot: _Slot) -> _Waiting:
        self._filled.set()
        waiting = self._waiting.get(slot)
        if waiting is None:
            waiting = self._waiting[slot] = _Waiting(time.monotonic())
        return waiting

    def _pop(self) -> Event:
        slot = next(iter(self._waiting))
        gvk, key = slot
        waiting = self._waiting[slot]
        if waiting.delete is not None:
            deleted, waiting.delete = waiting.delete, None
            if key is not None:
                self._delivered.get(gvk, {}).pop(key, None)
            if waiting.set is None:
                del self._waiting[slot]
            return Event("delete", gvk, key, deleted)
        del self._waiting[slot]
        if not self._waiting:
            self._waiting.clear()  # a dict keeps the place for all that it ever held
        if key is None:
            return Event("synced", gvk)
        self._delivered.setdefault(gvk, {})[key] = None
        return Event("set", gvk, key, waiting.set)
