"""Parses HCL version 1: every object in an array, together with others of its name."""

from __future__ import annotations

import re
from typing import Any, Final

from webhook.parsers import numbers
from webhook.parsers.errors import RECURSIVE_DEPTH_MAX, TextReader

_COMMENT: Final = re.compile(r"/\*.*?\*/|(?:#|//)[^\n]*", re.DOTALL)
_WORD: Final = re.compile(r"[^\W\d][\w.-]*")
_NUMBER: Final = re.compile(
    r"-?(?:0[xX][0-9a-fA-F]+|(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
)
_HEREDOC: Final = re.compile(r"<<(-?)([^\s]+)\r?\n")
_CODE: Final = re.compile(
    r"u([0-9a-fA-F]{4})|U(000[0-9a-fA-F]{5}|0010[0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([0-3][0-7]{2})"
)
_ESCAPES: Final = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    '"': '"',
    "\\": "\\",
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "v": "\v",
}


def parse(raw: bytes, path: str = "") -> Any:
    """Returns ``{kind: [{label: [{attribute: value}]}]}``."""
    del path
    return _Reader(raw.decode("utf-8", "replace").removeprefix("\ufeff")).read()


class _Reader(TextReader):
    action = "unmarshal hcl"
    blank = re.compile(r"(?:\s+|,|/\*.*?\*/|(?:#|//)[^\n]*)+", re.DOTALL)

    def read(self) -> dict[str, Any]:
        """Returns the items of a file, which may be a single JSON object."""
        self._skip()
        if self._text.startswith("{", self._at):
            self._at += 1
            items = self._items(0, "}")
        else:
            items = self._items(0, "")
        self._skip()
        if self._at < len(self._text):
            raise self._fault("object expected closing RBRACE got: EOF")
        return items

    def _items(self, depth: int, end: str) -> dict[str, Any]:
        if depth > RECURSIVE_DEPTH_MAX:
            raise self._fault("nested too deeply")
        items: dict[str, Any] = {}
        while True:
            self._skip()
            if self._at >= len(self._text):
                if end:
                    raise self._fault("object expected closing RBRACE got: EOF")
                return items
            if end and self._text.startswith(end, self._at):
                self._at += 1
                return items
            self._item(items, depth)

    def _item(self, items: dict[str, Any], depth: int) -> None:
        names = [self._key()]
        while True:
            self._skip()
            if self._text[self._at : self._at + 1] in {"=", ":"}:
                if len(names) > 1:
                    raise self._fault("nested object expected: LBRACE got: ASSIGN")
                self._at += 1
                value = self._value(depth)
                break
            if self._text.startswith("{", self._at):
                self._at += 1
                value = [self._items(depth + 1, "}")]
                break
            names.append(self._key())
        for name in reversed(names[1:]):
            value = [{name: value}]
        known = items.get(names[0])
        both = isinstance(known, list) and isinstance(value, list)
        items[names[0]] = [*known, *value] if both and known is not None else value

    def _key(self) -> str:
        if self._text.startswith('"', self._at):
            return self._string()
        match = _WORD.match(self._text, self._at)
        if match is None:
            raise self._fault("key expected")
        self._at = match.end()
        return match[0]

    def _value(self, depth: int, *, in_list: bool = False) -> Any:
        if depth > RECURSIVE_DEPTH_MAX:
            raise self._fault("nested too deeply")
        self._skip()
        text, at = self._text, self._at
        if text.startswith('"', at):
            return self._string()
        if text.startswith("<<", at):
            return self._heredoc()
        if text.startswith("{", at):
            self._at += 1
            items = self._items(depth + 1, "}")
            return items if in_list else [items]
        if text.startswith("[", at):
            return self._list(depth)
        if match := _NUMBER.match(text, at):
            self._at = match.end()
            plain = match[0].lstrip("-")
            if any(mark in plain for mark in ".eE") and plain[:2].lower() != "0x":
                return numbers.number(float(match[0]))
            base = (
                16
                if plain[:2].lower() == "0x"
                else 8
                if plain.startswith("0") and len(plain) > 1
                else 10
            )
            try:
                whole = int(plain, base)
            except ValueError:
                raise self._fault(f"illegal number {match[0]}") from None
            return -whole if match[0].startswith("-") else whole
        match = _WORD.match(text, at)
        if match is None or match[0] not in {"true", "false"}:
            raise self._fault(f"unknown token: {match[0] if match else text[at : at + 1]!r}")
        self._at = match.end()
        return match[0] == "true"

    def _list(self, depth: int) -> list[Any]:
        self._at += 1
        items: list[Any] = []
        while True:
            begun = self._at
            self._skip()
            # HashiCorp's parser requires no comma after a list.
            lacks_comma = bool(items) and type(items[-1]) is not list
            lacks_comma = lacks_comma and "," not in _COMMENT.sub("", self._text[begun : self._at])
            if self._at >= len(self._text):
                raise self._fault("error parsing list, expected comma or list end, got: EOF")
            if self._text.startswith("]", self._at):
                self._at += 1
                return items
            if lacks_comma:
                raise self._fault("error parsing list, expected comma or list end")
            items.append(self._value(depth + 1, in_list=True))

    def _string(self) -> str:
        """Reads a text in quotes; text within ``${…}`` stays unchanged."""
        self._at += 1
        kept: list[str] = []
        braces = 0
        while True:
            if self._at >= len(self._text):
                raise self._fault("literal not terminated")
            character = self._text[self._at]
            if self._text.startswith("${", self._at):
                braces += 1
                kept.append("${")
                self._at += 2
                continue
            if braces:
                braces += {"{": 1, "}": -1}.get(character, 0)
            elif character == '"':
                self._at += 1
                return "".join(kept)
            elif character == "\n":
                raise self._fault("literal not terminated")
            elif character == "\\":
                self._at += 1
                letter = self._text[self._at : self._at + 1]
                if digits := _CODE.match(self._text, self._at):
                    code = int(digits[digits.lastindex or 0], 8 if digits[4] else 16)
                    # A lone surrogate, or a byte that is no character.
                    lone = 0xD800 <= code < 0xE000 or (code > 127 and digits.lastindex in {3, 4})
                    character = "\ufffd" if lone else chr(code)
                    self._at = digits.end() - 1
                elif letter in _ESCAPES:
                    character = _ESCAPES[letter]
                else:
                    raise self._fault("illegal char escape")
            kept.append(character)
            self._at += 1

    def _heredoc(self) -> str:
        match = _HEREDOC.match(self._text, self._at)
        if match is None:
            raise self._fault("invalid heredoc anchor")
        end = re.compile(rf"^([ \t]*){re.escape(match[2])}[ \t]*\r?$", re.MULTILINE).search(
            self._text, match.end()
        )
        if end is None:
            raise self._fault("heredoc not terminated")
        content = self._text[match.end() : end.start()]
        self._at = end.end()
        lines = content.split("\n")
        # The indent of the end marker is removed if all lines have it; otherwise none is.
        if not match[1]:
            return content + end[1]
        if not all(line.startswith(end[1]) for line in lines[:-1]):
            return content
        return "\n".join(line.removeprefix(end[1]) for line in lines)
