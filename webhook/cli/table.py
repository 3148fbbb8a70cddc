"""Tables of the command line: columns as wide as their widest cell, two spaces apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.cli.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Sequence


def table(rows: Sequence[Sequence[str]], *, numbers: bool = False) -> list[str]:
    """A line for each row, the first of which is the heading; cells are written as printable.

    With ``numbers`` every column but the first stands to the right.
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        padded = [
            cell.rjust(width) if numbers and column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
    return lines
