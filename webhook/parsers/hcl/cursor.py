"""A text of HCL with the position of reading."""

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
    """A text with the position of reading; newlines end expressions except within brackets."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._depth = 0
        self._within = 0  # open brackets in which newlines have no meaning

    def fault(self, message: str, at: int | None = None) -> ParseError:
        """Returns a fault at a position, by default the current one."""
        place = line_at(self.text, self.at if at is None else at)
        return ParseError(f"convert to bytes: parse config: {message}", place)

    def skip(self) -> None:
        """Skips blanks and comments, and newlines within brackets."""
        match = (_BLANK_LINES if self._within else _BLANK).match(self.text, self.at)
        if match:
            self.at = match.end()

    def skip_lines(self) -> None:
        """Skips blanks, comments and newlines."""
        match = _BLANK_LINES.match(self.text, self.at)
        if match:
            self.at = match.end()

    def sees(self, token: str) -> bool:
        """Whether a token is next."""
        return self.text.startswith(token, self.at)

    def take(self, token: str) -> bool:
        """Reads a token after blanks; returns whether it was there."""
        self.skip()
        if not self.sees(token):
            return False
        self.at += len(token)
        return True

    def expect(self, token: str, where: str) -> None:
        """Reads a required token."""
        if not self.take(token):
            raise self.fault(f"Missing {token!r} in {where}")

    def identifier(self) -> str:
        """Reads an identifier; returns "" if there is none."""
        match = IDENTIFIER.match(self.text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        return match[0]

    @abstractmethod
    def expression(self) -> tree.Expression:
        """Reads an expression; templates within texts call it, too."""

    def names(self, where: str) -> tuple[str, ...]:
        """Reads the one or two variables of a loop, up to ``in``."""
        names = [self.identifier()]
        if self.take(","):
            self.skip()
            names.append(self.identifier())
        self.skip()
        if not all(names) or self.identifier() != "in":
            raise self.fault(f"Invalid {where}")
        return tuple(names)

    def interpolated(self) -> tree.Expression:
        """Reads the expression of ``${…`` up to its brace; newlines have no meaning in it."""
        self._within += 1
        self.skip()
        expression = self.expression()
        self.skip()
        self._within -= 1
        return expression

    def within(self, change: int) -> None:
        """Changes the number of open brackets in which newlines have no meaning."""
        self._within += change
