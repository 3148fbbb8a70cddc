"""Strings as Go stores and quotes them.

A string may have bytes that are not valid UTF-8. Each is a lone surrogate here, as with Python's
``surrogateescape``.
"""

from __future__ import annotations

from typing import Final


def utf8(text: str) -> bytes:
    """Returns the string's bytes, invalid UTF-8 included."""
    return text.encode("utf-8", "surrogateescape")


def from_utf8(raw: bytes) -> str:
    """Returns the string with these bytes."""
    return raw.decode("utf-8", "surrogateescape")


ESCAPES: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}
"""Characters that Go and CEL escape by a letter in quotes."""


SPACES: Final = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
"""The characters that Go's unicode.IsSpace accepts."""


def quote(text: str) -> str:
    """Returns the string as Go's ``strconv.Quote`` quotes it."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join(map(_escape, text))}"'


def quote_ascii(text: str) -> str:
    """Returns the string as Go's ``strconv.QuoteToASCII`` quotes it."""
    return f'"{"".join(c if " " <= c <= "~" and c not in ESCAPES else _escape(c, True) for c in text)}"'


def _escape(character: str, ascii_only: bool = False) -> str:
    named = ESCAPES.get(character)
    if named is not None:
        return named
    code = ord(character)
    if character.isprintable() and not (ascii_only and code > 0x7E):
        return character
    if 0xDC80 <= code <= 0xDCFF:  # a byte of invalid UTF-8
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
