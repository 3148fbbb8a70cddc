"""The base class of Waddle's errors for embedding programs, and the error for invalid input."""

from __future__ import annotations


class WaddleError(Exception):
    """The base of all errors that the library raises."""


class InvalidInputError(WaddleError, ValueError, TypeError):
    """The input cannot be reviewed or evaluated: the text names the fault and its place."""
