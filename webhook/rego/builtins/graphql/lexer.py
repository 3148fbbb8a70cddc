"""GraphQL's tokens as gqlparser reads them, with the positions that its errors name.

``graphql-core``'s lexer counts columns differently within strings, and drops the
comments that are part of OPA's trees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.golang.strings import quote
from webhook.values import dataclass

NAME: Final = "Name"
INT: Final = "Int"
FLOAT: Final = "Float"
STRING: Final = "String"
BLOCK_STRING: Final = "BlockString"
COMMENT: Final = "Comment"
END: Final = "<EOF>"
INVALID: Final = "<Invalid>"

_PUNCTUATION: Final = re.compile(r"\.\.\.|[!$&():=@\[\]{}|]")
_NAME: Final = re.compile(r"[_A-Za-z][_0-9A-Za-z]*")
_NUMBER: Final = re.compile(r"-?(?:0(?![0-9])|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![.eE])")
_COMMENT: Final = re.compile(r"#[^\x00-\x08\x0a-\x1f]*")
_SPACE: Final = re.compile("[\t ,\ufeff]+")
_STRING_PART: Final = re.compile(r'[^"\\\x00-\x08\x0a-\x1f]+')
_BLOCK_PART: Final = re.compile(r'[^"\\\x00-\x08\x0b\x0c\x0e-\x1f\r\n]+')
_UNICODE_ESCAPE: Final = re.compile(
    r"\\u(?:\{([0-9a-fA-F]{1,8})\}|([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
    r"|([0-9a-fA-F]{4}))"
)
"""Of any character in braces, of a pair of surrogates, and of four digits."""

_ESCAPES: Final = {
    '"': '"',
    "/": "/",
    "\\": "\\",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
}


@dataclass(frozen=True, slots=True)
class Token:
    """A token: its kind, its text if the kind does not imply it, and its place."""

    kind: str
    value: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.kind} {quote(self.value)}" if self.value else self.kind


class Lexer:
    """Reads one source from its beginning to its first fault."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._line = 1
        self._line_start = 0

    def tokens(self) -> Iterator[Token]:
        """Yields every token; the last one is of kind END or INVALID."""
        while True:
            token = self._next()
            yield token
            if token.kind in (END, INVALID):
                return

    def _token(self, kind: str, value: str, start: int) -> Token:
        return Token(kind, value, self._line, start - self._line_start + 1)

    def _invalid(self, at: int) -> Token:
        return self._token(INVALID, "", at)

    def _next(self) -> Token:
        self._skip_space()
        source, start = self._source, self._at
        if start == len(source):
            return self._token(END, "", start)
        if matched := _PUNCTUATION.match(source, start):
            self._at = matched.end()
            return self._token(matched[0], "", start)
        for kind, pattern in ((NAME, _NAME), (COMMENT, _COMMENT)):
            if matched := pattern.match(source, start):
                self._at = matched.end()
                return self._token(kind, matched[0], start)
        if source.startswith('"""', start):
            return self._block_string()
        if source[start] == '"':
            return self._string()
        if matched := _NUMBER.match(source, start):
            self._at = matched.end()
            kind = FLOAT if matched[1] or matched[2] else INT
            return self._token(kind, matched[0], start)
        return self._invalid(start)

    def _skip_space(self) -> None:
        source = self._source
        while self._at < len(source):
            if matched := _SPACE.match(source, self._at):
                self._at = matched.end()
            elif source[self._at] in "\r\n":
                self._new_line()
            else:
                return

    def _new_line(self) -> None:
        """Skips a line end. After a CRLF gqlparser's columns are 1 too high."""
        at = self._at
        self._line += 1
        self._line_start = at + 1
        self._at = at + (2 if self._source.startswith("\r\n", at) else 1)

    def _string(self) -> Token:
        source, start = self._source, self._at + 1
        at, parts = start, []
        while at < len(source):
            if matched := _STRING_PART.match(source, at):
                parts.append(matched[0])
                at = matched.end()
            elif source[at] == '"':
                self._at = at + 1
                return self._token(STRING, "".join(parts), start)
            elif source[at] != "\\":
                break
            else:
                escaped = source[at + 1 : at + 2]
                if escaped in _ESCAPES:
                    parts.append(_ESCAPES[escaped])
                    at += 2
                    continue
                matched = _UNICODE_ESCAPE.match(source, at)
                character = None if matched is None else _character(matched)
                if matched is None or character is None:
                    return self._invalid(at + 1)
                parts.append(character)
                at = matched.end()
        return self._invalid(at)

    def _block_string(self) -> Token:
        source, start = self._source, self._at + 3
        self._at, parts = start, []
        while self._at < len(source):
            at = self._at
            if matched := _BLOCK_PART.match(source, at):
                parts.append(matched[0])
                self._at = matched.end()
            elif source[at] == '"':
                count = len(source) - at - len(source[at:].lstrip('"'))
                if count >= 3:
                    self._at = at + count
                    value = block_value("".join(parts) + '"' * (count - 3))
                    return self._token(BLOCK_STRING, value, start)
                parts.append('"')
                self._at += 1
            elif source.startswith('\\"""', at):
                parts.append('"""')
                self._at += 4
            elif source[at] == "\\":
                parts.append("\\")
                self._at += 1
            elif source[at] in "\r\n":
                self._block_new_line()
                parts.append("\n")
            else:
                return self._invalid(at)
        return self._invalid(self._at)

    def _block_new_line(self) -> None:
        self._at += 2 if self._source.startswith("\r\n", self._at) else 1
        self._line += 1
        self._line_start = self._at


def _character(escape: re.Match[str]) -> str | None:
    """Returns the character of an escape; None where the braces hold no character."""
    braced, leading, trailing, digits = escape.groups()
    if leading:
        return chr(0x10000 + (int(leading, 16) - 0xD800) * 0x400 + int(trailing, 16) - 0xDC00)
    number = int(braced or digits, 16)
    is_character = number < 0xD800 or 0xE000 <= number < 0x110000
    if is_character:
        return chr(number)
    return None if braced else "\ufffd"


def block_value(raw: str) -> str:
    """Returns a block string without its common indentation (GraphQL, 2.9.4)."""
    lines = raw.split("\n")
    indents = [_indent(line) for line in lines[1:] if line.strip(" \t")]
    # gqlparser counts the first line too.
    if lines[0].strip(" \t"):
        indents.append(_indent(lines[0]))
    common = min(indents, default=0)
    lines[1:] = [line[common:] for line in lines[1:]]
    while lines and not lines[0].strip(" \t"):
        del lines[0]
    while lines and not lines[-1].strip(" \t"):
        del lines[-1]
    return "\n".join(lines)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))
