"""The values that literals write (CEL specification, "String and Bytes Values", "Numeric Values")."""

from __future__ import annotations

import re
from typing import Final

from webhook.cel.run.values import INT_MAX, INT_MIN, UINT_MAX, Uint

_ESCAPE: Final = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|X([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))",
    re.DOTALL,
)
_PLAIN: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "`": "`", "?": "?",
}  # fmt: skip


class LiteralError(Exception):
    """A literal that has no value: what is wrong with it."""


def string_of(text: str) -> str:
    """The value of a string as it is written."""
    body, raw = _body(text)
    body = body.replace("\r\n", "\n").replace("\r", "\n")
    if raw or "\\" not in body:
        return body
    return _ESCAPE.sub(_character, _checked(body))


def bytes_of(text: str) -> bytes:
    """The value of bytes as they are written."""
    body, raw = _body(text[1:])
    body = body.replace("\r\n", "\n").replace("\r", "\n")
    if raw or "\\" not in body:
        return body.encode()
    out, at = bytearray(), 0
    body = _checked(body)
    for match in _ESCAPE.finditer(body):
        out += body[at : match.start()].encode()
        out += _byte(match)
        at = match.end()
    return bytes(out + body[at:].encode())


def _body(text: str) -> tuple[str, bool]:
    raw = text[0] in "rR"
    if raw:
        text = text[1:]
    quotes = 3 if text[:3] in {'"""', "'''"} and len(text) >= 6 else 1
    return text[quotes:-quotes], raw


def _checked(body: str) -> str:
    for match in _ESCAPE.finditer(body):
        if match[6] is not None and match[6] not in _PLAIN:
            raise LiteralError("unable to unescape string")
    return body


def _character(match: re.Match[str]) -> str:
    digits = match[1] or match[2] or match[3] or match[4]
    if digits:
        code = int(digits, 16)
    elif match[5]:
        code = int(match[5], 8)
    else:
        return _PLAIN[match[6]]
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise LiteralError("invalid unicode code point")
    return chr(code)


def _byte(match: re.Match[str]) -> bytes:
    if match[3] or match[4]:
        raise LiteralError("unable to unescape string")
    if match[1] or match[2]:
        return bytes([int(match[1] or match[2], 16)])
    if match[5]:
        return bytes([int(match[5], 8)])
    return _PLAIN[match[6]].encode()


def int_of(text: str, *, negative: bool) -> int:
    """The value of an integer."""
    value = _whole(text)
    value = -value if negative else value
    if not INT_MIN <= value <= INT_MAX:
        raise LiteralError("invalid int literal")
    return value


def uint_of(text: str) -> Uint:
    """The value of an unsigned integer, ``u`` included in its text."""
    value = _whole(text[:-1])
    if value > UINT_MAX:
        raise LiteralError("invalid uint literal")
    return Uint(value)


def _whole(text: str) -> int:
    digits, base = (text[2:], 16) if text.startswith("0x") else (text, 10)
    if len(digits.lstrip("0")) > 20:
        return UINT_MAX + 1
    return int(digits, base)


def float_of(text: str, *, negative: bool) -> float:
    """The value of a double."""
    value = float(text)
    if value == float("inf"):
        raise LiteralError("invalid double literal")
    return -value if negative else value
