"""The base of what goes wrong in programs that embed Waddle, and what is wrong with their values."""

from __future__ import annotations


class WaddleError(Exception):
    """Whatever the library raises."""


class InvalidInputError(WaddleError, ValueError, TypeError):
    """What was given is nothing that can be reviewed or evaluated: the text says what, and where."""
