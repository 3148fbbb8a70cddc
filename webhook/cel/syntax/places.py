"""Offsets in a source as lines and columns."""

from __future__ import annotations


def place_of(source: str, at: int) -> tuple[int, int]:
    """The line, from 1, and the column in code points, from 0."""
    line = source.count("\n", 0, at) + 1
    return line, at - (source.rfind("\n", 0, at) + 1)
