"""Cuts a status to the size that etcd accepts; a larger object would not be written at all.

The cut is deterministic, so that no writer undoes the cut of another. Numbers stay: a total counts
all violations, however few are listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from webhook.api.encoding import encode
from webhook.api.shapes import Json

OBJECT_BYTES_MAX: Final = 1_250_000
"""The largest object, in bytes of JSON. etcd takes requests of 1.5 MiB (``--max-request-bytes``);
these also contain managed fields and the status fields of other writers."""

STATUS_BYTES_MIN: Final = 32 * 1024
"""The bytes that a status may have, however large the rest of its object is."""

_CHARACTERS: Final = (1024, 256)
"""Lengths of the cut texts, in the order of the attempts; names are no longer than the last."""

_ITEMS: Final = (1000, 100, 10, 1)
"""Lengths of the cut lists, in the order of the attempts, after the texts."""


def status_room(document: Mapping[str, Any]) -> int:
    """Returns the bytes available for the status of an object."""
    rest = {name: value for name, value in document.items() if name != "status"}
    return max(STATUS_BYTES_MIN, OBJECT_BYTES_MAX - len(encode(rest)))


def fitted(value: Json, bytes_max: int) -> Json:
    """Returns a JSON object of at most so many bytes, if cutting texts and lists suffices."""
    if _fits(value, bytes_max):
        return value
    cut: Any = value
    for characters in _CHARACTERS:
        cut = _with_texts(value, characters)
        if _fits(cut, bytes_max):
            return dict(cut)
    for items in _ITEMS:
        cut = _with_lists(cut, items)
        if _fits(cut, bytes_max):
            break
    return dict(cut)


def first_of(entries: Sequence[Json], bytes_max: int) -> list[Json]:
    """Returns as many of the first entries of a list as fit into so many bytes.

    Texts are cut before an entry is left out.
    """
    kept = list(entries)
    if _fits(kept, bytes_max):
        return kept
    for characters in _CHARACTERS:
        kept = [_with_texts(entry, characters) for entry in entries]
        if _fits(kept, bytes_max):
            return kept
    size = 2
    for number, entry in enumerate(kept):
        size += len(encode(entry)) + 1
        if size > bytes_max:
            return kept[:number]
    return kept


def _fits(value: Any, bytes_max: int) -> bool:
    return len(encode(value)) <= bytes_max


def _with_texts(value: Any, characters: int) -> Any:
    if type(value) is str:
        return value if len(value) <= characters else f"{value[: characters - 1]}…"
    if type(value) is dict:
        return {name: _with_texts(item, characters) for name, item in value.items()}
    if type(value) is list:
        return [_with_texts(item, characters) for item in value]
    return value


def _with_lists(value: Any, items: int) -> Any:
    if type(value) is dict:
        return {name: _with_lists(item, items) for name, item in value.items()}
    if type(value) is list:
        return [_with_lists(item, items) for item in value[:items]]
    return value
