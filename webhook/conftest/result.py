"""The results of checks, counted as in conftest (output/result.go)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from webhook.printable import quantity
from webhook.rego.run.numbers import number_text
from webhook.rego.run.values import UNDEFINED, RegoObject, RegoSet, Value, ordered
from webhook.values import dataclass


@dataclass(frozen=True, slots=True)
class PolicyPlace:
    """The place of a finding, from a policy's ``_loc``; ``line`` is a number's text."""

    file: str = ""
    line: str = ""

    def __str__(self) -> str:
        return f"{self.file} L{self.line}"


@dataclass(frozen=True, slots=True)
class RuleResult:
    """One result of a rule; without a message the rule passed."""

    message: str = ""
    place: PolicyPlace | None = None
    metadata: Mapping[str, Value] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether the result has no message."""
        return not self.message


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The result of one query, with its trace and its printed lines."""

    query: str
    findings: tuple[RuleResult, ...] = ()
    traces: tuple[str, ...] = ()
    prints: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the query has no findings with a message."""
        return all(finding.passed for finding in self.findings)


@dataclass(frozen=True, slots=True)
class ConftestTotals:
    """The number of results of each kind."""

    successes: int = 0
    failures: int = 0
    warnings: int = 0
    exceptions: int = 0
    skipped: int = 0

    @property
    def tests(self) -> int:
        """Returns the number of all results."""
        return self.successes + self.failures + self.warnings + self.exceptions + self.skipped

    def __str__(self) -> str:
        """Returns the summary line; skipped results count as tests and are not listed."""
        return (
            f"{quantity(self.tests, 'test')}, {self.successes} passed, "
            f"{quantity(self.warnings, 'warning')}, {quantity(self.failures, 'failure')}, "
            f"{quantity(self.exceptions, 'exception')}"
        )


@dataclass(slots=True)
class CheckResult:
    """The results of a namespace's policies for one file."""

    file: str
    namespace: str = ""
    successes: int = 0
    skipped: list[RuleResult] = field(default_factory=list)
    warnings: list[RuleResult] = field(default_factory=list)
    failures: list[RuleResult] = field(default_factory=list)
    exceptions: list[RuleResult] = field(default_factory=list)
    queries: list[QueryResult] = field(default_factory=list)

    def add(self, other: CheckResult) -> None:
        """Adds the results of another document of the same file."""
        self.successes += other.successes
        self.skipped += other.skipped
        self.warnings += other.warnings
        self.failures += other.failures
        self.exceptions += other.exceptions
        self.queries += other.queries

    @property
    def totals(self) -> ConftestTotals:
        """Returns the number of results of each kind."""
        return ConftestTotals(
            self.successes,
            len(self.failures),
            len(self.warnings),
            len(self.exceptions),
            len(self.skipped),
        )


def totals(results: Iterable[CheckResult]) -> ConftestTotals:
    """Returns the sums of all results."""
    each = [result.totals for result in results]
    return ConftestTotals(
        sum(result.successes for result in each),
        sum(result.failures for result in each),
        sum(result.warnings for result in each),
        sum(result.exceptions for result in each),
        sum(result.skipped for result in each),
    )


def exit_code(results: Iterable[CheckResult], *, fail_on_warn: bool = False) -> int:
    """Returns 1 for failures; with ``fail_on_warn`` 2 for failures and 1 for warnings."""
    counted = totals(results)
    if counted.failures:
        return 2 if fail_on_warn else 1
    return 1 if fail_on_warn and counted.warnings else 0


class UnusableResult(ValueError):
    """An object of a rule lacks a message."""


def findings_of(value: Value, query: str) -> list[RuleResult]:
    """Reads the findings of a rule's value.

    Raises :class:`UnusableResult` for an object without a message.
    """
    if value is UNDEFINED:
        return []
    elements: list[Value] = []
    if type(value) is RegoSet:
        elements = ordered(value)
    elif type(value) is list:
        elements = value
    if not elements:
        return [RuleResult()]
    findings = []
    for element in elements:
        if type(element) is str:
            findings.append(RuleResult(element, None, {"query": query}))
        elif isinstance(element, dict | RegoObject):
            findings.append(finding_of(element, query))
    return findings


def finding_of(value: Value, query: str) -> RuleResult:
    """Returns the finding of a rule's object: ``msg``, ``_loc``, and other fields as metadata.

    Raises :class:`UnusableResult`.
    """
    items = dict(value.items()) if isinstance(value, dict | RegoObject) else {}
    message = items.pop("msg", None)
    if not isinstance(message, str):
        raise UnusableResult('new result: "msg" field must be present and a string')
    place = _place(items.pop("_loc", None))
    return RuleResult(message, place, {**items, "query": query})


def _place(value: Any) -> PolicyPlace | None:
    if not isinstance(value, dict | RegoObject):
        return None
    items = dict(value.items())
    file, line = items.get("file"), items.get("line")
    is_number = isinstance(line, int | float) and not isinstance(line, bool)
    text = number_text(line) if is_number else ""  # type: ignore[arg-type]  # checked above
    place = PolicyPlace(file if isinstance(file, str) else "", text)
    return place if place.file or place.line else None
