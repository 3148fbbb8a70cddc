"""The results of suites: a tree whose nodes have an error or none."""

from __future__ import annotations

from webhook.values import dataclass


@dataclass(frozen=True, slots=True)
class CaseResult:
    """A case: passed unless skipped or with an error. ``printed`` is the policy's output."""

    name: str
    error: str = ""
    skipped: bool = False
    seconds: float = 0.0
    printed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SuiteTestResult:
    """A test: with an error no case ran, or its constraint was valid against expectation."""

    name: str
    error: str = ""
    skipped: bool = False
    seconds: float = 0.0
    cases: tuple[CaseResult, ...] = ()
    warnings: tuple[str, ...] = ()
    """The probable mistakes in others' policies that the suite tries, each with file and line."""

    @property
    def failed(self) -> bool:
        """Whether the test or one of its cases has an error."""
        return bool(self.error) or any(case.error for case in self.cases)


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """A suite, by the path at which it was found."""

    path: str
    skipped: bool = False
    seconds: float = 0.0
    tests: tuple[SuiteTestResult, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether one of its tests failed."""
        return any(test.failed for test in self.tests)

    @property
    def ran(self) -> bool:
        """Whether a test of it was run."""
        return any(not test.skipped for test in self.tests)


@dataclass(frozen=True, slots=True)
class SuiteSummary:
    """Counts over all suites. ``passed``, ``failed`` and ``skipped`` are cases.

    A test without cases (an invalid constraint, or a failed setup) counts in ``tests_failed`` if it
    failed.
    """

    suites: int
    tests: int
    passed: int
    failed: int
    skipped: int
    tests_failed: int

    @property
    def ran(self) -> bool:
        """Whether any test ran: an empty run is no success."""
        return bool(self.tests or self.passed or self.failed)

    @property
    def ok(self) -> bool:
        """Whether a test ran and none failed."""
        return self.ran and not self.failed and not self.tests_failed


def summarize(results: tuple[SuiteResult, ...] | list[SuiteResult]) -> SuiteSummary:
    """Count."""
    tests = [test for suite in results for test in suite.tests]
    cases = [case for test in tests for case in test.cases]
    skipped = sum(case.skipped for case in cases)
    failed = sum(bool(case.error) for case in cases)
    return SuiteSummary(
        suites=sum(not suite.skipped for suite in results),
        tests=sum(not test.skipped for test in tests),
        passed=len(cases) - skipped - failed,
        failed=failed,
        skipped=skipped,
        tests_failed=sum(bool(test.error) for test in tests),
    )
