"""Parses HOCON like conftest's library of go-akka: objects of numbers, booleans and texts.

An array is its text (``[a,b]``), and a text with blanks is in quotes.
"""

from __future__ import annotations

import os
import re
from dataclasses import field
from typing import Any, Final

from webhook.parsers.errors import RECURSIVE_DEPTH_MAX, Expansion, ParseError, TextReader, line_at
from webhook.parsers.numbers import typed
from webhook.values import dataclass

_UNQUOTED: Final = re.compile(r"(?:(?!//)[^$\"{}\[\]:=+,#`^?!@*&\\\s])+")
_KEY: Final = re.compile(r"(?:(?!//)[^$\"{}\[\]:=+,#`^?!@*&\\.\n])+")
_SUBSTITUTION: Final = re.compile(r"\$\{(\??)([^}\n]*)\}")
_ESCAPES: Final = {
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    '"': '"',
    "\\": "\\",
    "/": "/",
}


@dataclass(slots=True)
class _Reference:
    """A reference: ``${path}``."""

    path: str
    optional: bool
    at: int
    """The position; the line is only counted for a fault."""


@dataclass(slots=True)
class _Value:
    """The value at a key: texts, arrays and references in sequence, or an object."""

    parts: list[Any] = field(default_factory=list)
    items: dict[str, _Value] | None = None
    before: _Value | None = None


def parse(raw: bytes, path: str = "") -> Any:
    """Returns ``{key: {key: value}}``."""
    del path
    text = raw.decode("utf-8", "replace").removeprefix("\ufeff")
    root = _Reader(text).read()
    return _Shown(root, text).object(root.items or {}, 0)


class _Reader(TextReader):
    action = "parse hocon"
    blank = re.compile(r"(?:\s+|(?:#|//)[^\n]*)+")

    def read(self) -> _Value:
        """Returns the object of a file, with or without braces."""
        root = _Value(items={})
        self._skip()
        braces = self._sees("{")
        self._at += braces
        self._object(root, 0, closed=braces)
        self._skip()
        if self._at < len(self._text):
            raise self._fault("unknown token")
        return root

    def _sees(self, token: str) -> bool:
        return self._text.startswith(token, self._at)

    def _object(self, owner: _Value, depth: int, *, closed: bool) -> None:
        if depth > RECURSIVE_DEPTH_MAX:
            raise self._fault("nested too deeply")
        if owner.items is None:
            owner.items, owner.parts = {}, []
        while True:
            self._skip()
            while self._sees(","):
                self._at += 1
                self._skip()
            if self._at >= len(self._text):
                if closed:
                    raise self._fault("unexpected end of file: an object is not closed")
                return
            if self._sees("}") and closed:
                self._at += 1
                return
            self._item(owner, depth)

    def _item(self, owner: _Value, depth: int) -> None:
        steps = [self._key()]
        while self._sees("."):
            self._at += 1
            steps.append(self._key())
        value = owner
        for step in steps[:-1]:
            if value.items is None:
                value.items, value.parts = {}, []
            value = value.items.setdefault(step, _Value())
        if value.items is None:
            value.items, value.parts = {}, []
        entry = value.items.setdefault(steps[-1], _Value())
        self._skip()
        if self._sees("{"):
            self._at += 1
            self._object(entry, depth + 1, closed=True)
            return
        adds = self._sees("+=")
        if not adds and not self._sees("=") and not self._sees(":"):
            raise self._fault("expected an assignment")
        self._at += 1 + adds
        before = _Value(entry.parts, entry.items, entry.before)
        entry.before = before
        if not adds:
            entry.parts = []
        self._value(entry, depth)
        if entry.parts:
            entry.items = None

    def _key(self) -> str:
        self._skip()
        if self._sees('"'):
            return self._quoted()
        match = _KEY.match(self._text, self._at)
        if match is None or not match[0].strip():
            raise self._fault("unknown token")
        self._at = match.end()
        return match[0].strip()

    def _value(self, owner: _Value, depth: int) -> None:
        """Reads parts up to the end of the line, a comma or a bracket."""
        self._skip()
        any_read = False
        while True:
            if self._sees("{"):
                self._at += 1
                self._object(owner, depth + 1, closed=True)
            elif self._sees("["):
                owner.parts.append(self._array(depth + 1))
            elif self._sees('"""'):
                end = self._text.find('"""', self._at + 3)
                if end < 0:
                    raise self._fault("a text is not closed")
                owner.parts.append(self._text[self._at + 3 : end])
                self._at = end + 3
            elif self._sees('"'):
                owner.parts.append(self._quoted())
            elif self._sees("${"):
                match = _SUBSTITUTION.match(self._text, self._at)
                if match is None:
                    raise self._fault("a substitution is not closed")
                owner.parts.append(_Reference(match[2].strip(), bool(match[1]), self._at))
                self._at = match.end()
            elif match := _UNQUOTED.match(self._text, self._at):
                owner.parts.append(match[0])
                self._at = match.end()
            elif not any_read:
                raise self._fault("Expected value")
            else:
                return
            any_read = True
            blanks = re.compile(r"[ \t]+").match(self._text, self._at)
            if blanks:
                self._at = blanks.end()
                if owner.parts and self._goes_on():
                    owner.parts.append(blanks[0])

    def _goes_on(self) -> bool:
        return any(map(self._sees, ('"', "${", "["))) or bool(_UNQUOTED.match(self._text, self._at))

    def _array(self, depth: int) -> list[_Value]:
        if depth > RECURSIVE_DEPTH_MAX:
            raise self._fault("nested too deeply")
        self._at += 1
        items: list[_Value] = []
        while True:
            self._skip()
            while self._sees(","):
                self._at += 1
                self._skip()
            if self._at >= len(self._text):
                raise self._fault("unexpected end of file: an array is not closed")
            if self._sees("]"):
                self._at += 1
                return items
            value = _Value()
            self._value(value, depth)
            items.append(value)

    def _quoted(self) -> str:
        self._at += 1
        kept: list[str] = []
        while not self._sees('"'):
            if self._at >= len(self._text):
                raise self._fault("a text is not closed")
            character = self._text[self._at]
            if character == "\\":
                letter = self._text[self._at + 1 : self._at + 2]
                if letter == "u":
                    character = "\\u" + self._text[self._at + 2 : self._at + 6].lower()
                    self._at += 4
                elif letter in _ESCAPES:
                    character = _ESCAPES[letter]
                else:
                    raise self._fault(f"unknown escape code: {letter}")
                self._at += 1
            kept.append(character)
            self._at += 1
        self._at += 1
        return "".join(kept)


_UNKNOWN: Final = "<<unknown value>>"
"""The text that go-akka writes for an optional reference without a value."""


class _Shown:
    """Converts values to JSON, with their references resolved."""

    def __init__(self, root: _Value, text: str) -> None:
        self._root = root
        self._written = text
        self._expansion = Expansion()

    def object(self, items: dict[str, _Value], depth: int) -> dict[str, Any]:
        """Returns an object as a JSON value."""
        return {name: self._value(value, depth + 1) for name, value in items.items()}

    def _value(self, value: _Value, depth: int) -> Any:
        value = self._resolved(value, depth)
        if value.items is not None:
            return self.object(value.items, depth)
        return typed(self._text(value, depth))

    def _resolved(self, value: _Value, depth: int) -> _Value:
        """Returns the referenced value if the value is a single reference."""
        if depth > RECURSIVE_DEPTH_MAX:
            raise ParseError("parse hocon: cycle reference")
        if value.items is None and len(value.parts) == 1 and isinstance(value.parts[0], _Reference):
            target = self._find(value.parts[0], value)
            if target is None:
                before = value.before
                if before is None or (before.items is None and not before.parts):
                    return _Value(parts=[_UNKNOWN])
                return self._resolved(before, depth + 1)
            return self._resolved(target, depth + 1)
        return value

    def _find(self, reference: _Reference, of: _Value) -> _Value | None:
        self._expansion.charge(0)
        value: _Value | None = self._root
        for step in re.findall(r'"[^"]*"|[^."]+', reference.path):
            items = value.items if value is not None else None
            value = items.get(step.strip('"')) if items else None
        if value is of:
            return of.before
        if value is not None:
            return value
        if reference.path in os.environ:
            return _Value(parts=[os.environ[reference.path]])
        if not reference.optional:
            raise ParseError(
                f"parse hocon: Unresolved substitution:{reference.path}",
                line_at(self._written, reference.at),
            )
        return None

    def _text(self, value: _Value, depth: int) -> str:
        if depth > RECURSIVE_DEPTH_MAX:
            raise ParseError("parse hocon: cycle reference")
        arrays: list[str] = []
        texts: list[str] = []
        for part in value.parts:
            if isinstance(part, list):
                arrays += [self._element(item, depth + 1) for item in part]
            elif isinstance(part, _Reference):
                target = self._find(part, value)
                if target is None:
                    return _UNKNOWN  # one unresolved part makes the whole unknown
                resolved = self._resolved(target, depth + 1)
                if any(isinstance(piece, list) for piece in resolved.parts):
                    arrays += [self._text(resolved, depth + 1)[1:-1]]
                    self._expansion.charge(len(arrays[-1]))
                else:
                    texts.append(self._plain(resolved, depth + 1))
                    self._expansion.charge(len(texts[-1]))
            else:
                texts.append(part)
        if arrays or any(isinstance(part, list) for part in value.parts):
            return f"[{','.join(arrays)}]"
        text = "".join(texts).strip()
        if text == _UNKNOWN:
            return text
        if text == "null":
            text = ""
        if not text:
            return '""'
        return f'"{text}"' if " " in text or "\t" in text else text

    def _plain(self, value: _Value, depth: int) -> str:
        shown = self._text(value, depth)
        return shown[1:-1] if shown.startswith('"') and shown.endswith('"') else shown

    def _element(self, value: _Value, depth: int) -> str:
        resolved = self._resolved(value, depth)
        if resolved.items is None:
            return self._text(resolved, depth)
        blanks = "  " * (depth + 1)
        inner = "".join(
            f"{blanks}{name} : {self._element(item, depth + 1)}\r\n"
            for name, item in resolved.items.items()
        )
        return f"{{\r\n{inner}{'  ' * depth}}}"
