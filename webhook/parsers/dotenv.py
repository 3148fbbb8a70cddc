"""Parses ``.env`` files like gotenv: an object of texts.

Variables of the environment and of the file itself are substituted.
"""

from __future__ import annotations

import os
import re
from typing import Any, Final

from webhook.parsers.errors import Expansion, ParseError

_LINE: Final = re.compile(
    r"\A\s*(?:export\s+)?([\w.]+)(?:\s*=\s*|:\s+?)"
    # A quoted text may contain the same quotes: escapes have no meaning here.
    r"('(?s:.*)'|\"(?s:.*)\"|[^#\n]+)?\s*(?:\s*\#.*)?\Z",
    re.ASCII,
)
_UNESCAPED: Final = re.compile(r"\\([^$])")
_VARIABLE: Final = re.compile(r"(\\)?(\$)(\{?([A-Z0-9_]+)?\}?)")
_NAME: Final = re.compile(r"\$\{?([A-Z0-9_]+)\}?")


def parse(raw: bytes, path: str = "") -> Any:
    """Returns ``{name: value}``."""
    del path
    lines = re.split(r"\r\n|\n|\r", _decoded(raw))
    variables: dict[str, str] = {}
    expansion = Expansion()
    at = 0
    while at < len(lines):
        begun = at + 1
        line = lines[at].strip()
        at += 1
        if not line or line[0] == "#":
            continue
        quote = _open_quote(line)
        spread = [line]
        while quote:
            if at >= len(lines):
                raise ParseError("read .env file: missing quotes", begun)
            following = lines[at]
            at += 1
            spread.append(following)
            end = following.rfind(quote)
            if end == 0 or (end > 0 and following[end - 1] != "\\"):
                quote = ""
        _read("\n".join(spread), variables, begun, expansion)
    return variables


def _decoded(raw: bytes) -> str:
    for mark, encoding in (
        (b"\xef\xbb\xbf", "utf-8"),
        (b"\xff\xfe", "utf-16-le"),
        (b"\xfe\xff", "utf-16-be"),
    ):
        if raw.startswith(mark):
            return raw[len(mark) :].decode(encoding, "replace")
    return raw.decode("utf-8", "replace")


def _open_quote(line: str) -> str:
    """Returns the quote that a line opens but does not close; or ""."""
    at = line.find("=")
    if at < 0:
        at = line.find(":")
    if not 0 < at < len(line) - 1:
        return ""
    value = line[at + 1 :].strip()
    if not value or value[0] not in "\"'":
        return ""
    end = value[1:].strip().rfind(value[0])
    return "" if end >= 0 and value[end] != "\\" else value[0]


def _read(line: str, variables: dict[str, str], number: int, expansion: Expansion) -> None:
    match = _LINE.match(line)
    if match is None:
        raise ParseError(f"read .env file: line `{line}` doesn't match format", number)
    name, value = match[1].strip(), (match[2] or "").strip()
    double = len(value) >= 2 and value[0] == '"' == value[-1]
    single = len(value) >= 2 and value[0] == "'" == value[-1]
    if double or single:
        value = value[1:-1]
    if double:
        value = _UNESCAPED.sub(r"\1", value.replace("\\n", "\n").replace("\\r", "\r"))
    if not single:
        value = _VARIABLE.sub(lambda variable: _filled(variable[0], variables, expansion), value)
    variables[name] = value


def _filled(text: str, variables: dict[str, str], expansion: Expansion) -> str:
    if text.startswith("\\"):
        return text[1:]
    match = _NAME.match(text)
    if match is None:
        return text
    name = match[1]
    filled = os.environ[name] if name in os.environ else variables.get(name, "")
    expansion.charge(len(filled))
    return filled
