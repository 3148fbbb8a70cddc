"""Parses INI like go-ini: sections except ``DEFAULT``, with numbers and booleans typed."""

from __future__ import annotations

from typing import Any, Final

from webhook.parsers.errors import ParseError
from webhook.parsers.numbers import typed

_DELIMITERS: Final = "=:"
_DEFAULT: Final = "DEFAULT"
_MARKS: Final = (b"\xef\xbb\xbf", b"\xfe\xff", b"\xff\xfe")


def parse(raw: bytes, path: str = "") -> Any:
    """Returns ``{section: {key: value}}``."""
    del path
    sections: dict[str, dict[str, str]] = {}
    _read(_Lines(_decoded(raw)), sections)
    return {
        name: {key: typed(value) for key, value in values.items()}
        for name, values in sections.items()
        if name != _DEFAULT
    }


def _decoded(raw: bytes) -> str:
    """Returns the text: UTF-8, whatever the byte order mark says, as go-ini reads it."""
    mark = next((mark for mark in _MARKS if raw.startswith(mark)), b"")
    return raw.removeprefix(mark).decode("utf-8", "replace")


class _Lines:
    """Lines with the number of lines read."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self.number = 0

    def __bool__(self) -> bool:
        return self.number < len(self._lines)

    def take(self) -> str:
        self.number += 1
        return self._lines[self.number - 1]


def _read(lines: _Lines, sections: dict[str, dict[str, str]]) -> None:
    section: dict[str, str] = sections.setdefault(_DEFAULT, {})
    count = 1
    while lines:
        line = lines.take().lstrip()
        if not line or line[0] in "#;":
            continue
        if line[0] == "[":
            end = line.rfind("]")
            if end < 0:
                raise _fault(f"unclosed section: {line}", lines)
            if not line[1:end]:
                raise _fault("empty section name", lines)
            section = sections.setdefault(line[1:end], {})
            count = 1
            continue
        name, rest = _name(line, lines)
        if name == "-":
            name = f"#{count}"
            count += 1
        section[name] = _value(rest, lines)


def _fault(message: str, lines: _Lines) -> ParseError:
    return ParseError(f"read ini file: {message.strip()}", lines.number)


def _name(line: str, lines: _Lines) -> tuple[str, str]:
    """Returns a line's key, and the text after the delimiter."""
    quote = ""
    if line[0] == '"':
        quote = '"""' if len(line) > 6 and line.startswith('"""') else '"'
    elif line[0] == "`":
        quote = "`"
    if quote:
        start = len(quote)
        end = line.find(quote, start)
        if end < 0:
            raise _fault(f"missing closing key quote: {line}", lines)
        at = _first(line, end + start)
        if at < 0:
            raise _fault(f"key-value delimiter not found: {line}", lines)
        return line[start:end].strip(), line[at + 1 :]
    at = _first(line, 0)
    if at < 0:
        raise _fault(f"key-value delimiter not found: {line}", lines)
    if not at:
        raise _fault(f"empty key name: {line}", lines)
    return line[:at].strip(), line[at + 1 :]


def _first(line: str, start: int, of: str = _DELIMITERS) -> int:
    places = [line.find(delimiter, start) for delimiter in of]
    return min((place for place in places if place >= 0), default=-1)


def _value(rest: str, lines: _Lines) -> str:
    line = rest.lstrip()
    if not line:
        return ""
    quote = '"""' if line.startswith('"""') and lines else "`" if line[0] == "`" else ""
    if quote:
        start = len(quote)
        end = line.rfind(quote, start)
        return line[start:end] if end >= 0 else _quoted_lines(line[start:], quote, lines)
    line = line.strip()
    if line.endswith("\\"):
        return _continued(line[:-1], lines)
    comment = _first(line, 0, "#;")
    if comment >= 0:
        line = line[:comment].strip()
    for mark in "'\"":
        if len(line) >= 2 and line[0] == mark == line[-1] and line.find(mark, 1) == len(line) - 1:
            return line[1:-1]
    return line


def _quoted_lines(first: str, quote: str, lines: _Lines) -> str:
    pieces = [first, "\n"]
    begun = lines.number
    while lines:
        following = lines.take()
        end = following.rfind(quote)
        if end >= 0:
            return "".join(pieces) + following[:end]
        pieces += [following, "\n"]
    raise ParseError("read ini file: missing closing quote of a value", begun)


def _continued(value: str, lines: _Lines) -> str:
    pieces = [value]
    while lines:
        following = lines.take().strip()
        if not following:
            break
        pieces.append(following.removesuffix("\\"))
        if not following.endswith("\\"):
            break
    return "".join(pieces)
