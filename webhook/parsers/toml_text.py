"""Parses TOML: integers exact, times as text."""

from __future__ import annotations

import datetime as dt
import re
import tomllib
from ast import literal_eval
from typing import Any, Final

from webhook.api.shapes import DEPTH_MAX
from webhook.parsers.errors import ParseError, line_at

_PLACE: Final = re.compile(r" \(at line (\d+), column \d+\)\Z| \(at end of document\)\Z")

_PATH: Final = re.compile(r"\((?:'[^']*'|\"[^\"]*\")(?:, (?:'[^']*'|\"[^\"]*\"))*,?\)")
"""A name of several parts in a message of the library, which writes a tuple."""

_LONG_NAME: Final = re.compile(
    rf"^[ \t\[]*(?:(?:[\w-]+|\"[^\"\n]*\"|'[^'\n]*')[ \t]*\.[ \t]*){{{DEPTH_MAX}}}", re.MULTILINE
)
"""A name with more parts than the nesting limit: the library stores each prefix of it."""


def parse(raw: bytes, path: str = "") -> Any:
    """Returns the table of a TOML text."""
    del path
    text = raw.decode("utf-8", "replace")
    if (long := _LONG_NAME.search(text)) is not None:
        raise ParseError("unmarshal toml: nested too deeply", line_at(text, long.start()))
    try:
        return _value(_loaded(text))
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        line = int(place[1]) if place and place[1] else text.count("\n") + 1
        message = _PATH.sub(lambda path: ".".join(literal_eval(path[0])), str(error))
        message = _PLACE.sub("", message)
        raise ParseError(f"unmarshal toml: {message}", line) from None
    except RecursionError:
        raise ParseError("unmarshal toml: nested too deeply") from None
    except ValueError:  # Python's int() is limited to 4,300 digits
        raise ParseError("unmarshal toml: a number is out of range for int64") from None


def _loaded(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        older = _as_older(text)
        if older == text:
            raise
        try:
            return tomllib.loads(older)
        except tomllib.TOMLDecodeError:
            pass
        raise


_TOKEN: Final = re.compile(
    r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*+(?:"{3,5}|\\?\Z)|"(?:[^"\\\n]|\\[^\n])*+"?'
    r"|'''(?:[^']|'{1,2}(?!'))*+(?:'{3,5}|\Z)|'[^'\n]*+'?|#[^\n]*|[\[\]{},\n]|[^\"'#\[\]{},\n]+",
    re.DOTALL,
)
"""An unclosed text extends to the end: otherwise each quote in it would be searched again."""
_ESCAPE: Final = re.compile(r"\\(?:(e)|x([0-9A-Fa-f]{2})|.)", re.DOTALL)
_SHORT_CLOCK: Final = re.compile(r"(?<![\d:.+-])(\d\d:\d\d)(?![\d:])")
_LAST_COMMA: Final = re.compile(r"(?:\s|#[^\n]*)*+\}")


def _as_older(text: str) -> str:
    """Rewrites TOML 1.1 as 1.0 for Python's library.

    Short escapes and times are written out; inline tables become one line without a last comma.
    """
    open_: list[str] = []
    before = ""

    def written(match: re.Match[str]) -> str:
        nonlocal before
        piece, last = match[0], before
        before = before if piece.isspace() or piece[0] == "#" else piece
        inline = bool(open_) and open_[-1] == "{"
        if piece[0] == '"':
            return _ESCAPE.sub(_long_escape, piece)
        if piece in ("[", "{"):
            open_.append(piece)
        elif piece in ("]", "}") and open_:
            open_.pop()
        elif inline and (piece == "\n" or piece[0] == "#"):
            return " "
        elif inline and piece == "," and last != "{" and _LAST_COMMA.match(text, match.end()):
            return ""
        return piece if piece[0] in "'#" else _SHORT_CLOCK.sub(r"\1:00", piece)

    return _TOKEN.sub(written, text)


def _long_escape(match: re.Match[str]) -> str:
    if match[1]:
        return "\\u001b"
    return f"\\u00{match[2]}" if match[2] else match[0]


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _value(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_value(inner) for inner in value]
    if type(value) is int and not -(1 << 63) <= value < 1 << 63:
        raise ParseError(f"unmarshal toml: {value} is out of range for int64")
    if isinstance(value, float):
        if value != value or value in {float("inf"), float("-inf")}:  # noqa: PLR0124  # a NaN
            raise ParseError("unmarshal toml: JSON has no such number")
        return int(value) if value.is_integer() and abs(value) < 1_000_000 else value
    if isinstance(value, dt.datetime):
        return _moment(value)
    if isinstance(value, dt.date):
        return f"{value.isoformat()}T00:00:00Z"
    if isinstance(value, dt.time):
        return f"0000-01-01T{_clock(value.isoformat())}Z"
    return value


def _moment(value: dt.datetime) -> str:
    """Returns a time as Go's ``time.Time`` is in JSON; a local one counts as UTC."""
    shown = value.replace(tzinfo=None).isoformat()
    zone = value.isoformat()[len(shown) :]
    return _clock(shown) + ("Z" if zone in {"", "+00:00"} else zone)


def _clock(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
