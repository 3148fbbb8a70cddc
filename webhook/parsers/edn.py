"""Parses EDN, Clojure's data: maps with text keys, vectors, and all other values as text."""

from __future__ import annotations

import datetime as dt
import re
from math import isfinite
from typing import Any, Final

from webhook.golang.floats import float_text
from webhook.golang.format import shown
from webhook.parsers.errors import ParseError, TextReader

_DEPTH_MAX: Final = 300
_BLANK: Final = re.compile(r"(?:[\s,]+|;[^\n]*)+")
_ATOM: Final = re.compile(r'[^\s,;()\[\]{}"]+')
_STRING: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPES: Final = {"t": "\t", "r": "\r", "n": "\n", "\\": "\\", '"': '"', "b": "\b", "f": "\f"}
_CHARACTERS: Final = {"newline": "\n", "return": "\r", "space": " ", "tab": "\t", "formfeed": "\f"}
_INTEGER: Final = re.compile(r"([+-]?)(0|[1-9][0-9]*)(N?)")
_FLOAT: Final = re.compile(r"([+-]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)M?")
_NUMERIC: Final = re.compile(r"[+-]?[0-9]|\.[0-9]")  # such an atom is no symbol
_CLOSING: Final = {"(": ")", "[": "]", "{": "}", "#{": "}"}


def parse(raw: bytes, path: str = "") -> Any:
    """Returns the first value of the text."""
    del path
    reader = _Reader(raw.decode("utf-8", "replace"))
    if (value := reader.value(0)) is _Reader.NOTHING:
        raise ParseError("unmarshal EDN: EOF", 1)
    return value


class _Reader(TextReader):
    action = "unmarshal EDN"
    NOTHING: Final = object()

    def value(self, depth: int) -> Any:
        """Returns the next value; NOTHING at the end."""
        if depth > _DEPTH_MAX:
            raise self._fault("nested too deeply")
        self._skip()
        text, at = self._text, self._at
        if at >= len(text):
            return self.NOTHING
        for opening in ("#{", "(", "[", "{"):
            if text.startswith(opening, at):
                return self._collection(opening, depth)
        if text.startswith("#_", at):
            self._at += 2
            self.value(depth + 1)
            return self.value(depth)
        if text[at] == '"':
            return self._string()
        if text[at] in ")]}":
            raise self._fault(f"unexpected {text[at]!r}")
        if text[at] == "#":
            return self._tagged(depth)
        return self._atom()

    def _tagged(self, depth: int) -> Any:
        match = _ATOM.match(self._text, self._at)
        if match is None or len(match[0]) == 1:
            raise self._fault("a tag has no name")
        self._at = match.end()
        value = self.value(depth + 1)
        if value is self.NOTHING:
            raise self._fault("a tag has no value")
        if match[0] != "#inst":
            return f"{match[0]} {shown(value)}"
        try:
            return _moment(dt.datetime.fromisoformat(str(value)))
        except ValueError as error:
            raise self._fault(str(error)) from None

    def _skip(self) -> None:
        match = _BLANK.match(self._text, self._at)
        if match:
            self._at = match.end()

    def _collection(self, opening: str, depth: int) -> Any:
        begun = self._at
        self._at += len(opening)
        items = []
        while True:
            self._skip()
            if self._text.startswith(_CLOSING[opening], self._at):
                self._at += 1
                break
            if (item := self.value(depth + 1)) is self.NOTHING:
                self._at = begun
                raise self._fault("unexpected EOF: a collection is not closed")
            items.append(item)
        if opening == "#{":
            members = sorted(set(map(shown, items)))
            return f"map[{' '.join(f'{member}:true' for member in members)}]"
        if opening != "{":
            return items
        if len(items) % 2:
            self._at = begun
            raise self._fault("a map has a key without a value")
        return {shown(key): value for key, value in zip(items[::2], items[1::2], strict=True)}

    def _string(self) -> str:
        if (match := _STRING.match(self._text, self._at)) is None:
            raise self._fault("unexpected EOF: a text is not closed")
        self._at = match.end()
        return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", _unescaped, match[1], flags=re.DOTALL)

    def _atom(self) -> Any:
        if (match := _ATOM.match(self._text, self._at)) is None:
            raise self._fault("no value")
        word = match[0]
        if word == ":" or word.startswith("::"):
            raise self._fault("a keyword has no name")
        self._at = match.end()
        if word.startswith("\\"):
            return str(ord(_CHARACTERS.get(word[1:], word[1:2] or " ")))
        if _NUMERIC.match(word):
            return self._number(word)
        return "<nil>" if word == "nil" else word

    def _number(self, word: str) -> str:
        if whole := _INTEGER.fullmatch(word):  # Python's int() is limited to 4,300 digits
            sign, digits, is_big = whole.groups()
            if is_big or (len(digits) < 20 and int(digits) < (1 << 63) + (sign == "-")):
                return f"-{digits}" if sign == "-" and digits != "0" else digits
        elif (decimal := _FLOAT.fullmatch(word)) and isfinite(number := float(decimal[1])):
            return float_text(number)
        raise self._fault(f"invalid number, or out of range: {word[:40]}")


def _moment(moment: dt.datetime) -> str:
    """Returns a time in Go's form."""
    fraction = f".{moment.microsecond:06}".rstrip("0").rstrip(".")
    zone = moment.strftime("%z") or "+0000"
    return f"{moment:%Y-%m-%d %H:%M:%S}{fraction} {zone} {'UTC' if zone == '+0000' else zone}"


def _unescaped(match: re.Match[str]) -> str:
    word = match[1]
    return chr(int(word[1:], 16)) if len(word) > 1 else _ESCAPES.get(word, word)
