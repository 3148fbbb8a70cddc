"""The error of every parser, and the limits of expanding a file's references.

A few lines that refer to each other could make gigabytes.
"""

from __future__ import annotations

import re
from typing import Final

RECURSIVE_DEPTH_MAX: Final = 200
"""The nesting limit of parsers that take some ten of Python's calls for a level."""


class ParseError(ValueError):
    """A text is invalid in its format: has the reason and the line (from 1; 0 if unknown)."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.line = line

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}" if self.line else self.message


def line_at(text: str, offset: int) -> int:
    """Returns the line of a character, from 1."""
    return text.count("\n", 0, offset) + 1


class TextReader:
    """A text with the position of reading.

    ``action`` begins the messages of its faults; ``blank`` is what stands between its tokens.
    """

    action = ""
    blank = re.compile(r"\s+")

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def _fault(self, message: str) -> ParseError:
        return ParseError(f"{self.action}: {message}", line_at(self._text, self._at))

    def _skip(self) -> None:
        if match := self.blank.match(self._text, self._at):
            self._at = match.end()


EXPANDED_MAX: Final = 16 << 20
"""The most characters from the references of one file; files themselves have some KiB."""

RESOLVED_MAX: Final = 200_000
"""The most references followed; that many take 0.6 s of processor time."""


class Expansion:
    """Limits the text that the references of one file expand to."""

    __slots__ = ("_characters", "_references")

    def __init__(self) -> None:
        self._characters = 0
        self._references = 0

    def charge(self, characters: int) -> None:
        """Counts an expanded reference; raises :class:`ParseError` beyond the limits."""
        self._characters += characters
        self._references += 1
        if self._characters > EXPANDED_MAX:
            raise ParseError(
                f"references write out to more than {EXPANDED_MAX} characters: "
                "write the values out, or split the file"
            )
        if self._references > RESOLVED_MAX:
            raise ParseError(f"more than {RESOLVED_MAX} references are followed: split the file")
