"""A bounded queue that shares processor time between users, and each one's between namespaces."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from webhook.api.admission import namespace_in, username_in
from webhook.server.http.limits import PREFIX_BYTES
from webhook.server.responsibility import Delay, requester_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

USERS_MAX: Final = 1024
"""Users remembered for what they used lately."""


class Party(NamedTuple):
    """The user and the namespace that work is done for."""

    user: str
    namespace: str


class Occupant(NamedTuple):
    """The user of a request that has arrived, wholly or in part, and the bytes that it holds."""

    requester: str
    """The user; empty where that is not known."""
    size: int
    """Bytes of its body that have arrived."""


def occupant_of(body: bytes | bytearray) -> Occupant:
    """Read the user of a body from its beginning."""
    return Occupant(requester_of(username_in(body[:PREFIX_BYTES])), len(body))


def party_of(body: bytes | bytearray, stranger: str) -> Party:
    """Return for whom a request is answered; each stranger is a user of its own, whomever it names."""
    prefix = body[:PREFIX_BYTES]
    return Party(stranger or requester_of(username_in(prefix)), namespace_in(prefix))


class _Item(NamedTuple, Generic[T]):
    """Work that waits, the bytes that it may come to hold, and about how long it takes."""

    work: T
    weight: int
    expected_seconds: float


class _User(Generic[T]):
    """The waiting work of one user, by namespace, and the processor time that it used."""

    __slots__ = ("namespaces", "running", "seconds", "waiting")

    def __init__(self, seconds: float) -> None:
        self.namespaces: OrderedDict[str, deque[_Item[T]]] = OrderedDict()
        self.waiting = 0
        self.running = 0
        self.seconds = seconds
        """Of a processor, on a scale on which everyone who begins stands where the least stands."""

    @property
    def places(self) -> int:
        """Return the user's share of all that wait or are under way."""
        return self.waiting + self.running

    @property
    def is_idle(self) -> bool:
        """Whether nothing is done or to be done for it."""
        return not self.places


class FairQueue(Generic[T]):
    """Work that waits, by user and namespace. Not for several threads at once.

    Who has used the least of a processor is served first, of several the one whose last work was
    the shortest, or, where none is known, is likely to be; and the namespaces of each in turn: many controllers work for everybody under one
    name. A party has at most one piece of work under way, and a user leaves a worker to the others.
    What is heavy leaves a worker to what is light, and is never more together than ``weight_max``.
    """

    def __init__(self, *, waiting_max: int, workers: int, weight_max: int = 0) -> None:
        """``waiting_max`` counts what is under way, too; without ``weight_max`` nothing is heavy."""
        self._waiting_max = waiting_max
        self._running_max = max(1, workers - 1)
        self._weight_max = weight_max
        self._users: dict[str, _User[T]] = {}
        self._busy: set[Party] = set()
        self._heavy: dict[Party, int] = {}
        """The heavy requests under way, by party, with their weight."""
        self._costs: dict[str, float] = {}
        """Processor time of the last work of users, also of those who have none now."""
        self._least = 0.0
        """The usage of the party that was served last: a new user counts from there on."""
        self.size = 0
        """How much waits."""

    def put(
        self, party: Party, work: T, weight: int = 0, expected_seconds: float = 0.0
    ) -> T | None:
        """Queue work; what there is no room for, which may be other work than this.

        Where all is full the user with the most gives way: one may have all that nobody else
        asks for.
        """
        user = self._users.get(party.user)
        if user is None:
            user = self._users[party.user] = _User(self._least)
        elif user.is_idle:
            user.seconds = max(user.seconds, self._least)
        displaced = None
        if self.size + len(self._busy) >= self._waiting_max:
            others = (other for other in self._users.values() if other.waiting)
            crowd = max(others, key=lambda other: other.places, default=user)
            if crowd.places <= user.places + 1:
                self._forget()
                return work
            displaced = self._drop_newest(crowd)
        item = _Item(work, weight, expected_seconds)
        user.namespaces.setdefault(party.namespace, deque()).append(item)
        user.waiting += 1
        self.size += 1
        return displaced

    def _drop_newest(self, user: _User[T]) -> T:
        """Take out the latest work of the namespace that has the most."""
        namespace = max(user.namespaces, key=lambda name: len(user.namespaces[name]))
        dropped = user.namespaces[namespace].pop()
        if not user.namespaces[namespace]:
            del user.namespaces[namespace]
        user.waiting -= 1
        self.size -= 1
        return dropped.work

    def delay(self, party: Party) -> Delay:
        """Why there is no place for a party: who has those that there are."""
        return self.before(party)._replace(places=self._waiting_max)

    def before(self, party: Party) -> Delay:
        """Return how much waits or is under way, and this party's user's share of it."""
        user = self._users.get(party.user)
        mine = 0 if user is None else user.places
        users = sum(1 for other in self._users.values() if not other.is_idle)
        places = self.size + len(self._busy)
        return Delay(places_taken=mine, places=places, requesters=users)

    def take(self) -> tuple[Party, T] | None:
        """Take the next work; None where nothing may begin now. :meth:`done` tells of its end."""
        waiting = [item for item in self._users.items() if item[1].waiting]
        for name, user in sorted(waiting, key=self._order):
            if user.running >= self._running_max:
                continue
            for namespace, works in user.namespaces.items():
                party = Party(name, namespace)
                if party in self._busy or not self._may_begin(works[0].weight):
                    continue
                work, weight, _ = works.popleft()
                user.waiting -= 1
                self.size -= 1
                if works:
                    user.namespaces.move_to_end(namespace)
                else:
                    del user.namespaces[namespace]
                user.running += 1
                self._users[name] = self._users.pop(name)  # behind others who have used as much
                self._busy.add(party)
                if weight:
                    self._heavy[party] = weight
                self._least = max(self._least, user.seconds)
                return party, work
        return None

    def _order(self, item: tuple[str, _User[T]]) -> tuple[float, float]:
        """Return a user's place: by use, and for users who begin alike by the time of their work."""
        name, user = item
        seconds = self._costs.get(name)
        if seconds is None:
            seconds = next(iter(user.namespaces.values()))[0].expected_seconds
        return user.seconds, seconds

    def _may_begin(self, weight: int) -> bool:
        """Whether there is room for what is heavy: what is alone always has it."""
        if not weight or not self._heavy:
            return True
        if len(self._heavy) >= self._running_max:
            return False
        return sum(self._heavy.values()) + weight <= self._weight_max

    def parts(self, party: Party) -> int:
        """Of how many equal parts of the time this party's work has one now."""
        users = sum(1 for user in self._users.values() if user.running)
        return max(1, users * self._users[party.user].running)

    def others_than(self, user: str) -> int:
        """Return how many other users' work waits or is under way."""
        return sum(1 for name, other in self._users.items() if name != user and not other.is_idle)

    def done(self, party: Party, seconds: float = 0.0) -> None:
        """Work of this party that was taken has ended, and took so much of a processor."""
        self._busy.discard(party)
        self._heavy.pop(party, None)
        user = self._users[party.user]
        user.running -= 1
        user.seconds += seconds
        self._costs.pop(party.user, None)
        self._costs[party.user] = seconds
        if len(self._costs) > USERS_MAX:
            del self._costs[next(iter(self._costs))]
        self._forget()

    def _forget(self) -> None:
        """Remember no more users than who have more behind them than one that begins."""
        idle = [name for name, user in self._users.items() if user.is_idle]
        surplus = len(idle) - USERS_MAX
        for name in idle:
            if self._users[name].seconds <= self._least or surplus > 0:
                del self._users[name]
                surplus -= 1

    def __iter__(self) -> Iterator[T]:
        """All that waits."""
        for user in self._users.values():
            for works in user.namespaces.values():
                for item in works:
                    yield item.work

    def remove(self, is_wanted: Callable[[T], bool]) -> list[T]:
        """Take every waiting item out that the condition holds for, and return them."""
        removed: list[T] = []
        for user in self._users.values():
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
        self.size -= len(removed)
        self._forget()
        return removed

    def clear(self) -> list[T]:
        """Take out all that waits."""
        works = list(self)
        for user in self._users.values():
            user.namespaces.clear()
            user.waiting = 0
        self.size = 0
        return works
