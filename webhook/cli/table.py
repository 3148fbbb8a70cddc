"""Tables of the command line: columns as wide as their widest cell, two spaces apart, or framed."""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING

from webhook.cli.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    Rows = Sequence[Sequence[str]]


def table(rows: Rows, right: Container[int] = ()) -> list[str]:
    """A line for each row, the first of which may be a heading; cells are written as printable.

    Columns of these numbers stand to the ``right``.
    """
    cells = _printable(rows)
    widths = _widths(cells)
    lines = []
    for row in cells:
        padded = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
    return lines


def framed(heading: Sequence[str], rows: Rows) -> list[str]:
    """The same in a frame, as OPA draws it, with the heading in the middle of its columns."""
    head, *below = _printable([heading, *rows])
    widths = _widths([head, *below])
    middle = [f"{name:^{width}}" for name, width in zip(head, widths, strict=True)]
    return [
        _rule(widths, "┌", "┬", "┐"),
        _framed(middle, widths),
        _rule(widths, "├", "┼", "┤"),
        *(_framed(row, widths) for row in below),
        _rule(widths, "└", "┴", "┘"),
    ]


def _printable(rows: Rows) -> list[list[str]]:
    return [[printable(cell) for cell in row] for row in rows]


def _widths(cells: Rows) -> list[int]:
    return [max(map(len, column)) for column in zip(*cells, strict=True)]


def _rule(widths: Sequence[int], left: str, cross: str, right: str) -> str:
    return left + cross.join("─" * (width + 2) for width in widths) + right


def _framed(cells: Sequence[str], widths: Sequence[int]) -> str:
    shown = starmap(" {:{}} ".format, zip(cells, widths, strict=True))
    return f"│{'│'.join(shown)}│"
