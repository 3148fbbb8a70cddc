"""A text of HCL and how far it has been read."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final

from webhook.parsers.errors import ParseError, line_at

if TYPE_CHECKING:
    from webhook.parsers.hcl import tree

IDENTIFIER: Final = re.compile(r"[^\W\d][\w-]*")
_BLANK: Final = re.compile(r"(?:[ \t\r]+|/\*.*?\*/)+", re.DOTALL)
_BLANK_LINES: Final = re.compile(r"(?:[ \t\r\n]+|/\*.*?\*/|(?:#|//)[^\n]*)+", re.DOTALL)


class Cursor(ABC):
    """A text and how far it has been read; newlines end expressions but within brackets."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._depth = 0
        self._within = 0  # brackets that newlines mean nothing in

    def fault(self, message: str, at: int | None = None) -> ParseError:
        """A fault where the text is being read."""
        place = line_at(self.text, self.at if at is None else at)
        return ParseError(f"convert to bytes: parse config: {message}", place)

    def skip(self) -> None:
        """Pass over blanks and comments, and over newlines where they mean nothing."""
        match = (_BLANK_LINES if self._within else _BLANK).match(self.text, self.at)
        if match:
            self.at = match.end()

    def skip_lines(self) -> None:
        """Pass over newlines, too."""
        match = _BLANK_LINES.match(self.text, self.at)
        if match:
            self.at = match.end()

    def sees(self, token: str) -> bool:
        """Whether the text goes on with a token."""
        return self.text.startswith(token, self.at)

    def take(self, token: str) -> bool:
        """Whether the text goes on with a token, which is passed over with blanks before it."""
        self.skip()
        if not self.sees(token):
            return False
        self.at += len(token)
        return True

    def expect(self, token: str, where: str) -> None:
        """Pass over a token that must come."""
        if not self.take(token):
            raise self.fault(f"Missing {token!r} in {where}")

    def identifier(self) -> str:
        """The identifier that comes, or an empty text."""
        match = IDENTIFIER.match(self.text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        return match[0]

    @abstractmethod
    def expression(self) -> tree.Expression:
        """Read up to what cannot go on an expression; templates within texts call it, too."""

    def names(self, where: str) -> tuple[str, ...]:
        """The one or two variables of a loop, up to ``in``."""
        names = [self.identifier()]
        if self.take(","):
            self.skip()
            names.append(self.identifier())
        self.skip()
        if not all(names) or self.identifier() != "in":
            raise self.fault(f"Invalid {where}")
        return tuple(names)

    def interpolated(self) -> tree.Expression:
        """The expression of ``${…`` up to its brace; newlines mean nothing in it."""
        self._within += 1
        self.skip()
        expression = self.expression()
        self.skip()
        self._within -= 1
        return expression

    def within(self, change: int) -> None:
        """Count brackets that newlines mean nothing in."""
        self._within += change
