"""A bounded queue that serves who asks, and the namespaces they ask about, in turn."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from typing import Generic, NamedTuple, TypeVar

from webhook.server.responsibility import Delay

T = TypeVar("T")


class Party(NamedTuple):
    """For whom work is done."""

    user: str
    namespace: str


class FairQueue(Generic[T]):
    """Work that waits, by user and namespace. Not for several threads at once.

    Users come in turn, and so do the namespaces of each: many controllers work for
    everybody under one name. A party has at most one piece of work under way, and a
    user leaves a worker to the others.
    """

    def __init__(self, *, waiting_max: int, workers: int) -> None:
        """``waiting_max`` counts what is under way, too."""
        self._waiting_max = waiting_max
        self._running_max = max(1, workers - 1)
        self._users: OrderedDict[str, OrderedDict[str, deque[T]]] = OrderedDict()
        self._waiting: Counter[Party] = Counter()
        self._running: Counter[str] = Counter()
        self._busy: set[Party] = set()
        self.size = 0
        """How much waits."""

    def put(self, party: Party, work: T) -> bool:
        """Queue work; False where there is no room, or this party has taken half of it."""
        if self.size + len(self._busy) >= self._waiting_max:
            return False
        if self._waiting[party] * 2 >= self._waiting_max:
            return False
        namespaces = self._users.setdefault(party.user, OrderedDict())
        namespaces.setdefault(party.namespace, deque()).append(work)
        self._waiting[party] += 1
        self.size += 1
        return True

    def delay(self, party: Party) -> Delay:
        """Why there is no place for a party: who has those that there are."""
        mine = (
            sum(count for (user, _), count in self._waiting.items() if user == party.user)
            + self._running[party.user]
        )
        users = self._users.keys() | {user for user, count in self._running.items() if count}
        return Delay(places_taken=mine, places=self._waiting_max, requesters=len(users))

    def take(self) -> tuple[Party, T] | None:
        """What is next; None where nothing may begin now. :meth:`done` tells of its end."""
        for user, namespaces in self._users.items():
            if self._running[user] >= self._running_max:
                continue
            for namespace, waiting in namespaces.items():
                party = Party(user, namespace)
                if party in self._busy:
                    continue
                work = waiting.popleft()
                self._move_behind(party, namespaces, waiting)
                self._busy.add(party)
                self._running[user] += 1
                return party, work
        return None

    def _move_behind(
        self, party: Party, namespaces: OrderedDict[str, deque[T]], waiting: deque[T]
    ) -> None:
        """Let the other users, and the other namespaces of this one, go first next time."""
        self.size -= 1
        self._waiting[party] -= 1
        if waiting:
            namespaces.move_to_end(party.namespace)
        else:
            del namespaces[party.namespace], self._waiting[party]
        if namespaces:
            self._users.move_to_end(party.user)
        else:
            del self._users[party.user]

    def done(self, party: Party) -> None:
        """Work of this party that was taken has ended."""
        self._busy.discard(party)
        self._running[party.user] -= 1
        if not self._running[party.user]:
            del self._running[party.user]

    def clear(self) -> list[T]:
        """Take out all that waits."""
        left = [
            work
            for namespaces in self._users.values()
            for waiting in namespaces.values()
            for work in waiting
        ]
        self._users.clear()
        self._waiting.clear()
        self.size = 0
        return left
