"""Writes results as Azure DevOps' logging commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.conftest.result import CheckResult, totals
from webhook.printable import printable, printable_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.conftest.output import OutputOptions


def write(results: Sequence[CheckResult], _: OutputOptions) -> str:
    """Returns a group for each file and namespace, and the totals."""
    lines = []
    for result in results:
        lines.append(
            f"##[section]Testing '{printable_name(result.file)}' against {result.totals.tests} policies "
            f"in namespace '{printable_name(result.namespace)}'"
        )
        lines.append("##[group]See conftest results")
        for kind, findings in (
            ("error", result.failures),
            ("warning", result.warnings),
            ("warning", result.exceptions),
        ):
            lines += [
                f"##vso[task.logissue type={kind}] file={printable_name(result.file)} --> {printable(finding.message)}"
                for finding in findings
            ]
        lines += [
            f"skipped file={printable_name(result.file)} {printable(finding.message)}"
            for finding in result.skipped
        ]
        if result.successes:
            lines.append(f"success file={printable_name(result.file)} {result.successes}")
        lines.append("##[endgroup]")
    return "".join(f"{line}\n" for line in [*lines, str(totals(results))])
