"""Tables of the command line: columns as wide as their widest cell, two spaces apart, or framed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook import frame
from webhook.printable import printable_name

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    TableRows = Sequence[Sequence[str]]


def table(rows: TableRows, right: Container[int] = ()) -> list[str]:
    """A line for each row, the first of which may be a heading; cells are written on one line.

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


def framed(heading: Sequence[str], rows: TableRows) -> list[str]:
    """Return a table in a frame, as OPA draws it, with centred headings."""
    cells = [[[cell] for cell in row] for row in _printable(rows)]
    return frame.framed([printable_name(title) for title in heading], cells)


def _printable(rows: TableRows) -> list[list[str]]:
    return [[printable_name(cell) for cell in row] for row in rows]


def _widths(cells: TableRows) -> list[int]:
    return [max(map(len, column)) for column in zip(*cells, strict=True)]
