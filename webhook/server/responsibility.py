"""Decides who is responsible for a request that was not decided in its time, or found no room.

With ``failurePolicy: Ignore`` undecided requests are admitted. A user must not obtain that by a
large object, or by many requests at a time: such requests are refused. failurePolicy applies only
if other users, or a fault of this webhook, caused the delay.
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
"""The largest processor time of an ordinary object: Pods of 300 containers, ConfigMaps of a MiB and
the largest CRDs take less than half of it with all policies of ``policies/``. A fair share of the
slow lane, a third of a core, takes a second and a half for it with ten users."""

SOME_SECONDS: Final = 0.01
"""The time of a review on the admission thread, in seconds, before it continues on another. A
requester with this much, and with most of all work meanwhile, did not wait for others, even if
there was little processor time."""

SHARES_MIN: Final = 2
"""The fair share as a divisor: with half of the places, a user is responsible for its own delay."""

NOTED_SECONDS: Final = 0.001
"""Work that is shorter is noted when that of its requester comes to as much: of hundreds of small
requests at once the last waits for all others."""

SMALL_MAX: Final = 1024
"""Requesters whose work is shorter so far; beyond this many the sums, together below a second, are
dropped."""

NOTES_MAX: Final = 4096
"""Of a millisecond and more: the last four seconds of a core, at the least."""

_SERVICE_ACCOUNT: Final = "system:serviceaccount:"

_CONTROLLERS: Final = (f"{_SERVICE_ACCOUNT}kube-system:", "system:kube-controller-manager")
"""How the names of Kubernetes' controllers begin, which create the Pods of every namespace."""


class Delay(NamedTuple):
    """The facts about a request that was not decided."""

    worked_seconds: float = 0.0
    """Processor time that its own review took so far."""
    requester_seconds: float = 0.0
    """Processor time for its requester since it arrived, its own review included."""
    all_seconds: float = 0.0
    """Processor time of all requesters since then."""
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
        """Returns this work with the places of another delay."""
        return self._replace(
            places_taken=other.places_taken, places=other.places, requesters=other.requesters
        )


NOTHING_KNOWN: Final = Delay()


def responsible_for(delay: Delay) -> Responsible:
    """Returns who is responsible for a delay.

    There are three cases: the object, if it took the processor time of an ordinary object; others,
    if the requester had less than its fair share of processor and places; else the requester, or
    the object if the requester sent nothing else.
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
    if (
        not delay.places or delay.places_taken < SHARES_MIN
    ):  # A single request crowds out no others.
        return False
    return (delay.places_taken + 1) * max(delay.requesters, SHARES_MIN) > delay.places


def decisive(*delays: Delay) -> Delay:
    """The first by which a request's own user is to blame; where there is none, the first."""
    return next((delay for delay in delays if responsible_for(delay) != "others"), delays[0])


def requester_of(username: str) -> str:
    """Returns the requester of a user: service accounts of one namespace count as one.

    An owner of the namespace could create a hundred of them.
    """
    if not username.startswith(_SERVICE_ACCOUNT):
        return username
    namespace, separator, _ = username[len(_SERVICE_ACCOUNT) :].partition(":")
    return f"{_SERVICE_ACCOUNT}{namespace}" if separator else username


def requester(request: AdmissionRequest) -> str:
    """Returns the requester of a request; each stranger is one of its own, whomever it names."""
    return request.stranger or requester_of(request.username)


def acting_user(request: AdmissionRequest) -> str:
    """Returns the user whom provider calls and overruns of a request count for.

    A controller acts for a namespace, so that they count for the service accounts there. Otherwise
    objects of one namespace could suspend a provider or a constraint for the Pods of every other.
    """
    if request.namespace and not request.stranger and request.username.startswith(_CONTROLLERS):
        return f"{_SERVICE_ACCOUNT}{request.namespace}"
    return requester(request)


class ProcessorTime:
    """The recent processor time of each requester.

    Any thread writes; the admission thread reads.
    """

    def __init__(self) -> None:
        # Arrays of numbers instead of objects: objects made during a large request are spread over
        # its memory, and each would keep a MiB of it allocated.
        self._moments = array("d", bytes(8 * NOTES_MAX))
        self._requesters = array("q", bytes(8 * NOTES_MAX))
        self._seconds = array("d", bytes(8 * NOTES_MAX))
        self._noted = 0
        """How many notes there were; the latest are kept."""
        self._small: dict[str, float] = {}
        """Work of each that is not noted yet."""
        self._lock = threading.Lock()
        self._beside: dict[str, float] = {}
        """Work on other threads than the one that answers, since it was last taken."""
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

    def note_beside(self, requester: str, seconds: float) -> None:
        """Work for a requester has just been done on another thread than the one that answers."""
        self.note(requester, seconds)
        with self._lock:
            if len(self._beside) >= SMALL_MAX:
                self._beside.clear()
            self._beside[requester] = self._beside.get(requester, 0.0) + seconds

    def take_beside(self) -> dict[str, float]:
        """Returns what was noted of other threads since the last call, by requester."""
        if not self._beside:
            return self._beside
        with self._lock:
            taken, self._beside = self._beside, {}
        return taken

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
