"""Writes results as lines for people, and the totals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from webhook.conftest.output import OutputOptions, indicated
from webhook.conftest.result import CheckResult, totals
from webhook.printable import printable

RED: Final = 31
GREEN: Final = 32
YELLOW: Final = 33
BLUE: Final = 34
CYAN: Final = 36


def write(results: Sequence[CheckResult], options: OutputOptions) -> str:
    """Returns printed lines, warnings, failures, exceptions and the totals."""
    lines = [
        f"{_colored('PRNT ', BLUE, options)}  {printable(line)}"
        for result in results
        for query in result.queries
        for line in query.prints
    ]
    for result in results:
        where = indicated(result)
        lines += [
            f"{_colored('WARN', YELLOW, options)} {where} {printable(warning.message)}"
            for warning in result.warnings
        ]
        lines += [
            f"{_colored('FAIL', RED, options)} {where} {printable(failure.message)}"
            for failure in result.failures
        ]
        if not options.suppress_exceptions:
            lines += [
                f"{_colored('EXCP', CYAN, options)} {where} {printable(exception.message)}"
                for exception in result.exceptions
            ]
    counted = totals(results)
    summary = str(counted)
    if options.show_skipped:
        summary += f", {counted.skipped} skipped"
    color = GREEN
    if counted.failures:
        color = RED
    elif counted.warnings:
        color = YELLOW
    elif counted.exceptions:
        color = CYAN
    return "\n".join([*lines, "", _colored(summary, color, options)]) + "\n"


def traced(results: Sequence[CheckResult], options: OutputOptions) -> str:
    """Returns the outcome and trace of each query, for standard error."""
    lines = []
    for result in results:
        for query in result.queries:
            color = GREEN if query.passed else RED
            lines.append(_colored(f"file: {result.file} | query: {query.query}", color, options))
            lines += [f"{_colored('TRAC ', BLUE, options)}  {line}" for line in query.traces]
    return "".join(f"{line}\n" for line in lines)


def _colored(text: str, color: int, options: OutputOptions) -> str:
    return f"\x1b[{color}m{text}\x1b[0m" if options.color else text
