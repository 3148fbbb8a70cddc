"""A bounded queue that shares processor time between users, and a user's share between namespaces."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Final, Generic, NamedTuple, TypeVar

from webhook.api.admission import namespace_in, username_in
from webhook.server.http.limits import PREFIX_BYTES
from webhook.server.responsibility import Delay, requester_of

T = TypeVar("T")

USERS_MAX: Final = 1024
"""Users whose recent use is remembered."""

USERS_MIN: Final = 16
"""Users that are not looked through for some to forget: it takes 50 ns for each of them."""


DEBT_SECONDS_MAX: Final = 0.02
"""How far work elsewhere puts a user behind new users, in seconds: no longer than each of them may
take for some twenty requests."""


class Flow(NamedTuple):
    """The user and the namespace of a request."""

    user: str
    namespace: str


class Occupant(NamedTuple):
    """The user of a request that has arrived completely or in part, and its bytes."""

    requester: str
    """The user; empty if unknown."""
    size: int
    """Received bytes of its body."""


def occupant_of(body: bytes | bytearray) -> Occupant:
    """Returns the user, read from the beginning of a body."""
    return Occupant(requester_of(username_in(body[:PREFIX_BYTES])), len(body))


def flow_of(body: bytes | bytearray, stranger: str) -> Flow:
    """Returns the user and namespace of a body; each stranger is a user of its own."""
    prefix = body[:PREFIX_BYTES]
    return Flow(stranger or requester_of(username_in(prefix)), namespace_in(prefix))


class _Item(NamedTuple, Generic[T]):
    """Waiting work, with the bytes that it may come to hold and its likely processor time."""

    work: T
    weight: int
    expected_seconds: float


class _User(Generic[T]):
    """The waiting work of one user by namespace, and the processor time that it used."""

    __slots__ = ("idle_since", "namespaces", "running", "seconds", "waiting")

    def __init__(self, seconds: float, idle_since: float) -> None:
        self.namespaces: OrderedDict[str, deque[_Item[T]]] = OrderedDict()
        self.waiting = 0
        self.running = 0
        self.seconds = seconds
        """Processor time on a scale on which new users start at the least value."""
        self.idle_since = idle_since
        """When its last work ended, on the monotonic clock."""

    @property
    def places(self) -> int:
        """Returns the user's share of all waiting and running work."""
        return self.waiting + self.running

    @property
    def is_idle(self) -> bool:
        """Whether it has no waiting and no running work."""
        return not (self.waiting or self.running)


class FairQueue(Generic[T]):
    """Waiting work by user and namespace. Not thread-safe.

    The user that used the least processor time is served first; among equals the one with the
    shortest recent requests, or, without one, the shortest expected one. While a user has no work,
    its use falls by its share of the time. The namespaces of a user take turns, because many
    controllers work for everybody under one name. A flow runs at most one request at a time, and a
    user leaves a worker to others. Heavy requests leave a worker to light ones, and together never
    exceed ``weight_max``.
    """

    def __init__(
        self,
        *,
        waiting_max: int,
        workers: int,
        weight_max: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``waiting_max`` includes running work; without ``weight_max`` nothing is heavy."""
        self._clock = clock
        self._waiting_max = waiting_max
        self._running_max = max(1, workers - 1)
        self._weight_max = weight_max
        self._users: dict[str, _User[T]] = {}
        self._active: dict[str, _User[T]] = {}
        """The users with waiting or running work; who was served last is behind the others."""
        self._busy: set[Flow] = set()
        self._heavy: dict[Flow, int] = {}
        """The weight of running heavy requests, by flow."""
        self._costs: dict[str, float] = {}
        """Processor time of users' recent work, a moving average; also of users without any now."""
        self._least = 0.0
        """The use of the user that was served last: new users start there."""
        self.size = 0
        """The number of waiting items."""
        self._users_max = USERS_MIN
        """The number of users from which some are forgotten."""

    def put(self, flow: Flow, work: T, weight: int = 0, expected_seconds: float = 0.0) -> T | None:
        """Queues work; returns work without a place, which may be another item.

        If the queue is full, the user with the most items loses one.
        """
        user = self._users.get(flow.user)
        if user is None:
            user = self._users[flow.user] = _User(self._least, self._clock())
        elif user.is_idle:
            self._credit(user)
        displaced = None
        if self.size + len(self._busy) >= self._waiting_max:
            others = [name for name, other in self._active.items() if other.waiting]
            crowd = max(others, key=lambda name: self._active[name].places, default=flow.user)
            if self._users[crowd].places <= user.places + 1:
                self._forget()
                return work
            displaced = self._drop_newest(crowd)
        item = _Item(work, weight, expected_seconds)
        user.namespaces.setdefault(flow.namespace, deque()).append(item)
        user.waiting += 1
        self.size += 1
        self._active[flow.user] = user
        return displaced

    def _credit(self, user: _User[T]) -> None:
        """Deducts from a user's use its share of the time without work; it saves up nothing."""
        seconds = self._clock() - user.idle_since
        user.seconds = max(user.seconds - seconds / (1 + len(self._active)), self._least)

    def _note_idle(self, name: str) -> None:
        """Forgets that a user is active, if it has no more work."""
        if self._users[name].is_idle:
            self._active.pop(name, None)

    def _drop_newest(self, name: str) -> T:
        """Removes a user's latest item in the namespace with the most items."""
        user = self._users[name]
        namespace = max(user.namespaces, key=lambda name: len(user.namespaces[name]))
        dropped = user.namespaces[namespace].pop()
        if not user.namespaces[namespace]:
            del user.namespaces[namespace]
        user.waiting -= 1
        self.size -= 1
        self._note_idle(name)
        return dropped.work

    def delay(self, flow: Flow) -> Delay:
        """Returns the use of all places, for a flow without one."""
        return self.before(flow)._replace(places=self._waiting_max)

    def before(self, flow: Flow) -> Delay:
        """Returns the number of waiting and running items, and this user's share."""
        user = self._users.get(flow.user)
        mine = 0 if user is None else user.places
        places = self.size + len(self._busy)
        return Delay(places_taken=mine, places=places, requesters=len(self._active))

    def is_next(self, work: T) -> bool:
        """Whether this work is the first that waits, whatever is running."""
        waiting = (item for item in self._active.items() if item[1].waiting)
        first = min(waiting, key=self._order, default=None)
        return first is not None and next(iter(first[1].namespaces.values()))[0].work is work

    def take(self) -> tuple[Flow, T] | None:
        """Returns the next work; None if nothing may begin now. Call :meth:`done` at its end."""
        waiting = [item for item in self._active.items() if item[1].waiting]
        for name, user in sorted(waiting, key=self._order):
            if user.running >= self._running_max:
                continue
            for namespace, works in user.namespaces.items():
                flow = Flow(name, namespace)
                if flow in self._busy or not self._may_begin(works[0].weight):
                    continue
                work, weight, _ = works.popleft()
                user.waiting -= 1
                self.size -= 1
                if works:
                    user.namespaces.move_to_end(namespace)
                else:
                    del user.namespaces[namespace]
                user.running += 1
                self._active[name] = self._active.pop(name)  # behind others who have used as much
                self._busy.add(flow)
                if weight:
                    self._heavy[flow] = weight
                self._least = max(self._least, user.seconds)
                return flow, work
        return None

    def _order(self, item: tuple[str, _User[T]]) -> tuple[float, float]:
        """Returns a user's rank: by use, and among equals by the time of recent or expected work."""
        name, user = item
        seconds = self._costs.get(name)
        if seconds is None:
            seconds = next(iter(user.namespaces.values()))[0].expected_seconds
        return user.seconds, seconds

    def _may_begin(self, weight: int) -> bool:
        """Whether there is room for a heavy request; a single one always has room."""
        if not weight or not self._heavy:
            return True
        if len(self._heavy) >= self._running_max:
            return False
        return sum(self._heavy.values()) + weight <= self._weight_max

    def parts(self, flow: Flow) -> int:
        """Returns into how many equal parts the time is divided for this flow."""
        users = sum(1 for user in self._active.values() if user.running)
        return max(1, users * self._users[flow.user].running)

    def others_than(self, user: str) -> int:
        """Returns how much work of other users waits or runs."""
        return len(self._active) - (user in self._active)

    def done(self, flow: Flow, seconds: float = 0.0) -> None:
        """Ends work of this flow, which used this processor time."""
        self._busy.discard(flow)
        self._heavy.pop(flow, None)
        user = self._users[flow.user]
        user.running -= 1
        user.seconds += seconds
        user.idle_since = self._clock()
        self._note_idle(flow.user)
        self._note_cost(flow.user, (self._costs.get(flow.user, seconds) + seconds) / 2)
        self._forget()

    def _note_cost(self, name: str, seconds: float) -> None:
        self._costs.pop(name, None)
        self._costs[name] = seconds
        if len(self._costs) > USERS_MAX:
            del self._costs[next(iter(self._costs))]

    def charge(self, name: str, seconds: float) -> None:
        """Adds work for a user that was done elsewhere, up to :data:`DEBT_SECONDS_MAX`."""
        user = self._users.get(name)
        if user is None:
            user = self._users[name] = _User(self._least, self._clock())
        used = max(user.seconds, self._least) + seconds
        user.seconds = max(user.seconds, min(used, self._least + DEBT_SECONDS_MAX))
        self._note_cost(name, min(self._costs.get(name, 0.0) + seconds, DEBT_SECONDS_MAX))

    def _forget(self) -> None:
        """Forgets users without more use than a new user, once they are many."""
        if len(self._users) < self._users_max:
            return
        idle = [name for name, user in self._users.items() if user.is_idle]
        surplus = len(idle) - USERS_MAX
        for name in idle:
            if self._users[name].seconds <= self._least or surplus > 0:
                del self._users[name]
                surplus -= 1
        self._users_max = min(USERS_MAX, USERS_MIN + 2 * len(self._users))

    def __iter__(self) -> Iterator[T]:
        """Iterates over all waiting work."""
        for user in self._active.values():
            for works in user.namespaces.values():
                for item in works:
                    yield item.work

    def remove(self, is_wanted: Callable[[T], bool]) -> list[T]:
        """Removes and returns the waiting items for which the condition holds."""
        removed: list[T] = []
        for name, user in tuple(self._active.items()):
            for namespace, works in tuple(user.namespaces.items()):
                kept: deque[_Item[T]] = deque()
                for item in works:
                    if is_wanted(item.work):
                        removed.append(item.work)
                    else:
                        kept.append(item)
                user.waiting -= len(works) - len(kept)
                if kept:
                    user.namespaces[namespace] = kept
                else:
                    del user.namespaces[namespace]
            self._note_idle(name)
        self.size -= len(removed)
        self._forget()
        return removed

    def clear(self) -> list[T]:
        """Removes and returns all waiting work."""
        works = list(self)
        for name, user in tuple(self._active.items()):
            user.namespaces.clear()
            user.waiting = 0
            self._note_idle(name)
        self.size = 0
        return works
