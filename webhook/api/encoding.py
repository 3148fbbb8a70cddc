"""The JSON decoder and the JSON encoder of this package.

The decoder is orjson with two repairs. Integers beyond 64 bits stay exact. Documents too deep for
orjson are decoded by :mod:`webhook.api.json_decoder`, more slowly. The decoder accepts any size, so
the caller limits the size.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import orjson

from webhook.api.json_decoder import (
    BeyondBounds,
    DecodeError,
    TooDeep,
    decode_in_pieces,
    decode_piece,
    encode_deep,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BeyondBounds", "DecodeError", "decode", "encode", "is_same_json"]

_LOOK_EVERY: Final = 64
"""The values compared between two looks: some 10 µs."""


def decode(body: bytes | bytearray | memoryview | str, *, max_bytes: int | None = None) -> Any:
    """Decodes one JSON document; raises :class:`DecodeError`.

    Raises :class:`BeyondBounds` for a document that is too large, too deep, or has too long
    numbers.
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
    """Encodes like :func:`encode`, for values that stay in memory."""
    return compact(encode(value, sort_keys=sort_keys))


def compact(encoded: bytes) -> bytes:
    """Returns the same bytes without unused memory.

    Bytes of orjson keep their output buffer: 4 KiB for a short value, and up to thirty times the
    length.
    """
    return bytes(memoryview(encoded))


def encode(value: Any, *, indent: bool = False, sort_keys: bool = False) -> bytes:
    """Encodes a value of any depth as UTF-8 JSON; integers beyond 64 bits are exact."""
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
        # A lone surrogate is valid in JSON but not in UTF-8; it becomes U+FFFD as in Go.
        return text.encode("utf-8", "replace")


def is_same_json(a: Any, b: Any, look: Callable[[], None] | None = None) -> bool:
    """Whether two values of any depth are the same JSON; the order of fields does not count.

    ``true`` is not 1, which Python takes for equal. 1 is 1.0: Go writes both as 1, so the API
    server stores the same. Parts that are one Python object are not compared further. ``look`` is
    called again and again during a long comparison; what it raises ends the comparison.
    """
    pending = [(a, b)]
    compared = 0
    while pending:
        a, b = pending.pop()
        if a is b:
            continue
        compared += 1
        if look is not None and not compared % _LOOK_EVERY:
            look()
        kind = type(a)
        if kind is not type(b):
            if {kind, type(b)} != {int, float} or a != b:
                return False
        elif kind is dict:
            if a.keys() != b.keys():
                return False
            pending += [(value, b[name]) for name, value in a.items()]
        elif kind is list:
            if len(a) != len(b):
                return False
            pending += zip(a, b, strict=True)
        elif a != b:
            return False
    return True
