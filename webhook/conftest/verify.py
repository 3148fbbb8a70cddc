"""A run of ``conftest verify``: the unit tests of policies (runner/verify.go)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from webhook.conftest import tracing
from webhook.conftest.builtins import named
from webhook.conftest.policies import (
    ConftestPolicyError,
    PolicyOptions,
    check_heads,
    compile_options,
    load_files,
    prepared,
    services,
)
from webhook.conftest.result import CheckResult, QueryResult, RuleResult
from webhook.conftest.run import matching
from webhook.rego.errors import RegoErrors
from webhook.rego.tester import RegoTestResult, UnitTests
from webhook.values import dataclass


@dataclass(frozen=True, slots=True)
class Verified:
    """The outcome of unit tests: as results, and with the trace of each test."""

    results: list[CheckResult] = field(default_factory=list)
    tests: list[tuple[RegoTestResult, list[str]]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def verify(
    policies: Sequence[str],
    data: Sequence[str],
    options: PolicyOptions,
    *,
    namespaces: Sequence[str] = (),
    trace: bool = False,
) -> Verified:
    """Runs all tests; leaves out results of other ``namespaces``.

    Raises :class:`ConftestPolicyError`.
    """
    options = replace(options, trace=options.trace or trace)
    files = load_files(policies, data, options.version)
    check_heads(files.modules)
    try:
        tests = UnitTests(
            prepared(files.modules, options), files.data, options=compile_options(options)
        )
    except RegoErrors as errors:
        raise ConftestPolicyError(f"loading policies: get compiler: {errors}") from None
    outcome = Verified()
    lines: list[str] = []
    lent = services(files.modules)
    if options.trace:
        lent[tracing.SERVICE] = lines
    ran = tests.run(
        options.seconds_max, runtime=options.runtime, services=lent, strict=options.builtin_errors
    )
    for result in ran:
        traced = list(lines)
        lines.clear()
        if namespaces and not matching([result.package.removeprefix("data.")], namespaces):
            continue
        if result.error is not None:
            outcome.faults.append(
                f"run test: {result.package}.{result.name}: {named(result.error)}"
            )
            continue
        outcome.tests.append((result, traced))
        outcome.results.append(_check_result(result, traced))
    return outcome


def _check_result(result: RegoTestResult, traced: list[str]) -> CheckResult:
    wrong = result.failed or result.skipped
    finding = RuleResult(f"{result.package}.{result.name}" if wrong else "")
    check_result = CheckResult(result.location.file)
    check_result.queries = [QueryResult(result.name, (finding,), tuple(traced))]
    if result.failed:
        check_result.failures = [finding]
    elif result.skipped:
        check_result.skipped = [finding]
    else:
        check_result.successes = 1
    return check_result
