"""Answers requests that are not read, and finds users whose requests crowd out others.

Users are read from the beginnings of the received bodies.
"""

from __future__ import annotations

from collections import Counter
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.server.http.fair_queue import occupant_of
from webhook.server.http.limits import PREFIX_BYTES
from webhook.server.http.responder import JSON, failure
from webhook.server.responsibility import SHARES_MIN, Delay, responsible_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.server.http.fair_queue import Occupant
    from webhook.server.http.hub import Hub
    from webhook.server.http.responder import HttpAnswer, Responder

LOOKED_AT_MAX: Final = 256
"""Requests examined for each one without a place, at a few microseconds each."""

_DELAYS: Final = frozenset({408, 429, 504})
"""Status codes for lack of room or time; the responsible party is determined for these."""

TOO_MANY: Final = "too many requests of the same user wait for review: send fewer at once"
LATE: Final = (
    "too many bytes of the same user wait for review: send smaller objects, or fewer at once"
)

TOO_LARGE: Final = "it is too large to be read in time: make it smaller, or split it"


class UnreadRefusal(NamedTuple):
    """Why a request is not read to its end, or not decided."""

    status: int
    reason: str
    """The label in metrics."""
    message: str
    of_requests: bool = False
    """Whether places for requests are short, and not room or time for bytes."""


IN_FLIGHT: Final = UnreadRefusal(
    429,
    "overload",
    "too many requests in flight: try again or try another replica",
    of_requests=True,
)

_OVERDUE: Final = "its time limit passed before its review began"


def answer_to(
    refusal: UnreadRefusal,
    body: bytes | bytearray,
    responder: Responder | None,
    hub: Hub,
    since: float,
) -> HttpAnswer:
    """Returns the answer to a request whose body has arrived up to this part.

    Its head arrived at ``since``. If its own user is responsible it is refused, regardless of
    failurePolicy.
    """
    status, reason, message, of_requests = refusal
    hub.refused(reason)
    answer = None
    if responder is None or not body:
        pass
    elif status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        answer = responder.refuse_unread(bytes(body[:PREFIX_BYTES]), message)
    elif status in _DELAYS:
        answer = _refuse_crowd(responder, body, hub.occupants(), since, by_size=not of_requests)
    if answer is not None:
        return answer
    headers = (JSON, *hub.retry()) if status == HTTPStatus.TOO_MANY_REQUESTS else (JSON,)
    return status, headers, failure(status, message)


def answer_overdue(
    body: bytes | bytearray, responder: Responder, hub: Hub, since: float, before: Delay
) -> HttpAnswer:
    """Returns the answer to a request whose time ends in the queue, with the queue before it."""
    hub.refused("deadline")
    requester = occupant_of(body).requester
    delay = responder.work_since(since, requester)
    if before.places_taken > delay.places_taken:
        delay = delay.with_places(before)
    answer = responder.refuse_delayed(bytes(body[:PREFIX_BYTES]), delay, TOO_MANY)
    return answer or (504, (JSON,), failure(504, _OVERDUE))


def _refuse_crowd(
    responder: Responder,
    body: bytes | bytearray,
    occupants: Iterable[Occupant],
    since: float,
    *,
    by_size: bool,
) -> HttpAnswer | None:
    """Returns the refusal of a request without place or time because of its own user's requests.

    None if other users crowd it out.
    """
    requester = occupant_of(body).requester
    if not requester:
        return None
    present, prefix = list(islice(occupants, LOOKED_AT_MAX)), bytes(body[:PREFIX_BYTES])
    places = _places(requester, present, by_size=by_size)
    delay = responder.work_since(since, requester).with_places(places)
    if by_size and responsible_for(delay) != "others":
        requests = _places(requester, present, by_size=False)
        if requests.places_taken < SHARES_MIN:
            return responder.refuse_unread(prefix, TOO_LARGE)
    return responder.refuse_delayed(prefix, delay, LATE if by_size else TOO_MANY)


def places_of(requester: str, hub: Hub) -> Delay:
    """Returns a user's share of the requests under way."""
    return _places(requester, hub.occupants(), by_size=False)


def _places(requester: str, occupants: Iterable[Occupant], *, by_size: bool) -> Delay:
    """Returns a user's share of the port, by bytes or by requests."""
    places: Counter[str] = Counter()
    for other in islice(occupants, LOOKED_AT_MAX):
        # Requests without a readable user count as another user's.
        if other.requester or other.size:
            places[other.requester] += other.size if by_size else 1
    return Delay(
        places_taken=places[requester],
        places=max(1, sum(places.values())),
        requesters=max(1, len(places)),
    )
