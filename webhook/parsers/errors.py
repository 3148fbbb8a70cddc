"""What a parser says of a file that it cannot read."""

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
