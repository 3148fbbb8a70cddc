"""The error of every parser, and the bounds of what a file's references may write out to.

A few lines that name each other would make gigabytes.
"""

from __future__ import annotations

from typing import Final

RECURSIVE_DEPTH_MAX: Final = 200
"""Levels where reading one takes some ten of Python's calls."""


class ParseError(ValueError):
    """A text that is none of its format: what is wrong, and the line (from 1; 0 if unknown)."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.line = line

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}" if self.line else self.message


def line_at(text: str, offset: int) -> int:
    """The line on which a character stands, from 1."""
    return text.count("\n", 0, offset) + 1


EXPANDED_MAX: Final = 16 << 20
"""Characters that the references of one file may write out to; files themselves have some KiB."""

RESOLVED_MAX: Final = 200_000
"""References that are followed: so many take 0.6 s of processor time."""


class Expansion:
    """Bounds the text that the references of one file write out to."""

    __slots__ = ("_characters", "_references")

    def __init__(self) -> None:
        self._characters = 0
        self._references = 0

    def charge(self, characters: int) -> None:
        """Count a reference that is written out; raises :class:`ParseError` beyond the bounds."""
        self._characters += characters
        self._references += 1
        if self._characters > EXPANDED_MAX:
            raise ParseError(
                f"references write out to more than {EXPANDED_MAX} characters: "
                "write the values out, or split the file"
            )
        if self._references > RESOLVED_MAX:
            raise ParseError(f"more than {RESOLVED_MAX} references are followed: split the file")
