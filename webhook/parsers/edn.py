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
_IN_NAMES: Final = r"(?:[^\W\d]|[0-9.*+!?$%&=<>:#'-])"
_REST: Final = rf"{_IN_NAMES}*(?:/{_IN_NAMES}+)?"
_END: Final = r"""(?=[\s,;()\[\]{}"\\]|\Z)"""
_ATOM: Final = re.compile(
    rf"""(?: \\(?P<character>newline|return|space|tab|formfeed|u[0-9a-fA-F]{{4}}|[^\s,])
      | (?P<number>[+-]?[0-9]+(?:N|(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?M?))
      | (?P<keyword>:(?![:/]){_IN_NAMES}{_REST})
      | (?P<symbol>/|(?:[^\W\d]|[*!?$%&=<>]|[+.-](?![0-9])){_REST})
    ){_END}""",
    re.VERBOSE,
)
_TAG: Final = re.compile(rf"#[^\W\d_]{_REST}{_END}")
_TIME: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T)([0-9]{1,2})(:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
    r"(?:Z|[+-][0-9]{2}:[0-9]{2}))"
)
_STRING: Final = re.compile(
    r'"((?:[^"\\]|\\(?:[bfnrt\\/"]|u[0-9a-fA-F]{4}))*)"',
)
_ESCAPES: Final = {"t": "\t", "r": "\r", "n": "\n", "\\": "\\", '"': '"', "b": "\b", "f": "\f"}
_CHARACTERS: Final = {"newline": "\n", "return": "\r", "space": " ", "tab": "\t", "formfeed": "\f"}
_INTEGER: Final = re.compile(r"([+-]?)(0|[1-9][0-9]*)(N?)")
_FLOAT: Final = re.compile(r"([+-]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)M?")
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
    blank = re.compile(r"(?:[\s,]+|;[^\n]*)+")
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
        match = _TAG.match(self._text, self._at)
        if match is None:
            raise self._fault("a tag has no name")
        self._at = match.end()
        value = self.value(depth + 1)
        if value is self.NOTHING:
            raise self._fault("a tag has no value")
        if match[0] != "#inst":
            return f"{match[0]} {shown(value)}"
        if (written := _TIME.fullmatch(str(value))) is None:
            raise self._fault("#inst needs a time such as 2006-01-02T15:04:05Z")
        try:
            whole = f"{written[1]}{written[2]:0>2}{written[3]}"
            return _moment(dt.datetime.fromisoformat(whole))
        except ValueError as error:
            raise self._fault(str(error)) from None

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
            raise self._fault("a text is not closed, or has an unknown escape")
        self._at = match.end()
        return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", _unescaped, match[1], flags=re.DOTALL)

    def _atom(self) -> Any:
        if (match := _ATOM.match(self._text, self._at)) is None:
            wrong = re.split(r"[\s,]", self._text[self._at : self._at + 40])[0]
            raise self._fault(f"no value: {wrong}")
        self._at = match.end()
        word, character = match[0], match["character"]
        if character:
            if character[0] == "u" and len(character) > 1:
                return str(int(character[1:], 16))
            return str(ord(_CHARACTERS.get(character, character)))
        if match["number"]:
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
