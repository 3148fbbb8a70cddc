"""Copies of roll-out records in the Secret of keys: by UID, without signatures."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any, Final

from webhook.api.encoding import DecodeError, decode, encode
from webhook.api.shapes import Json, integer_of, object_of, objects_of

COPIES_BYTES_MAX: Final = 700 << 10
"""The size limit of the copies, of a Secret's megabyte: some 2,000 roll-outs of three steps."""

GENERATIONS_MAX: Final = 2
"""The generations kept of an object: the one in force, and the one before it."""


def read_copies(copies: str) -> dict[str, list[Json]]:
    """Reads the records from the Secret's entry, by UID of their objects; invalid ones are ignored."""
    try:
        written = object_of(decode(base64.b64decode(copies, validate=True))) if copies else {}
    except (binascii.Error, ValueError, DecodeError):
        return {}
    return {uid: objects_of(records) for uid, records in written.items()}


def merged(copies: str, current: Mapping[str, Iterable[Json]], gone: Iterable[str]) -> str | None:
    """Returns the Secret's entry with these records, the latest of each generation.

    None if unchanged.

    Deleted objects are left out. Beyond the size limit, objects that are not current are dropped
    first, and then new ones.
    """
    kept = read_copies(copies)
    remaining = {uid: records for uid, records in kept.items() if uid not in gone}
    for uid, records in current.items():
        remaining[uid] = _latest([*remaining.get(uid, ()), *map(_unsigned, records)])
    if remaining == kept:
        return None
    size = len(encode(remaining))
    for uid in [
        *(candidate for candidate in remaining if candidate not in current),
        *(candidate for candidate in remaining if candidate not in kept),
    ]:
        if size <= COPIES_BYTES_MAX:
            break
        size -= len(encode({uid: remaining.pop(uid, [])}))
    return None if remaining == kept else base64.b64encode(encode(remaining)).decode()


def _latest(records: Iterable[Json]) -> list[Json]:
    """Returns the latest record of each of the newest generations."""
    latest: dict[int, Json] = {}
    for record in records:
        generation = integer_of(record.get("observedGeneration"))
        known = latest.get(generation)
        if known is None or _sequence(record) > _sequence(known):
            latest[generation] = record
    return [latest[number] for number in sorted(latest)][-GENERATIONS_MAX:]


def _sequence(record: Mapping[str, Any]) -> int:
    return integer_of(record.get("sequence"))


def _unsigned(record: Json) -> Json:
    return {name: value for name, value in record.items() if name != "signature"}
