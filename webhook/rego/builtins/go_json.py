"""JSON parsed like Go's ``encoding/json``: exact numbers and Go's error messages.

Python's own decoder reads the values. Only after a fault, the text is scanned again for OPA's
message.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from webhook.api.names import LONE_SURROGATE
from webhook.rego.errors import BuiltinError
from webhook.rego.run.numbers import number

if TYPE_CHECKING:
    from webhook.rego.run.values import Value

DEPTH_MAX: Final = 10_000
"""The deepest nesting that Go's decoder accepts (encoding/json, maxNestingDepth)."""

_SPACE: Final = " \t\r\n"
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_LITERALS: Final = {"t": "true", "f": "false", "n": "null"}
_STRING_PART: Final = re.compile(r'[^"\\\x00-\x1f]+')


def decode(text: str) -> Value:
    """Returns the value of a JSON text; raises :class:`BuiltinError` with Go's message."""
    try:
        value = _DECODER.decode(text)
    except ValueError as error:  # a number that is too big is no syntax error
        raise BuiltinError(fault(text) or str(error)) from None
    except RecursionError:
        raise BuiltinError("exceeded max depth") from None
    return _replace_surrogates(value) if "\\u" in text else value


def is_valid(text: str) -> bool:
    """Returns whether ``text`` is JSON."""
    try:
        _DECODER.decode(text)
    except ValueError:
        return not fault(text)
    except RecursionError:
        return False
    return True


_WHOLE_MAX: Final = 1e21
_SMALL: Final = 1e-6
"""Go writes a float with an exponent from the first limit on, and below the second."""


def float_number(value: float) -> int | float:
    """Returns a float after a round trip through ``encoding/json``: OPA keeps the text."""
    text = repr(value)
    if value.is_integer() and abs(value) < _WHOLE_MAX:
        return int(Decimal(text))  # the shortest digits, and zeros
    if _SMALL <= abs(value) < _WHOLE_MAX:
        return number(format(Decimal(text), "f"))
    return number(re.sub(r"e([+-])0", r"e\1", text))


def _constant(name: str) -> Any:
    raise ValueError(name)


_DECODER: Final = json.JSONDecoder(parse_int=number, parse_float=number, parse_constant=_constant)


def _replace_surrogates(value: Value) -> Value:
    """Replaces half a surrogate pair in an escape by U+FFFD, as Go does."""
    if isinstance(value, str):
        return LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_replace_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {
            _replace_surrogates(name): _replace_surrogates(item) for name, item in value.items()
        }
    return value


class _Fault(Exception):
    """The text is not valid JSON."""


def fault(text: str) -> str:
    """Returns the complaint of Go's decoder about ``text``; "" if it is JSON."""
    scanner = _Scanner(text)
    try:
        scanner.value()
        scanner.end()
    except _Fault as error:
        return str(error)
    return ""


def unmarshal_fault(text: str) -> str:
    """Returns the complaint of ``json.Unmarshal``, which reads to the end; "" if it is JSON."""
    scanner = _Scanner(text)
    try:
        scanner.value()
        scanner.end(spaces="after top-level value")
    except _Fault as error:
        words = str(error).removeprefix("error: ")
        return "unexpected end of JSON input" if words in {"EOF", "unexpected EOF"} else words
    return ""


class _Scanner:
    """Go's scanner (encoding/json, scanner.go), for its error messages only."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def _peek(self, *, empty: str = "unexpected EOF") -> str:
        while self._at < len(self._text) and self._text[self._at] in _SPACE:
            self._at += 1
        if self._at == len(self._text):
            raise _Fault(empty)
        return self._text[self._at]

    def _fail(self, context: str) -> _Fault:
        if self._at >= len(self._text):
            return _Fault("unexpected EOF")
        # Go names the first byte, as if it were a character of Latin-1.
        byte = chr(self._text[self._at].encode("utf-8", "surrogateescape")[0])
        name = {"'": r"'\''", '"': "'\"'"}.get(byte) or _go_rune(byte)
        return _Fault(f"invalid character {name} {context}")

    def value(self) -> None:
        """Scans one value, without recursion."""
        closers: list[str] = []
        empty = "EOF"
        while True:
            character = self._peek(empty=empty)
            empty = "unexpected EOF"
            if character in "{[":
                self._at += 1
                closer = "}" if character == "{" else "]"
                closers.append(closer)
                if len(closers) > DEPTH_MAX:
                    raise _Fault("exceeded max depth")
                if self._peek() != closer:
                    if closer == "}":
                        self._key()
                    continue
            else:
                self._scalar(character)
                if not closers:
                    return
            while closers:
                if self._after(closers[-1]):
                    break
                closers.pop()
            if not closers:
                return

    def _after(self, closer: str) -> bool:
        """Scans the text after an element; returns whether another element follows."""
        character = self._peek()
        if character == closer:
            self._at += 1
            return False
        if character != ",":
            place = "object key:value pair" if closer == "}" else "array element"
            raise self._fail(f"after {place}")
        self._at += 1
        if closer == "}":
            self._peek()
            self._key()
        return True

    def _key(self) -> None:
        if self._text[self._at] != '"':
            raise self._fail("looking for beginning of object key string")
        self._string()
        if self._peek() != ":":
            raise self._fail("after object key")
        self._at += 1

    def _scalar(self, character: str) -> None:
        if character == '"':
            self._string()
        elif character in _LITERALS:
            self._literal(_LITERALS[character])
        elif character == "-" or "0" <= character <= "9":
            self._number()
        else:
            raise self._fail("looking for beginning of value")

    def _literal(self, name: str) -> None:
        for expected in name:
            if self._text[self._at : self._at + 1] != expected:
                raise self._fail(
                    f"in literal {name} (expecting {_go_rune(expected)})",
                )
            self._at += 1

    def _number(self) -> None:
        matched = _NUMBER.match(self._text, self._at)
        if matched is None:
            self._at += 1
            raise self._fail("in numeric literal")
        self._at = matched.end()
        rest = self._text[self._at : self._at + 1]
        if rest == "." and "." not in matched[0] and "e" not in matched[0].lower():
            self._at += 1
            raise self._fail("after decimal point in numeric literal")
        if rest and rest in "eE" and "e" not in matched[0].lower():
            self._at += 1
            if self._text[self._at : self._at + 1] in ("+", "-"):
                self._at += 1
            raise self._fail("in exponent of numeric literal")

    def _string(self) -> None:
        self._at += 1
        while True:
            if part := _STRING_PART.match(self._text, self._at):
                self._at = part.end()
            character = self._text[self._at : self._at + 1]
            if character == '"':
                self._at += 1
                return
            if character != "\\":
                raise self._fail("in string literal")
            self._at += 1
            self._escape()

    def _escape(self) -> None:
        character = self._text[self._at : self._at + 1]
        if character == "u":
            for _ in range(4):
                self._at += 1
                if self._text[self._at : self._at + 1] not in _HEXADECIMAL:
                    raise self._fail(r"in \u hexadecimal character escape")
        elif not character or character not in 'bfnrt\\/"':
            raise self._fail("in string escape code")
        self._at += 1

    def end(self, spaces: str = "looking for beginning of value") -> None:
        """Scans the end: only space may follow. ``spaces`` is the context in the message."""
        at = self._at
        try:
            self._peek(empty="")
        except _Fault:
            return
        if at == self._at:
            raise _Fault(f"error: {self._fail('after top-level value')}")
        raise self._fail(spaces)


_HEXADECIMAL: Final = frozenset("0123456789abcdefABCDEF")
_RUNES: Final = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    "\\": r"\\",
}


def _go_rune(character: str) -> str:
    """Returns the character in single quotes, as Go's ``strconv.Quote`` shows it."""
    if character in _RUNES:
        return f"'{_RUNES[character]}'"
    if character.isprintable():
        return f"'{character}'"
    if ord(character) < 0x80:
        return rf"'\x{ord(character):02x}'"
    return rf"'\u{ord(character):04x}'"
