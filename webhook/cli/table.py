"""Tables of the command line: columns two spaces apart, or in a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook import frame
from webhook.printable import printable_name

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    TableRows = Sequence[Sequence[str]]


def table(rows: TableRows, right: Container[int] = ()) -> list[str]:
    """Returns a line for each row; the first row may be a heading.

    Line breaks in cells are escaped. The columns whose numbers are in ``right`` are right-aligned.
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


def framed(heading: Sequence[str], rows: TableRows) -> list[str]:
    """Returns a table in a frame, as OPA draws it, with centred headings."""
    cells = [[[cell] for cell in row] for row in _printable(rows)]
    return frame.framed([printable_name(title) for title in heading], cells)


def _printable(rows: TableRows) -> list[list[str]]:
    return [[printable_name(cell) for cell in row] for row in rows]


def _widths(cells: TableRows) -> list[int]:
    return [max(map(len, column)) for column in zip(*cells, strict=True)]
