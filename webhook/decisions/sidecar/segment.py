"""The format of a segment file: a magic number, then frames, the first a header.

A frame is its payload's length and CRC-32, four bytes each, little endian, and the payload. The
header's payload is JSON: the offset of the first record, and the durable marks of all streams at
that point. Every other payload is one record's line.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from typing import Any, Final

import orjson

from webhook.values import dataclass

MAGIC: Final = b"WADDLE1\n"
FRAME: Final = struct.Struct("<II")
SUFFIX: Final = ".segment"

MAX_PAYLOAD_BYTES: Final = 4 * 1024 * 1024
"""A length beyond this is damage: lines are limited to 1 MiB, headers to much less."""


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a segment."""

    first: int
    streams: list[list[Any]]


def file_name(first: int) -> str:
    """Returns the name of the segment that begins with this offset; names sort as offsets do."""
    return f"{first:020d}{SUFFIX}"


def first_offset(name: str) -> int | None:
    """Returns the offset in a segment's name; None for another file."""
    stem = name.removesuffix(SUFFIX)
    return int(stem) if stem != name and len(stem) == 20 and stem.isdecimal() else None


def encode_header(header: Header) -> bytes:
    """Returns the beginning of a segment file."""
    body = orjson.dumps({"first": header.first, "streams": header.streams})
    return MAGIC + FRAME.pack(len(body), zlib.crc32(body)) + body


def encode_frames(lines: Iterable[bytes]) -> bytes:
    """Records as frames."""
    crc32 = zlib.crc32
    pack = FRAME.pack
    parts: list[bytes] = []
    for line in lines:
        parts.append(pack(len(line), crc32(line)))
        parts.append(line)
    return b"".join(parts)


def decode_frames(data: bytes) -> tuple[list[bytes], int, bool]:
    """Returns the whole frames in ``data``, their end, and whether damage follows.

    A frame cut off by the end of ``data`` is not damage, but a reason to read more.
    """
    payloads: list[bytes] = []
    position = 0
    end = len(data)
    while position + FRAME.size <= end:
        length, crc = FRAME.unpack_from(data, position)
        if not 0 < length <= MAX_PAYLOAD_BYTES:
            return payloads, position, True
        stop = position + FRAME.size + length
        if stop > end:
            return payloads, position, False
        payload = data[position + FRAME.size : stop]
        if zlib.crc32(payload) != crc:
            return payloads, position, True
        payloads.append(payload)
        position = stop
    return payloads, position, False


def find_frame(data: bytes) -> int:
    """Returns the position of the first whole frame of a record; -1 for none.

    A frame is recognised by a JSON object with the right checksum, which does not occur in text by
    chance.
    """
    brace = data.find(b"{", FRAME.size)
    while brace >= 0:
        length, crc = FRAME.unpack_from(data, brace - FRAME.size)
        stop = brace + length
        if (
            2 <= length <= MAX_PAYLOAD_BYTES
            and stop <= len(data)
            and data[stop - 1 : stop] == b"}"
            and zlib.crc32(data[brace:stop]) == crc
        ):
            return brace - FRAME.size
        brace = data.find(b"{", brace + 1)
    return -1


def header_end(data: bytes) -> int:
    """Returns the end of the header from the first bytes of a segment; 0 if it is damaged."""
    if len(data) < len(MAGIC) + FRAME.size:
        return 0
    length, _ = FRAME.unpack_from(data, len(MAGIC))
    return len(MAGIC) + FRAME.size + length if 0 < length <= MAX_PAYLOAD_BYTES else 0


def decode_header(data: bytes) -> Header | None:
    """Returns the header from the first bytes of a segment; None if it is damaged.

    The magic number is for people; only the checksum is checked.
    """
    start = len(MAGIC) + FRAME.size
    stop = header_end(data)
    if not stop or stop > len(data):
        return None
    _, crc = FRAME.unpack_from(data, len(MAGIC))
    body = data[start:stop]
    if zlib.crc32(body) != crc:
        return None
    value = orjson.loads(body)
    return Header(value["first"], value["streams"])
