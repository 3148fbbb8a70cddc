"""The results of Rego unit tests in the formats of ``opa test``: text and JSON."""

from __future__ import annotations

from base64 import b64encode
from textwrap import indent
from typing import TYPE_CHECKING, Any

from webhook import duration
from webhook.printable import printable
from webhook.rego.run.text import OrderedFields, indented
from webhook.rego.tester import RULER, RegoCaseResult, RegoTestResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.rego.errors import EvaluationError, RegoLoadError
    from webhook.rego.location import Location


def as_json(results: Sequence[RegoTestResult]) -> str:
    """Returns a JSON array with an object for each test; the fields are OPA's."""
    return indented([_document(result) for result in results])


def _document(result: RegoTestResult) -> dict[str, Any]:
    document = OrderedFields(
        location=location_document(result.location), package=result.package, name=result.name
    )
    if result.failed:
        document["fail"] = True
    if result.error is not None:
        document["error"] = evaluation_error_document(result.error)
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
    """Returns the coverage as JSON with OPA's fields."""
    return indented(coverage_document(report))


def coverage_document(report: dict[str, Any]) -> dict[str, Any]:
    """Returns a coverage report as a part of a result, with its fields in OPA's order."""
    files = OrderedFields()
    for name, coverage in report["files"].items():
        fields = files[name] = OrderedFields(coverage)
        for kind in ("covered", "not_covered"):
            if kind in fields:
                fields[kind] = [_span_document(span) for span in fields[kind]]
    return OrderedFields({**report, "files": files})


def _span_document(span: Mapping[str, Any]) -> dict[str, Any]:
    fields = OrderedFields(span)
    for end in ("start", "end"):
        if end in fields:
            fields[end] = OrderedFields(fields[end])
    return fields


def location_document(location: Location) -> dict[str, Any]:
    """Returns a location with OPA's fields."""
    return OrderedFields(file=location.file, row=location.row, col=location.col)


def error_document(error: RegoLoadError) -> dict[str, Any]:
    """Returns a fault of a source with OPA's fields."""
    fields = OrderedFields(message=error.message, code=error.code)
    if error.location.row or error.location.file:
        fields["location"] = location_document(error.location)
    if error.details and error.code == "rego_parse_error":
        line, caret = error.details[0], error.details[-1]
        fields["details"] = OrderedFields(line=line, idx=len(caret) - 1)
    elif error.details:
        fields["details"] = "\n".join(error.details)
    return fields


def load_error_document(error: str | RegoLoadError) -> dict[str, Any]:
    """Returns a fault of loading with OPA's fields."""
    return OrderedFields(message=error) if isinstance(error, str) else error_document(error)


def evaluation_error_document(error: EvaluationError) -> dict[str, Any]:
    """Returns an evaluation error with OPA's fields."""
    fields = OrderedFields(message=error.message, code=error.code)
    if error.location.row:
        fields["location"] = location_document(error.location)
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
    """Returns the results as text: failed tests, or all if ``verbose``, and the counts.

    ``explained`` has lines about failed tests, by their index among the results.
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
        lines += [f"{result.location.file}:{result.location.row}:", result_line(result)]
        lines += _details(result, verbose=verbose)
    failed = {number: result for number, result in enumerate(results) if result.failed}
    if explained is not None and failed:
        lines += [RULER, "FAILURES", RULER]
        for number, result in failed.items():
            lines += [result_line(result), *explained.get(number, ()), ""]
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


def result_line(result: RegoTestResult) -> str:
    """Returns a test's name, outcome and duration."""
    name = f"{result.package}.{result.name}: {_outcome(result)}"
    return name if result.skipped else f"{name} ({duration.shown(round(result.seconds * 1e9))})"


def _outcome(result: RegoTestResult) -> str:
    if result.error is not None:
        return "ERROR"
    if result.skipped:
        return "SKIPPED"
    return "FAIL" if result.failed else "PASS"


def _count(result: RegoTestResult, counts: dict[str, int]) -> None:
    """Counts a test without cases once, else each of its innermost cases."""
    ends = [case for _, case in _walk(result.cases, 0) if not case.cases]
    for case in ends:
        counts["FAIL" if case.failed else "PASS"] += 1
    if not ends:
        counts[_outcome(result)] += 1


def _walk(cases: Mapping[str, RegoCaseResult], depth: int) -> Iterator[tuple[int, RegoCaseResult]]:
    for _, case in sorted(cases.items()):
        yield depth, case
        yield from _walk(case.cases, depth + 1)
