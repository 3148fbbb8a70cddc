"""Writes results as a table with a row for each result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.frame import framed
from webhook.printable import without_controls

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.conftest.output import OutputOptions
    from webhook.conftest.result import CheckResult

_HEADER: Final = ("RESULT", "FILE", "NAMESPACE", "MESSAGE")


def write(results: Sequence[CheckResult], _: OutputOptions) -> str:
    """Returns the table; empty without results."""
    rows = [row for result in results for row in _rows(result)]
    if not rows:
        return ""
    lines = framed(_HEADER, [[_lines(cell) for cell in row] for row in rows])
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
    """Returns a cell's lines like conftest's table: trimmed, and without blank lines."""
    return [line for line in without_controls(cell).strip().split("\n") if line.strip()] or [""]
