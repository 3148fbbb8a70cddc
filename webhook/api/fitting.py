"""Cuts a status until etcd takes it: one beyond its limit would not be written at all.

The same value is always cut to the same, so that of several writers none undoes another's cut.
Numbers stay: a total says how much there is, whatever of it is shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.encoding import encode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.api.shapes import Json

OBJECT_BYTES_MAX: Final = 1_250_000
"""Of an object as JSON. etcd takes requests of 1.5 MiB (``--max-request-bytes``), in which its
writers' history stands too, and what others write into its status."""

STATUS_BYTES_MIN: Final = 32 * 1024
"""The bytes that a status may have, however large the rest of its object is."""

_CHARACTERS: Final = (1024, 256)
"""Texts are cut to so many first: no name is longer than the last."""

_ITEMS: Final = (1000, 100, 10, 1)
"""Then lists to so many."""


def status_room(document: Mapping[str, Any]) -> int:
    """How many bytes the status of an object may have."""
    rest = {name: value for name, value in document.items() if name != "status"}
    return max(STATUS_BYTES_MIN, OBJECT_BYTES_MAX - len(encode(rest)))


def fitted(value: Json, bytes_max: int) -> Json:
    """An object of JSON that has at most so many bytes, if cutting texts and lists can bring that."""
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
    """As many of the first entries of a list as have at most so many bytes.

    Their texts are cut before any of them is left out.
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
