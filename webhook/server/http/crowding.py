"""Who fills the port: whose bodies those are that wait, as their beginnings say."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Final

from webhook.api.admission import username_in
from webhook.server.http.limits import PREFIX_BYTES
from webhook.server.responsibility import Delay, requester_of, responsible_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.server.http.responder import HttpAnswer, Responder

LOOKED_AT_MAX: Final = 256
"""Bodies that are looked at for each request that is too many, at a few microseconds each."""

_MESSAGE: Final = "too many requests of the same user wait for review: send fewer at once"


def refuse_crowd(
    responder: Responder | None, body: bytes | bytearray, waiting: Iterable[bytes | bytearray]
) -> HttpAnswer | None:
    """The refusal of a request that is too many where those that wait are its own user's.

    None where others crowd it out: that is left to failurePolicy.
    """
    requester = _requester(body)
    if responder is None or not requester:
        return None
    sizes: Counter[str] = Counter()
    for other in islice(waiting, LOOKED_AT_MAX):
        if other:
            sizes[_requester(other)] += len(other)
    places = sum(sizes.values())
    delay = Delay(places_taken=sizes[requester], places=max(1, places), requesters=len(sizes))
    if responsible_for(delay) == "others":
        return None
    return responder.refuse_unread(bytes(body[:PREFIX_BYTES]), _MESSAGE)


def _requester(body: bytes | bytearray) -> str:
    return requester_of(username_in(body[:PREFIX_BYTES]))
