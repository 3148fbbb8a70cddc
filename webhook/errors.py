"""The base of what goes wrong in programs that embed Waddle, and what is wrong with their values."""

from __future__ import annotations


class WaddleError(Exception):
    """The base of all errors that the library raises."""


class InvalidInputError(WaddleError, ValueError, TypeError):
    """The input cannot be reviewed or evaluated: the text says what, and where."""
