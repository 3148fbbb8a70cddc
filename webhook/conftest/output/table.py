"""A table with a row for each result."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.conftest.output import OutputOptions
    from webhook.conftest.result import CheckResult

_HEADER: Final = ("RESULT", "FILE", "NAMESPACE", "MESSAGE")


def write(results: Sequence[CheckResult], _: OutputOptions) -> str:
    """Nothing where there is no result."""
    rows = [row for result in results for row in _rows(result)]
    if not rows:
        return ""
    cells = [[_lines(cell) for cell in row] for row in rows]
    widths = [
        max([_width(title), *(_width(line) for row in cells for line in row[column])])
        for column, title in enumerate(_HEADER)
    ]
    lines = [_ruler(("┌", "┬", "┐"), widths), _centred(widths), _ruler(("├", "┼", "┤"), widths)]
    for row in cells:
        for number in range(max(map(len, row))):
            shown = [cell[number] if number < len(cell) else "" for cell in row]
            lines.append(
                _line([_padded(one, width) for one, width in zip(shown, widths, strict=True)])
            )
    lines.append(_ruler(("└", "┴", "┘"), widths))
    return "".join(f"{line}\n" for line in lines)


def _rows(result: CheckResult) -> Iterator[tuple[str, str, str, str]]:
    for _ in range(result.successes):
        yield "success", result.file, result.namespace, "SUCCESS"
    for kind, findings in (
        ("exception", result.exceptions),
        ("warning", result.warnings),
        ("skipped", result.skipped),
        ("failure", result.failures),
    ):
        for one in findings:
            yield kind, result.file, result.namespace, one.message


def _lines(cell: str) -> list[str]:
    """As conftest's table breaks a cell: blanks around it, and blank lines, are not shown."""
    return [line for line in cell.strip().split("\n") if line.strip()] or [""]


def _ruler(marks: tuple[str, str, str], widths: Sequence[int]) -> str:
    left, middle, right = marks
    return left + middle.join("─" * (width + 2) for width in widths) + right


def _centred(widths: Sequence[int]) -> str:
    cells = []
    for title, width in zip(_HEADER, widths, strict=True):
        left = (width - len(title)) // 2
        cells.append(" " * left + title + " " * (width - len(title) - left))
    return _line(cells)


def _line(cells: Sequence[str]) -> str:
    return "│" + "│".join(f" {cell} " for cell in cells) + "│"


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))


def _width(text: str) -> int:
    """Columns of a terminal: wide characters take two."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(one) else 1 + (unicodedata.east_asian_width(one) in "WF")
        for one in text
    )
