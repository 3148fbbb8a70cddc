"""Reports tests one by one, with traces of failed ones (OPA v1/tester/reporter.go)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import indent
from typing import Final

from webhook.rego.tester import RULER, RegoTestResult

KINDS: Final = ("full", "notes", "fails")


def report(tests: Sequence[tuple[RegoTestResult, list[str]]], kind: str) -> str:
    """Returns all tests, the trace of each failed one, and the totals."""
    lines: list[str] = []
    file = ""
    for result, _ in tests:
        if file and file != result.location.file:
            lines.append("")
        file = result.location.file
        lines += [f"{file}:{result.location.row}:", _line(result)]
        if result.output:
            lines += ["", indent(result.output.strip(), "  "), ""]
    failed = [(result, trace) for result, trace in tests if result.failed]
    if failed:
        lines += [RULER, "FAILURES", RULER]
        for result, trace in failed:
            lines += [_line(result), "", *_shown(trace, kind), ""]
    if lines:
        lines.append(RULER)
    lines += _totals([result for result, _ in tests])
    return "".join(f"{line}\n" for line in lines)


def _line(result: RegoTestResult) -> str:
    name = f"{result.package}.{result.name}"
    if result.skipped:
        return f"{name}: SKIPPED"
    return f"{name}: {'FAIL' if result.failed else 'PASS'} ({result.seconds * 1e3:.6g}ms)"


def _shown(trace: Sequence[str], kind: str) -> Iterator[str]:
    """Yields the lines of a trace for a kind of report, with the rules that contain them."""
    entered = ""
    for number, line in enumerate(trace):
        if line.startswith("Enter "):
            entered = line
        following = trace[number + 1] if number + 1 < len(trace) else ""
        ended = line.startswith("| Eval ") and (not following or following.startswith("Enter "))
        if kind == "full":
            yield f"  {line}"
        elif kind == "notes" and line.startswith("| Note "):
            yield f"  {entered}"
            yield f"  {line}"
        elif kind == "fails" and ended:
            yield f"  {entered}"
            yield f"  {line.replace('| Eval ', '| Fail ', 1)}"


def _totals(results: Sequence[RegoTestResult]) -> Iterator[str]:
    total = len(results)
    counts = {
        "PASS": sum(1 for result in results if result.passed),
        "FAIL": sum(1 for result in results if result.failed),
        "SKIPPED": sum(1 for result in results if result.skipped),
    }
    for name, count in counts.items():
        if count:
            yield f"{name}: {count}/{total}"
