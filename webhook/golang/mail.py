"""E-mail addresses as Go's ``net/mail`` parses them (RFC 5322 with extensions)."""

from __future__ import annotations

import ipaddress
import re
from typing import Final

_VISIBLE: Final = "\\x21-\\x7e\\x80-\\U0010ffff"
_ATOM: Final = re.compile(rf"(?:(?![()<>\[\]:;@\\,\"])[{_VISIBLE}])+")
_QUOTED: Final = re.compile(rf'"((?:(?![\\"])[{_VISIBLE} \t]|\\[{_VISIBLE} \t])*)"')
_LITERAL: Final = re.compile(rf"\[((?:(?![\[\]\\])[{_VISIBLE}])*)\]")
_SPACE: Final = re.compile("[ \t]*")


class _NoAddress(ValueError):
    """The text is neither an address nor a group of addresses."""


def is_address(text: str) -> bool:
    """Returns whether ``ParseAddress`` accepts a text: one address, with a name or comments."""
    parser = _Parser(text)
    try:
        count = parser.address(may_be_group=True)
        parser.comments()
    except _NoAddress:
        return False
    return count == 1 and parser.at == len(text)


class _Parser:
    """Reads a text from its beginning on."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 0

    def address(self, *, may_be_group: bool) -> int:
        """Reads an address or a group; returns the number of addresses."""
        self._take(_SPACE)
        began = self.at
        try:
            self._specification()
        except _NoAddress:
            self.at = began
        else:
            self._take(_SPACE)
            if self._sees("("):
                self._comment()
            return 1
        if not self._sees("<"):
            self._phrase()
        self._take(_SPACE)
        if may_be_group and self._skips(":"):
            return self._group()
        self._expect("<")
        self._specification()
        self._expect(">")
        return 1

    def comments(self) -> None:
        """Skips spaces and comments."""
        self._take(_SPACE)
        while self._sees("("):
            self._comment()
            self._take(_SPACE)

    def _group(self) -> int:
        self._take(_SPACE)
        count = 0
        while not self._skips(";"):
            if count:
                self._expect(",")
            self._take(_SPACE)
            count += self.address(may_be_group=False)
            self.comments()
        self.comments()
        return count

    def _specification(self) -> None:
        self._take(_SPACE)
        if self._sees('"'):
            if not self._take(_QUOTED)[1:-1]:
                raise _NoAddress
        else:
            self._dotted()
        self._expect("@")
        self._take(_SPACE)
        if not self._sees("["):
            self._dotted()
            return
        literal = self._take(_LITERAL)[1:-1]
        try:
            address = ipaddress.ip_address(literal)
        except ValueError:
            raise _NoAddress from None
        if getattr(address, "scope_id", None):
            raise _NoAddress

    def _dotted(self) -> None:
        atom = self._take(_ATOM)
        if ".." in atom or atom[0] == "." or atom[-1] == ".":
            raise _NoAddress

    def _phrase(self) -> None:
        words = 0
        while True:
            if words:
                self.comments()
            self._take(_SPACE)
            word = _QUOTED if self._sees('"') else _ATOM
            try:
                self._take(word)
            except _NoAddress:
                if words:
                    return
                raise
            words += 1

    def _comment(self) -> None:
        depth = 0
        while self.at < len(self._text):
            sign = self._text[self.at]
            self.at += 2 if sign == "\\" else 1
            depth += (sign == "(") - (sign == ")")
            if not depth:
                return
        raise _NoAddress

    def _sees(self, sign: str) -> bool:
        return self._text.startswith(sign, self.at)

    def _skips(self, sign: str) -> bool:
        if self._sees(sign):
            self.at += 1
            return True
        return False

    def _expect(self, sign: str) -> None:
        if not self._skips(sign):
            raise _NoAddress

    def _take(self, pattern: re.Pattern[str]) -> str:
        matched = pattern.match(self._text, self.at)
        if matched is None:
            raise _NoAddress
        self.at = matched.end()
        return matched[0]
