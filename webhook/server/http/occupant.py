"""Whose a request is that has arrived, wholly or in part, as its beginning says."""

from __future__ import annotations

from typing import NamedTuple

from webhook.api.admission import namespace_in, username_in
from webhook.server.http.fair_queue import Party
from webhook.server.http.limits import PREFIX_BYTES
from webhook.server.responsibility import requester_of


class Occupant(NamedTuple):
    """What a request has of a port."""

    requester: str
    """Whose it is; empty where that is not known."""
    size: int
    """Bytes of its body that have arrived."""


def occupant_of(body: bytes | bytearray) -> Occupant:
    """Whose a body is, and its size."""
    return Occupant(requester_of(username_in(body[:PREFIX_BYTES])), len(body))


def party_of(body: bytes | bytearray, stranger: str) -> Party:
    """For whom a request is answered; of strangers each is one, whomever it names."""
    prefix = body[:PREFIX_BYTES]
    return Party(stranger or requester_of(username_in(prefix)), namespace_in(prefix))
