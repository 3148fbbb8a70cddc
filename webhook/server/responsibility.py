"""Decides who is responsible for a request that was not decided in its time, or found no room.

With ``failurePolicy: Ignore`` what is not decided is let in. So nobody may have it so for what is
slow of their own: a large object, or many requests at a time. That is refused. Only who waited
behind others, or for a fault of ours, is left to failurePolicy.
"""

from __future__ import annotations

import threading
import time
from array import array
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.api.admission import AdmissionRequest

Responsible: TypeAlias = Literal["object", "requester", "others"]
"""``object``: the review itself takes too long. ``requester``: its user's other requests do, or are
too many. ``others``: neither."""

ORDINARY_SECONDS: Final = 0.05
"""Processor time that decides what is ordinary: Pods of 300 containers, ConfigMaps of a MiB and the
largest CRDs take less than half of it with all policies of ``policies/``. A fair share of the slow
lane, a third of a core, has that much in a second and a half for each of ten users."""

SOME_SECONDS: Final = 0.01
"""The time of a review on the admission thread, in seconds, before it goes on beside it. A
requester that has had as much, and most of all work meanwhile, waited for nobody else, however
little of the processor there was."""

SHARES_MIN: Final = 2
"""A user may have half the places that there are, and is not to be told of others where it has."""

NOTED_SECONDS: Final = 0.001
"""Work that is shorter is noted when that of its requester comes to as much: of hundreds of small
requests at once the last waits for all others."""

SMALL_MAX: Final = 1024
"""Requesters whose work is not yet as much; of more it is forgotten, less than a second together."""

NOTES_MAX: Final = 4096
"""Of a millisecond and more: the last four seconds of a core, at the least."""

_SERVICE_ACCOUNT: Final = "system:serviceaccount:"


class Delay(NamedTuple):
    """The facts about a request that was not decided."""

    worked_seconds: float = 0.0
    """Processor time that its own review took so far."""
    requester_seconds: float = 0.0
    """Processor time for its requester since it arrived, its own review included."""
    all_seconds: float = 0.0
    """Processor time for anybody since then."""
    places_taken: int = 0
    """Places that its requester has, where there was none left for it."""
    places: int = 0
    """Places that there are; 0 where it was not for want of one."""
    requesters: int = 1
    """The number of requesters that have places."""

    @property
    def is_alone(self) -> bool:
        """Whether its requester had nothing else done that matters, and has nothing else under way."""
        own_share = SHARES_MIN * self.worked_seconds
        return self.places_taken < SHARES_MIN and self.requester_seconds < own_share

    def with_places(self, other: Delay) -> Delay:
        """Return this work with the places of another delay."""
        return self._replace(
            places_taken=other.places_taken, places=other.places, requesters=other.requesters
        )


NOTHING_KNOWN: Final = Delay()


def responsible_for(delay: Delay) -> Responsible:
    """Return who is responsible for a delay.

    Whoever had enough of the processor for an ordinary object, or a fair share of the places, has
    nobody else to blame. Who has sent nothing else is not told to send less.
    """
    if delay.worked_seconds >= ORDINARY_SECONDS:
        return "object"
    if not _had_its_share(delay):
        return "others"
    return "object" if delay.is_alone else "requester"


def _had_its_share(delay: Delay) -> bool:
    """Whether a requester had as much of the processor, or of the places, as is fair.

    So it has where one more would be too many: of 64 places for seven users each has nine.
    """
    enough = min(ORDINARY_SECONDS, max(SOME_SECONDS, delay.all_seconds / SHARES_MIN))
    if delay.requester_seconds >= enough:
        return True
    if not delay.places or delay.places_taken < SHARES_MIN:  # One alone crowds nobody out.
        return False
    return (delay.places_taken + 1) * max(delay.requesters, SHARES_MIN) > delay.places


def telling(*delays: Delay) -> Delay:
    """The first by which a request's own user is to blame; where there is none, the first."""
    return next((delay for delay in delays if responsible_for(delay) != "others"), delays[0])


def requester_of(username: str) -> str:
    """Return the requester of a user: all service accounts of a namespace are its owners'.

    Whoever may make one there may make a hundred.
    """
    if not username.startswith(_SERVICE_ACCOUNT):
        return username
    namespace, separator, _ = username[len(_SERVICE_ACCOUNT) :].partition(":")
    return f"{_SERVICE_ACCOUNT}{namespace}" if separator else username


def requester(request: AdmissionRequest) -> str:
    """Return the requester of a request; each stranger is one of its own, whomever it names."""
    return request.stranger or requester_of(request.username)


class ProcessorTime:
    """The processor time of each requester lately. Any thread may note; the admission thread asks."""

    def __init__(self) -> None:
        # Numbers in their places, not objects: those made while a large request is there are all
        # over its memory, and would keep a MiB of it each from the system.
        self._moments = array("d", bytes(8 * NOTES_MAX))
        self._requesters = array("q", bytes(8 * NOTES_MAX))
        self._seconds = array("d", bytes(8 * NOTES_MAX))
        self._noted = 0
        """How many notes there were; the latest are kept."""
        self._small: dict[str, float] = {}
        """Work of each that is not noted yet."""
        self._lock = threading.Lock()
        self.places_of: Callable[[str], Delay] = lambda _: NOTHING_KNOWN
        """The function that returns a requester's places on the port now, the present request
        included."""

    def note(self, requester: str, seconds: float) -> None:
        """Work for a requester, that took so long, has just been done."""
        with self._lock:
            small = self._small
            seconds += small.pop(requester, 0.0)
            if seconds >= NOTED_SECONDS:
                place = self._noted % NOTES_MAX
                self._moments[place] = time.monotonic()
                self._requesters[place] = hash(requester)
                self._seconds[place] = seconds
                self._noted += 1
                return
            if len(small) >= SMALL_MAX:
                small.clear()
            small[requester] = seconds

    def since(self, moment: float, requester: str) -> Delay:
        """Processor seconds for a requester, and for all, since this moment on the monotonic clock."""
        own_seconds = total = 0.0
        user_hash = hash(requester)
        with self._lock:
            for number in range(min(self._noted, NOTES_MAX)):
                place = (self._noted - 1 - number) % NOTES_MAX
                at = self._moments[place]
                if at < moment:
                    break
                worked = min(self._seconds[place], at - moment)
                total += worked
                if self._requesters[place] == user_hash:
                    own_seconds += worked
        return self.places_of(requester)._replace(requester_seconds=own_seconds, all_seconds=total)
