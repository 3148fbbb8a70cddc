"""Estimates the memory of a decoded JSON document before it is decoded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.api.long_texts import end_of_text

# Memory in CPython 3.11 on 64-bit systems, measured on documents of 6 MiB: an empty list takes 24
# times its text, {"":{}} 32 times. The estimate is 0.9 to 1.6 times the memory.
_EMPTY_DICT: Final = 64
_EMPTY_LIST: Final = 56
_DICT: Final = 184
_LIST: Final = 72
_PAIR: Final = 24
_ITEM: Final = 8
_SCALAR: Final = 56
_OF_TEXT: Final = 14
"""The largest memory of a scalar, in bytes for each byte of its text. Texts of one character are
shared; "ab" takes 12 times its text."""

_SPARSE: Final = 32
"""Bytes of text for each container, as in most Pods, from which empty containers are counted as
filled ones: that adds at most four bytes of memory for each byte of text."""

_TEXT: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_WHOLE: Final = re.compile(rb'(?:[^"]|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+', re.DOTALL)
"""Matches up to the end of the last complete text."""

_AT_ONCE: Final = 64 * 1024
"""Bytes scanned in one call, some tenths of a millisecond: other threads wait for it."""


def footprint(raw: bytes | bytearray, *, bound: int = 0) -> int:
    """Returns the approximate bytes of the decoded document.

    Punctuation in texts counts as structure at first, which overestimates; documents beyond
    ``bound`` are therefore scanned again without their texts.
    """
    bytes_estimated = _estimate(_slices(raw)) + len(raw)
    if bytes_estimated > bound:
        # Each text is replaced by a short one: the content takes no more than its own length.
        bytes_estimated = _estimate(_without_texts(raw)) + len(raw)
    return bytes_estimated


def _slices(raw: bytes | bytearray) -> Iterator[bytes | bytearray]:
    for start in range(0, len(raw), _AT_ONCE):
        yield raw[start : start + _AT_ONCE]


def _without_texts(raw: bytes | bytearray) -> Iterator[bytes]:
    start = 0
    while start < len(raw):
        match = _WHOLE.match(raw, start, start + _AT_ONCE)
        end = start if match is None else match.end()
        yield _TEXT.sub(b'"aa"', raw[start:end])
        if end < len(raw) and end < start + _AT_ONCE:  # an incomplete text
            yield b'"aa"'
            end = end_of_text(raw, end + 1)
            if end < 0:
                return
        start = end


def _count(raw: bytes | bytearray, mark: bytes) -> int:
    # In a long text there is none: to find is ten times as fast as to count.
    return raw.count(mark) if mark in raw else 0


def _estimate(slices: Iterator[bytes | bytearray] | Iterator[bytes]) -> int:
    size = dicts = lists = commas = empty_dicts = empty_lists = colons = 0
    for raw in slices:
        size += len(raw)
        slice_dicts, slice_lists = _count(raw, b"{"), _count(raw, b"[")
        dicts += slice_dicts
        lists += slice_lists
        commas += _count(raw, b",")
        colons += _count(raw, b":")
        if (slice_dicts + slice_lists) * _SPARSE > len(raw):  # A pair takes as long as all these.
            empty_dicts += raw.count(b"{}")
            empty_lists += raw.count(b"[]")
    containers = dicts + lists
    filled = containers - empty_dicts - empty_lists
    values = commas + filled  # a container has one member more than commas
    pairs = min(values, colons)
    text = max(0, size - 2 * containers - commas - colons)
    return (
        empty_dicts * _EMPTY_DICT
        + empty_lists * _EMPTY_LIST
        + (dicts - empty_dicts) * (_DICT - _PAIR)
        + (lists - empty_lists) * (_LIST - _ITEM)
        + pairs * _PAIR
        + (values - pairs) * _ITEM
        + min(max(0, values - containers) * _SCALAR, text * _OF_TEXT)
    )
