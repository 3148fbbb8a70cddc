"""The format of a segment file: a magic number, then frames, the first a header.

A frame is its payload's length and CRC-32, four bytes each, little endian, and
the payload. The header's payload is JSON: the offset of the first record, and
the durable marks of all streams at that point. Every other payload is one
record's line.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterable

MAGIC: Final = b"WADDLE1\n"
FRAME: Final = struct.Struct("<II")
SUFFIX: Final = ".segment"

MAX_PAYLOAD_BYTES: Final = 4 * 1024 * 1024
"""A length beyond this is damage: lines are limited to 1 MiB, headers to much less."""


@dataclass(frozen=True, slots=True)
class Header:
    """What a segment says of itself."""

    first: int
    streams: list[list[Any]]


def file_name(first: int) -> str:
    """The name of the segment that begins with this offset; names sort as offsets do."""
    return f"{first:020d}{SUFFIX}"


def first_offset(name: str) -> int | None:
    """The offset that a segment's name says, None for another file."""
    stem = name.removesuffix(SUFFIX)
    return int(stem) if stem != name and len(stem) == 20 and stem.isdecimal() else None


def encode_header(header: Header) -> bytes:
    """The beginning of a segment file."""
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


def decode_frames(data: bytes, start: int = 0) -> tuple[list[bytes], int, bool]:
    """The whole frames in ``data`` from ``start``, where they end, and whether damage follows.

    Not damage, but a reason to read on, is a frame that ``data`` cuts off.
    """
    payloads: list[bytes] = []
    position = start
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


def decode_header(data: bytes) -> tuple[Header, int] | None:
    """The header at the start of ``data`` and where it ends; None where it is damaged."""
    if not data.startswith(MAGIC):
        return None
    if len(data) < len(MAGIC) + FRAME.size:
        return None
    length, crc = FRAME.unpack_from(data, len(MAGIC))
    stop = len(MAGIC) + FRAME.size + length
    body = data[len(MAGIC) + FRAME.size : stop]
    if len(body) != length or zlib.crc32(body) != crc:
        return None
    value = orjson.loads(body)
    return Header(value["first"], value["streams"]), stop
