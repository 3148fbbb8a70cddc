"""Fights: the same change to the same object again and again, undone each time by a client.

A controller that reverts a mutator's change makes an endless loop: each write is mutated, and each
mutation is reverted. One such change is no fight, and neither are changes of many objects. A fight
is the same change more often than a person or a roll-out would make it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Final

from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from webhook.mutation.mutator import MutationSource, MutatorId

WINDOW_SECONDS: Final = 3600.0
"""Changes are counted over an hour."""

OBJECTS_MAX: Final = 4096
"""The most changes remembered, the most recent ones. One takes about 1 KiB with its times at the
default limit: 4 MiB. A forgotten object has had 4,096 other changes since, and is counted anew.
"""


@dataclass(frozen=True, slots=True)
class Fight:
    """An object that a mutator fights about."""

    generation: int
    """The generation of the mutator: another generation may not fight."""
    object: str
    """Its kind, namespace and name, for people."""
    count: int
    """How often the same change was made to it within the last hour, counted up to the limit."""
    until: float
    """The end of the fight unless it continues, on the clock of the caller that notes changes."""


class Fights:
    """Counts equal changes.

    One thread notes changes; other threads may read the fights.
    """

    def __init__(self, limit: int = 0) -> None:
        """More than ``limit`` of the same changes within an hour are a fight; 0 for never."""
        self.limit = limit
        self._times: OrderedDict[Hashable, deque[float]] = OrderedDict()
        self._found: dict[MutatorId, Fight] = {}

    def note(
        self, change: Hashable, shown: str, mutators: Iterable[MutationSource], now: float
    ) -> bool:
        """Notes a change; returns whether one of its mutators begins to fight by it.

        ``change`` identifies the object and the change. A fight is over when none of its changes
        was made for an hour.
        """
        if not self.limit:
            return False
        times = self._times.get(change)
        if times is None:
            times = self._times[change] = deque(maxlen=self.limit + 1)
            if len(self._times) > OBJECTS_MAX:
                self._times.popitem(last=False)
        else:
            self._times.move_to_end(change)
        times.append(now)
        if len(times) <= self.limit or now - times[0] > WINDOW_SECONDS:
            return False
        began = False
        for mutator in mutators:
            known = self._found.get(mutator.id)
            began = began or known is None or known.until <= now
            # The first object of a fight stays, so that reports stay the same.
            remembered = shown if known is None or known.until <= now else known.object
            self._found[mutator.id] = Fight(
                mutator.generation, remembered, len(times), now + WINDOW_SECONDS
            )
        return began

    def going_on(self, now: float) -> dict[MutatorId, Fight]:
        """Returns the fights that go on, by mutator."""
        fights = self._found.copy()
        return {mutator: fight for mutator, fight in fights.items() if fight.until > now}

    def keep(self, mutators: Iterable[MutationSource]) -> None:
        """Forgets the fights of mutators that are no more, or are others now."""
        kept = {(mutator.id, mutator.generation) for mutator in mutators}
        for mutator, fight in self._found.copy().items():
            if (mutator, fight.generation) not in kept:
                self._found.pop(mutator, None)
