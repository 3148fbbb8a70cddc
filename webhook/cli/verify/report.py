"""The reports of ``waddle verify``: text in the style of ``go test``, JSON, and JUnit XML."""

from __future__ import annotations

import xml.etree.ElementTree as ET  # only written, never parsed
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from webhook.cli.formats.document import as_json, as_yaml
from webhook.cli.formats.finding import Report, ShownFinding
from webhook.cli.formats.github import as_github
from webhook.cli.formats.junit import add_missing, document_text, xml_text
from webhook.cli.formats.sarif import as_sarif
from webhook.cli.terminal import styled
from webhook.printable import printable, printable_name, quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.policies.suite_result import CaseResult, SuiteResult, SuiteSummary, SuiteTestResult


def suite_text(suite: SuiteResult, *, verbose: bool) -> str:
    """Returns the failures of a suite; all cases if ``verbose``."""
    lines: list[str] = []
    for test in suite.tests:
        lines += _test_lines(test, verbose=verbose)
    verdict = styled("FAIL", fg="red", bold=True) if suite.failed else styled("ok", fg="green")
    note = "(skipped)" if suite.skipped else f"{suite.seconds:.3f}s"
    lines.append(f"{verdict}\t{printable_name(suite.path)}\t{note}")
    return "\n".join(lines)


def _test_lines(test: SuiteTestResult, *, verbose: bool) -> list[str]:
    name = printable_name(test.name)
    if test.skipped:
        return [f"=== SKIP  {name}"] if verbose else []
    lines = [f"=== RUN   {name}"] if verbose else []
    for case in test.cases:
        lines += _case_lines(case, verbose=verbose)
    if test.failed:
        lines.append(styled(f"--- FAIL: {name}\t({test.seconds:.3f}s)", fg="red"))
        if test.error:
            lines.append(_indented(test.error, "  "))
    elif verbose:
        lines.append(f"--- PASS: {name}\t({test.seconds:.3f}s)")
    return lines


def _case_lines(case: CaseResult, *, verbose: bool) -> list[str]:
    name = printable_name(case.name)
    if case.skipped:
        return [f"    === SKIP  {name}"] if verbose else []
    lines = [f"    === RUN   {name}"] if verbose else []
    if verbose and case.printed:
        lines.append("        === PRINT ===")
        lines += [_indented(line, " " * 8) for line in case.printed]
    if case.error:
        lines.append(styled(f"    --- FAIL: {name}\t({case.seconds:.3f}s)", fg="red"))
        lines.append(_indented(case.error, " " * 8))
    elif verbose:
        lines.append(f"    --- PASS: {name}\t({case.seconds:.3f}s)")
    return lines


def _indented(text: str, margin: str) -> str:
    return "\n".join(f"{margin}{line}" for line in printable(text).rstrip("\n").split("\n"))


def summary_text(summary: SuiteSummary) -> str:
    """Returns the closing lines: the verdict, then the counts."""
    failures = f"{summary.failed} failed"
    if summary.tests_failed:
        failures += f", {quantity(summary.tests_failed, 'test')} not run"
    skipped = f", {summary.skipped} skipped" if summary.skipped else ""
    verdict = styled("PASS", fg="green") if summary.ok else styled("FAIL", fg="red", bold=True)
    cases = summary.passed + summary.failed + summary.skipped
    counted = ", ".join(
        quantity(number, noun)
        for number, noun in ((summary.suites, "suite"), (summary.tests, "test"), (cases, "case"))
    )
    return f"{verdict}\n{counted}: {summary.passed} passed, {failures}{skipped}"


def document_of(results: Sequence[SuiteResult], summary: SuiteSummary) -> dict[str, Any]:
    """Returns all results as a document."""
    return {
        "summary": {**asdict(summary), "ok": summary.ok},
        "suites": [asdict(result) for result in results],
    }


def report(results: Sequence[SuiteResult], missing: Sequence[str] = ()) -> Report:
    """Returns the results for SARIF and annotations.

    Each test is a rule, each failure a finding. ``missing`` says why no test ran.
    """
    findings = []
    for suite in results:
        for test in suite.tests:
            failures = [(case.name, case.error) for case in test.cases if case.error]
            if test.error:
                failures.insert(0, (test.name, test.error))
            findings += [
                ShownFinding(test.name, "error", "FAIL", subject, message, suite.path)
                for subject, message in failures
            ]
    rules = dict.fromkeys(
        test.name for suite in results for test in suite.tests if not test.skipped
    )
    return Report(list(rules), findings, missing)


def as_junit(
    results: Sequence[SuiteResult], summary: SuiteSummary, missing: Sequence[str] = ()
) -> str:
    """Returns JUnit XML: a testsuite for each test of a suite, a testcase for each case."""
    cases = summary.passed + summary.failed + summary.skipped
    root = ET.Element(
        "testsuites",
        tests=str(cases),
        failures=str(summary.failed),
        errors=str(summary.tests_failed + len(missing)),
        skipped=str(summary.skipped),
    )
    for suite in results:
        for test in suite.tests:
            _junit_test(root, suite.path, test)
    add_missing(root, missing)
    return document_text(root)


def _junit_test(root: ET.Element, path: str, test: SuiteTestResult) -> None:
    element = ET.SubElement(
        root,
        "testsuite",
        name=xml_text(f"{path}: {test.name}"),
        file=xml_text(path),
        tests=str(len(test.cases)),
        failures=str(sum(bool(case.error) for case in test.cases)),
        errors=str(int(bool(test.error))),
        skipped=str(sum(case.skipped for case in test.cases)),
        time=f"{test.seconds:.3f}",
    )
    classname = xml_text(test.name)
    if test.error:
        whole = ET.SubElement(element, "testcase", name=classname, classname=classname)
        ET.SubElement(whole, "error", message=xml_text(test.error)).text = xml_text(test.error)
    for case in test.cases:
        item = ET.SubElement(
            element,
            "testcase",
            name=xml_text(case.name),
            classname=classname,
            time=f"{case.seconds:.3f}",
        )
        if case.skipped:
            ET.SubElement(item, "skipped")
        elif case.error:
            ET.SubElement(item, "failure", message=xml_text(case.error)).text = xml_text(case.error)
        if case.printed:
            ET.SubElement(item, "system-out").text = xml_text("\n".join(case.printed))


def table(results: Sequence[SuiteResult], summary: SuiteSummary, *, verbose: bool) -> str:
    """Returns every suite, and the counts."""
    suites = [
        suite_text(result, verbose=verbose)
        for result in results
        if verbose or result.ran or result.skipped
    ]
    return "\n".join([*suites, *([summary_text(summary)] if summary.ran else ())])


def _as_github(
    results: Sequence[SuiteResult], summary: SuiteSummary, missing: Sequence[str]
) -> str:
    written = as_github(report(results, missing))
    return "\n".join(filter(None, (written, summary_text(summary) if summary.ran else "")))


FORMATS: Final[
    Mapping[str, Callable[[Sequence[SuiteResult], SuiteSummary, Sequence[str]], str]]
] = {
    "json": lambda results, summary, _: as_json(document_of(results, summary)),
    "yaml": lambda results, summary, _: as_yaml(document_of(results, summary)),
    "junit": as_junit,
    "sarif": lambda results, _, missing: as_sarif(report(results, missing)),
    "github": _as_github,
}
"""The function of each output format; it gets results, their summary and the reasons why no test
ran."""
