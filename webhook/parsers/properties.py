"""Parses Java's ``.properties``.

An object of texts; references such as ``${name}`` stay as written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from webhook.parsers.errors import ParseError, line_at

_ESCAPES: Final = {"f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_SPACE: Final = " \f\t"


def parse(raw: bytes, path: str = "") -> Any:
    """Returns ``{key: value}``."""
    del path
    text = raw.decode("utf-8", "replace")
    properties: dict[str, str] = {}
    references: dict[str, list[str]] = {}
    at = 0
    while at < len(text):
        if text[at] in f"{_SPACE}\r\n":
            at += 1
        elif text[at] in "#!":
            at = _line_end(text, at)
        else:
            begun = at
            name, at = _piece(text, at, f"{_SPACE}\r\n:=")
            if not name:
                raise _fault("a value without a key", text, begun)
            at = _delimiter(text, at)
            begun = at
            properties[name], at = _piece(text, at, "\r\n")
            references[name] = _references(properties[name], text, begun)
    _check_circles(references, text)
    return properties


def _line_end(text: str, at: int) -> int:
    while at < len(text) and text[at] not in "\r\n":
        at += 1
    return at


def _delimiter(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    if text[at : at + 1] in {":", "="}:
        at += 1
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _piece(text: str, at: int, ends: str) -> tuple[str, int]:
    """Reads and unescapes text up to one of the ends; returns the text and its end."""
    kept: list[str] = []
    while at < len(text) and text[at] not in ends:
        if text[at] != "\\":
            kept.append(text[at])
            at += 1
            continue
        following = text[at + 1 : at + 2]
        if not following:
            raise _fault("premature EOF", text, at)
        at += 2
        if following in "\r\n" and ends == "\r\n":
            if following == "\r" and text[at : at + 1] == "\n":
                at += 1
            while at < len(text) and text[at] in _SPACE:
                at += 1
        elif following == "u":
            digits = text[at : at + 4]
            if not re.fullmatch(r"[0-9a-fA-F]{4}", digits):
                raise _fault("invalid unicode literal", text, at)
            kept.append(chr(int(digits, 16)))
            at += 4
        else:
            kept.append(_ESCAPES.get(following, following))
    return "".join(kept), at


def _references(value: str, text: str, at: int) -> list[str]:
    """Returns the names that a value refers to."""
    names = []
    start = value.find("${")
    while start >= 0:
        end = value.find("}", start)
        if end < 0:
            raise _fault("malformed expression", text, at)
        names.append(value[start + 2 : end])
        start = value.find("${", end)
    return names


def _check_circles(references: Mapping[str, list[str]], text: str) -> None:
    """Refuses values that refer to themselves, directly or not."""
    done: set[str] = set()
    for begin in references:
        path = {begin: iter(references[begin])}
        while path:
            name = next(reversed(path))
            below = next(path[name], None)
            if below is None:
                del path[name]
                done.add(name)
            elif below in path:
                raise _fault(f"circular reference in {below}", text, text.find(below))
            elif below not in done and below in references:
                path[below] = iter(references[below])


def _fault(message: str, text: str, at: int) -> ParseError:
    return ParseError(f"parse properties file: {message}", line_at(text, at))
