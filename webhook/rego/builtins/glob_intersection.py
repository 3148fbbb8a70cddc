"""Decides for ``regex.globs_match`` whether two globs can match the same string.

These globs have ``.``, sets ``[a-z]``, and the flags ``*`` and ``+`` after a set or character.
Syntax, messages and results (also approximate ones) are those of
github.com/yashtewari/glob-intersection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.rego.errors import BuiltinError
from webhook.values import dataclass

if TYPE_CHECKING:
    from webhook.rego.builtins.registry import Context

INVALID = "the input provided is invalid"


@dataclass(slots=True)
class _Token:
    """The characters that match here (None: any), and the flag after them."""

    runes: frozenset[str] | None
    flag: str = ""

    def matches(self, other: _Token) -> bool:
        if self.runes is None or other.runes is None:
            return True
        return not self.runes.isdisjoint(other.runes)


class _Reader:
    """The input, one character or escape at a time."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def next(self) -> tuple[str, bool] | None:
        """Returns a character and whether it was escaped; None at the end."""
        if self.at >= len(self.text):
            return None
        character = self.text[self.at]
        if character != "\\":
            self.at += 1
            return character, False
        if self.at == len(self.text) - 1:
            raise self.error("input ends with a \\ (escape) character", at=self.at)
        self.at += 2
        return self.text[self.at - 1], True

    def error(self, reason: str, at: int | None = None) -> BuiltinError:
        place = self.at if at is None else at
        return BuiltinError(f"input:{self.text}, pos:{place}, {reason}: {INVALID}")

    def flag(self) -> str:
        """Returns the next flag, if there is one."""
        before = self.at
        following = self.next()
        if following is not None and following[0] in "*+" and not following[1]:
            return following[0]
        self.at = before
        return ""


def _tokens(context: Context, text: str) -> list[_Token]:
    reader = _Reader(text)
    tokens: list[_Token] = []
    while (character_read := reader.next()) is not None:
        character, escaped = character_read
        runes: frozenset[str] | None = frozenset(character)
        if not escaped:
            if character == ".":
                runes = None
            elif character == "[":
                runes = _set(context, reader)
            elif character == "]":
                raise reader.error("set-close ']' with no preceding '['")
            elif character in "*+":
                raise reader.error(f"flag '{character}' must be preceded by a non-flag")
        token = _Token(runes, reader.flag())
        last = tokens[-1] if tokens else None
        if last is not None and token.flag and last.flag and token.runes == last.runes:
            last.flag = "+" if "+" in (token.flag, last.flag) else "*"
        else:
            tokens.append(token)
    return tokens


def _set(context: Context, reader: _Reader) -> frozenset[str]:
    runes: set[str] = set()
    previous = ""
    while (character_read := reader.next()) is not None:
        character, escaped = character_read
        if character == "]" and not escaped:
            return frozenset(runes)
        if character == "-" and not escaped:
            if not previous:
                raise reader.error("range character '-' must be preceded by a Unicode character")
            if reader.at >= len(reader.text) - 1:
                raise reader.error("range character '-' must be followed by a Unicode character")
            high = reader.next()
            assert high is not None, "two characters are left"
            if not high[1] and high[0] in "]-":
                raise reader.error("range character '-' cannot be followed by a special symbol")
            if high[0] < previous:
                raise reader.error(
                    f"range is out of order: '{high[0]}' comes before '{previous}' in Unicode"
                )
            context.charge(ord(high[0]) - ord(previous))
            runes.update(map(chr, range(ord(previous), ord(high[0]) + 1)))
            previous = ""
        else:
            runes.add(character)
            previous = character
    raise reader.error("found [ without matching ]")


def intersects(context: Context, left: str, right: str) -> bool:
    """Returns whether a non-empty string matches both; raises BuiltinError for an invalid glob."""
    a, b = _tokens(context, left), _tokens(context, right)
    low = 0
    while low < len(a) and low < len(b) and not a[low].flag and not b[low].flag:
        if not a[low].matches(b[low]):
            return False
        low += 1
    low = max(low - 1, 0)
    high_a, high_b = len(a) - 1, len(b) - 1
    while high_a >= low and high_b >= low and not a[high_a].flag and not b[high_b].flag:
        if not a[high_a].matches(b[high_b]):
            return False
        high_a, high_b = high_a - 1, high_b - 1
    if high_a < len(a) - 1:
        high_a, high_b = high_a + 1, high_b + 1
    return _normal(context, a[low : high_a + 1], b[low : high_b + 1])


def _normal(context: Context, a: list[_Token], b: list[_Token]) -> bool:
    context.charge(10)
    for at, (x, y) in enumerate(zip(a, b, strict=False)):
        if x.flag or y.flag:
            return _special(context, a[at:], b[at:])
        if not x.matches(y):
            return False
    return len(a) == len(b)


def _special(context: Context, a: list[_Token], b: list[_Token]) -> bool:
    if not a[0].flag:
        a, b = b, a
    if a[0].flag == "*":
        return _star(context, a, b)
    if not a[0].matches(b[0]):
        return False
    if _star(context, a, b[1:]):
        return True
    return bool(b[0].flag) and _normal(context, a[1:], b)


def _star(context: Context, starred: list[_Token], other: list[_Token]) -> bool:
    following = starred[1] if len(starred) > 1 else None
    for at, token in enumerate(other):
        context.charge(1)
        if following is not None and token.matches(following):
            if _normal(context, starred[1:], other[at:]):
                return True
            if not token.matches(starred[0]):
                return False
        elif not token.matches(starred[0]):
            return False
    return following is None
