"""JSON both ways: the one decoder and the one encoder.

orjson is the decoder, with repairs: integers beyond 64 bits stay exact, and what
nests deeper than orjson goes is decoded all the same, more slowly
(:mod:`webhook.api.json_decoder`). It accepts any size, so the caller names a cap.
"""

from __future__ import annotations

import json
from typing import Any

import orjson

from webhook.api.json_decoder import (
    BeyondBounds,
    DecodeError,
    TooDeep,
    decode_in_pieces,
    decode_piece,
    encode_deep,
)

__all__ = ["BeyondBounds", "DecodeError", "decode", "encode"]


def decode(body: bytes | bytearray | memoryview | str, *, max_bytes: int | None = None) -> Any:
    """Decode one JSON document; raises :class:`DecodeError`.

    It is a :class:`BeyondBounds` where a document is larger or deeper, or has longer
    numbers, than can be taken.
    """
    if max_bytes is not None and len(body) > max_bytes:
        raise BeyondBounds(f"document of {len(body)} bytes is larger than {max_bytes}")
    if isinstance(body, str):
        body = body.encode()
    elif isinstance(body, memoryview):
        body = bytes(body)
    try:
        return decode_piece(body)
    except TooDeep:
        return decode_in_pieces(body)


def encode_to_keep(value: Any, *, sort_keys: bool = False) -> bytes:
    """Encode as :func:`encode` does, for what stays in memory."""
    return compact(encode(value, sort_keys=sort_keys))


def compact(encoded: bytes) -> bytes:
    """Return the same bytes in as much memory as they need.

    What orjson returns keeps the buffer that it was written to: 4 KiB however short it is, and up
    to thirty times its length.
    """
    return bytes(memoryview(encoded))


def encode(value: Any, *, indent: bool = False, sort_keys: bool = False) -> bytes:
    """Encode as UTF-8 JSON, however deep; integers beyond 64 bits are exact too."""
    option = (orjson.OPT_INDENT_2 if indent else 0) | (orjson.OPT_SORT_KEYS if sort_keys else 0)
    try:
        return orjson.dumps(value, option=option)
    except TypeError:
        separators = None if indent else (",", ":")
        try:
            text = json.dumps(
                value,
                ensure_ascii=False,
                allow_nan=False,
                indent=2 if indent else None,
                separators=separators,
                sort_keys=sort_keys,
            )
        except RecursionError:
            return encode_deep(value, sort_keys=sort_keys)
        # A lone surrogate, which JSON may hold and UTF-8 may not, becomes U+FFFD as in Go.
        return text.encode("utf-8", "replace")
