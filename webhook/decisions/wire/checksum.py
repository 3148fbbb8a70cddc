"""Small files that say how far something came: a flipped byte must not move it."""

from __future__ import annotations

import zlib


def with_checksum(body: bytes) -> bytes:
    """What to write: the body, and its CRC-32 on a line of its own."""
    return b"%s\n%08x\n" % (body, zlib.crc32(body))


def checked(data: bytes) -> bytes:
    """The body of what was written; raises :class:`ValueError` for damage."""
    body, _, checksum = data.removesuffix(b"\n").rpartition(b"\n")
    if checksum != b"%08x" % zlib.crc32(body):
        raise ValueError("the checksum does not match")
    return body
