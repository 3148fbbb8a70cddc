r"""Values of literals (CEL specification, "String and Bytes Values", "Numeric Values").

Each function takes a token's text and returns its value, or raises :class:`LiteralError`.

>>> string_of(r"'a\x41'"), bytes_of("b'é'"), int_of("0x1F", negative=True)
('aA', b'\xc3\xa9', -31)
"""

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
    """A literal has no value; the message says why."""


def string_of(text: str) -> str:
    """Returns the value of a string literal, quotes and prefix included in its text."""
    body, raw = _body(text)
    body = body.replace("\r\n", "\n").replace("\r", "\n")
    if raw or "\\" not in body:
        return body
    return _ESCAPE.sub(_character, _checked(body))


def bytes_of(text: str) -> bytes:
    """Returns the value of a bytes literal, in which an escape is one byte and not a character."""
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
    """Returns the text between the quotes, and whether the literal is raw."""
    raw = text[0] in "rR"
    if raw:
        text = text[1:]
    quotes = 3 if text[:3] in {'"""', "'''"} and len(text) >= 6 else 1
    return text[quotes:-quotes], raw


def _checked(body: str) -> str:
    """Returns the text; raises for an escape that CEL does not have."""
    for match in _ESCAPE.finditer(body):
        if match[6] is not None and match[6] not in _PLAIN:
            raise LiteralError("unable to unescape string")
    return body


def _character(match: re.Match[str]) -> str:
    """Returns the character of an escape in a string."""
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
    """Returns the byte of an escape in bytes, which has no ``u`` escapes."""
    if match[3] or match[4]:
        raise LiteralError("unable to unescape string")
    if match[1] or match[2]:
        return bytes([int(match[1] or match[2], 16)])
    if match[5]:
        return bytes([int(match[5], 8)])
    return _PLAIN[match[6]].encode()


def int_of(text: str, *, negative: bool) -> int:
    """Returns the value of an integer; ``negative`` is whether a minus stands before it."""
    value = _whole(text)
    value = -value if negative else value
    if not INT_MIN <= value <= INT_MAX:
        raise LiteralError("invalid int literal")
    return value


def uint_of(text: str) -> Uint:
    """Returns the value of an unsigned integer, whose text ends in ``u``."""
    value = _whole(text[:-1])
    if value > UINT_MAX:
        raise LiteralError("invalid uint literal")
    return Uint(value)


def _whole(text: str) -> int:
    """Returns a decimal or hexadecimal number; any beyond 20 digits is too large for both types."""
    digits, base = (text[2:], 16) if text.startswith("0x") else (text, 10)
    if len(digits.lstrip("0")) > 20:
        return UINT_MAX + 1
    return int(digits, base)


def float_of(text: str, *, negative: bool) -> float:
    """Returns the value of a double; infinity is no literal."""
    value = float(text)
    if value == float("inf"):
        raise LiteralError("invalid double literal")
    return -value if negative else value
