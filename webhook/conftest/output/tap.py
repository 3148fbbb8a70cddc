"""Writes results in the Test Anything Protocol."""

from __future__ import annotations

from collections.abc import Sequence

from webhook.conftest.output import OutputOptions, indicated
from webhook.conftest.result import CheckResult, totals
from webhook.printable import printable


def write(results: Sequence[CheckResult], _: OutputOptions) -> str:
    """Returns one plan and a line for each result; empty without results."""
    count = totals(results).tests
    if not count:
        return ""
    lines = [f"1..{count}"]
    number = 1
    for result in results:
        sections = (
            ("", "not ok", [failure.message for failure in result.failures]),
            ("warnings", "not ok", [warning.message for warning in result.warnings]),
            ("exceptions", "ok", [exception.message for exception in result.exceptions]),
            ("skip", "ok", [finding.message for finding in result.skipped]),
            ("successes", "ok", ["SUCCESS"] * result.successes),
        )
        for title, status, messages in sections:
            if title and messages:
                lines.append(f"# {title}")
            for message in messages:
                lines.append(f"{status} {number} {indicated(result)} {printable(message)}")
                number += 1
    return "".join(f"{line}\n" for line in lines)
