"""Go's base64 decoding: padding required, line ends skipped, the bad byte named.

Shared by the families for certificates, keys and tokens. Python's own decoder accepts other
deviations and does not report the position of a fault.
"""

from __future__ import annotations

import base64
import re
from typing import Final


class CorruptInputError(ValueError):
    """The text is not valid base64; the message is Go's."""


_STANDARD: Final = re.compile(
    rb"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?",
)
_URL: Final = re.compile(
    rb"(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-]{2}==|[A-Za-z0-9_-]{3}=)?",
)
_STANDARD_ALPHABET: Final = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
)
_URL_ALPHABET: Final = _STANDARD_ALPHABET - frozenset(b"+/") | frozenset(b"-_")
_LINE_ENDS: Final = b"\r\n"
_PAD: Final = ord("=")


def decode(text: str | bytes) -> bytes:
    """Returns the bytes of standard base64.

    Raises :class:`CorruptInputError` with Go's ``illegal base64 data at input byte N``.
    """
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    compact = data.translate(None, _LINE_ENDS)
    if _STANDARD.fullmatch(compact) is None:
        raise _corrupt(data, _STANDARD_ALPHABET)
    return base64.b64decode(compact)


def decode_url(text: str) -> bytes:
    """Returns the bytes of base64url, with or without padding (RFC 7515, appendix C)."""
    data = text.encode("utf-8", "surrogateescape")
    if not data.endswith(b"="):
        missing = len(data) % 4
        if missing == 1:
            raise CorruptInputError(f"illegal base64url string: {text}")
        data += b"=" * (-missing % 4)
    compact = data.translate(None, _LINE_ENDS)
    if _URL.fullmatch(compact) is None:
        raise _corrupt(data, _URL_ALPHABET)
    return base64.urlsafe_b64decode(compact)


def encode_url(data: bytes) -> str:
    """Returns base64url without padding, as in tokens and JSON web keys."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def encode(data: bytes) -> str:
    """Returns standard base64 with padding: Go's JSON form of bytes."""
    return base64.b64encode(data).decode("ascii")


def _corrupt(data: bytes, alphabet: frozenset[int]) -> CorruptInputError:
    return CorruptInputError(f"illegal base64 data at input byte {_fault(data, alphabet)}")


def _fault(data: bytes, alphabet: frozenset[int]) -> int:
    """Returns the offset that Go's decoder reports (encoding/base64, decodeQuantum)."""
    filled = 0
    for offset, byte in enumerate(data):
        if byte in _LINE_ENDS:
            continue
        if byte in alphabet:
            filled = (filled + 1) % 4
            continue
        if byte != _PAD or filled < 2:
            return offset
        return _padding_fault(data, offset, filled)
    return len(data) - filled


def _padding_fault(data: bytes, offset: int, filled: int) -> int:
    """Returns the offset of the fault in the padding that begins at ``offset``."""
    rest = _skip_line_ends(data, offset + 1)
    if filled == 2:
        if rest == len(data):
            return len(data)
        if data[rest] != _PAD:
            return rest - 1
        rest = _skip_line_ends(data, rest + 1)
    return rest


def _skip_line_ends(data: bytes, offset: int) -> int:
    while offset < len(data) and data[offset] in _LINE_ENDS:
        offset += 1
    return offset
