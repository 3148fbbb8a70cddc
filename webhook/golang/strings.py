"""Strings as Go holds and quotes them.

A string may hold bytes that are no UTF-8. Each such byte is a lone surrogate here, as Python's
``surrogateescape`` makes it.
"""

from __future__ import annotations

from typing import Final


def utf8(text: str) -> bytes:
    """The string's bytes, also those that are no UTF-8."""
    return text.encode("utf-8", "surrogateescape")


def from_utf8(raw: bytes) -> str:
    """The string with these bytes."""
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
"""Characters that Go, and so CEL, writes by a name in quotes."""


SPACES: Final = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
"""The characters that Go's unicode.IsSpace takes for a space."""


def quote(text: str) -> str:
    """The string as Go's ``strconv.Quote`` writes it."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join(map(_escape, text))}"'


def quote_ascii(text: str) -> str:
    """The string as Go's ``strconv.QuoteToASCII`` writes it."""
    return f'"{"".join(c if " " <= c <= "~" and c not in ESCAPES else _escape(c, True) for c in text)}"'


def _escape(character: str, ascii_only: bool = False) -> str:
    named = ESCAPES.get(character)
    if named is not None:
        return named
    code = ord(character)
    if character.isprintable() and not (ascii_only and code > 0x7E):
        return character
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no UTF-8
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
