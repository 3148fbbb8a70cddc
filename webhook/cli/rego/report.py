"""Results of Rego's unit tests as ``opa test`` shows them: for people, and as JSON."""

from __future__ import annotations

from base64 import b64encode
from textwrap import indent
from typing import TYPE_CHECKING, Any

from webhook import duration
from webhook.printable import printable
from webhook.rego.run.text import OrderedFields, indented
from webhook.rego.tester import RULER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.rego.errors import EvaluationError, RegoLoadError
    from webhook.rego.location import Location
    from webhook.rego.tester import RegoCaseResult, RegoTestResult


def as_json(results: Sequence[RegoTestResult]) -> str:
    """An array with an object for each test; its fields are OPA's."""
    return indented([_document(result) for result in results])


def _document(result: RegoTestResult) -> dict[str, Any]:
    document = OrderedFields(
        location=place(result.location), package=result.package, name=result.name
    )
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


def coverage_json(report: dict[str, Any]) -> str:
    """Return the coverage with OPA's fields."""
    return indented(coverage_document(report))


def coverage_document(report: dict[str, Any]) -> dict[str, Any]:
    """Return a report of coverage as a part of a result, with its fields in OPA's order."""
    files = {name: OrderedFields(one) for name, one in report["files"].items()}
    for one in files.values():
        for ranges in ("covered", "not_covered"):
            if ranges in one:
                one[ranges] = [
                    OrderedFields(
                        {
                            k: OrderedFields(v) if k in {"start", "end"} else v
                            for k, v in span.items()
                        }
                    )
                    for span in one[ranges]
                ]
    return OrderedFields({**report, "files": OrderedFields(files)})


def place(location: Location) -> dict[str, Any]:
    """A place as OPA writes it."""
    return OrderedFields(file=location.file, row=location.row, col=location.col)


def document(error: RegoLoadError) -> dict[str, Any]:
    """A fault of a source as OPA writes it."""
    fields = OrderedFields(message=error.message, code=error.code)
    if error.location.row or error.location.file:
        fields["location"] = place(error.location)
    if error.details and error.code == "rego_parse_error":
        line, caret = error.details[0], error.details[-1]
        fields["details"] = OrderedFields(line=line, idx=len(caret) - 1)
    elif error.details:
        fields["details"] = "\n".join(error.details)
    return fields


def load_fault(fault: str | RegoLoadError) -> dict[str, Any]:
    """Return a fault of loading as OPA writes it."""
    return OrderedFields(message=fault) if isinstance(fault, str) else document(fault)


def fault(error: EvaluationError) -> dict[str, Any]:
    """An error of an evaluation as OPA writes it."""
    fields = OrderedFields(message=error.message, code=error.code)
    if error.location.row:
        fields["location"] = place(error.location)
    return fields


def _cases_document(cases: Mapping[str, RegoCaseResult]) -> dict[str, Any]:
    documents = OrderedFields()
    for key, case in sorted(cases.items()):
        document = OrderedFields(name=case.name) if case.name else OrderedFields()
        if case.failed:
            document["fail"] = True
        if case.cases:
            document["sub_results"] = _cases_document(case.cases)
        documents[key] = document
    return documents


def as_text(
    results: Sequence[RegoTestResult],
    *,
    verbose: bool,
    explained: Mapping[int, Sequence[str]] | None = None,
) -> str:
    """Lines for people: what did not pass, or all, and how many there are.

    ``explained`` has lines about tests that failed, by their place among the results.
    """
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
        lines += [f"{result.location.file}:{result.location.row}:", line(result)]
        lines += _details(result, verbose=verbose)
    failed = {number: result for number, result in enumerate(results) if result.failed}
    if explained is not None and failed:
        lines += [RULER, "FAILURES", RULER]
        for number, result in failed.items():
            lines += [line(result), *explained.get(number, ()), ""]
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


def line(result: RegoTestResult) -> str:
    """A test, how it went, and how long it took."""
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
