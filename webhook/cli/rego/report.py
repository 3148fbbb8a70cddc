"""Results of Rego's unit tests as ``opa test`` shows them: for people, and as JSON."""

from __future__ import annotations

from base64 import b64encode
from textwrap import indent
from typing import TYPE_CHECKING, Any

from webhook import duration
from webhook.cli.terminal import printable
from webhook.rego.run.text import laid_out
from webhook.rego.tester import RULER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.rego.errors import EvaluationError
    from webhook.rego.location import Location
    from webhook.rego.tester import RegoCaseResult, RegoTestResult


def as_json(results: Sequence[RegoTestResult]) -> str:
    """An array with an object for each test; its fields are OPA's."""
    return laid_out([_document(result) for result in results], "", "  ")


def _document(result: RegoTestResult) -> dict[str, Any]:
    document: dict[str, Any] = {
        "location": place(result.location),
        "package": result.package,
        "name": result.name,
    }
    if result.failed:
        document["fail"] = True
    if result.error is not None:
        document["error"] = fault(result.error)
    if result.skipped:
        document["skip"] = True
    document["duration"] = round(result.seconds * 1e9)
    if result.output:
        raw = result.output.encode("utf-8", "surrogateescape")
        document["output"] = b64encode(raw).decode()
    if result.cases:
        document["sub_results"] = _cases_document(result.cases)
    return document


def place(location: Location) -> dict[str, Any]:
    """A place as OPA writes it."""
    return {"file": location.file, "row": location.row, "col": location.col}


def fault(error: EvaluationError) -> dict[str, Any]:
    """An error of an evaluation as OPA writes it."""
    fault: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.location.row:
        fault["location"] = place(error.location)
    return fault


def _cases_document(cases: Mapping[str, RegoCaseResult]) -> dict[str, Any]:
    documents = {}
    for key, case in cases.items():
        document: dict[str, Any] = {"name": case.name} if case.name else {}
        if case.failed:
            document["fail"] = True
        if case.cases:
            document["sub_results"] = _cases_document(case.cases)
        documents[key] = document
    return documents


def as_text(results: Iterable[RegoTestResult], *, verbose: bool) -> str:
    """Lines for people: what did not pass, or all, and how many there are."""
    lines: list[str] = []
    counts = dict.fromkeys(("PASS", "FAIL", "SKIPPED", "ERROR"), 0)
    file = ""
    for result in results:
        _count(result, counts)
        if not verbose and result.passed:
            continue
        if file and file != result.location.file:
            lines.append("")
        file = result.location.file
        lines += [f"{result.location.file}:{result.location.row}:", _line(result)]
        lines += _details(result, verbose=verbose)
    if lines:
        lines.append(RULER)
    total = sum(counts.values())
    lines += [f"{outcome}: {count}/{total}" for outcome, count in counts.items() if count]
    return printable("\n".join(lines))


def _details(result: RegoTestResult, *, verbose: bool) -> Iterator[str]:
    for depth, case in _walk(result.cases, 1):
        if case.failed or verbose:
            yield f"{'  ' * depth}{case.name}: {'FAIL' if case.failed else 'PASS'}"
    if result.output:
        yield ""
        yield indent(result.output.strip(), "  ")
        yield ""
    if result.error is not None:
        yield f"  {result.error}"


def _line(result: RegoTestResult) -> str:
    name = f"{result.package}.{result.name}: {_outcome(result)}"
    return name if result.skipped else f"{name} ({duration.shown(round(result.seconds * 1e9))})"


def _outcome(result: RegoTestResult) -> str:
    if result.error is not None:
        return "ERROR"
    if result.skipped:
        return "SKIPPED"
    return "FAIL" if result.failed else "PASS"


def _count(result: RegoTestResult, counts: dict[str, int]) -> None:
    """A test counts once, or as often as it has cases at its ends."""
    ends = [case for _, case in _walk(result.cases, 0) if not case.cases]
    for case in ends:
        counts["FAIL" if case.failed else "PASS"] += 1
    if not ends:
        counts[_outcome(result)] += 1


def _walk(cases: Mapping[str, RegoCaseResult], depth: int) -> Iterator[tuple[int, RegoCaseResult]]:
    for _, case in sorted(cases.items()):
        yield depth, case
        yield from _walk(case.cases, depth + 1)
