"""The base of what goes wrong in programs that embed Waddle."""

from __future__ import annotations


class WaddleError(Exception):
    """Whatever the library raises."""
