"""Tables in a frame, as OPA and conftest draw them."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence


def framed(heading: Sequence[str], rows: Sequence[Sequence[Sequence[str]]]) -> list[str]:
    """Returns the lines of a table: centred headings, and each cell's lines below each other.

    A column is as wide as its widest text on a terminal.
    """
    widths = [
        max([_width(title), *(_width(line) for row in rows for line in row[column])])
        for column, title in enumerate(heading)
    ]
    lines = [_rule(widths, "┌", "┬", "┐"), _line(_centred(heading, widths), widths)]
    lines.append(_rule(widths, "├", "┼", "┤"))
    for row in rows:
        for number in range(max(map(len, row))):
            cells = [cell[number] if number < len(cell) else "" for cell in row]
            lines.append(_line(cells, widths))
    return [*lines, _rule(widths, "└", "┴", "┘")]


def _rule(widths: Sequence[int], left: str, cross: str, right: str) -> str:
    return left + cross.join("─" * (width + 2) for width in widths) + right


def _centred(heading: Sequence[str], widths: Sequence[int]) -> list[str]:
    spaces = ((width - _width(title)) // 2 for title, width in zip(heading, widths, strict=True))
    return [" " * number + title for number, title in zip(spaces, heading, strict=True)]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    shown = (
        f" {cell}{' ' * (width - _width(cell))} " for cell, width in zip(cells, widths, strict=True)
    )
    return f"│{'│'.join(shown)}│"


def _width(text: str) -> int:
    """Returns the columns on a terminal: wide characters take two."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.combining(character)
        else 1 + (unicodedata.east_asian_width(character) in "WF")
        for character in text
    )
