"""Every test of Kyverno's library of policies in CEL."""

from __future__ import annotations

from pathlib import Path

from tests.conformance.gatekeeper import CONFORMANCE, require
from webhook.policies.kyverno_suite import find_kyverno_suites
from webhook.policies.suite_filter import Filter

require("kyverno")


def test_every_case_of_the_library_ends_as_kyverno_expects() -> None:
    """Cases whose objects are not among the data run nothing, and report so."""
    cases, wrong = 0, []
    for suite in find_kyverno_suites(Path(CONFORMANCE / "kyverno")):
        [test] = suite.run(str(suite.path), Filter()).tests
        cases += len(test.cases)
        missing = ": resources[" in test.error and "No such file or directory" in test.error
        wrong += [f"{suite.path}: {test.error}"] if test.error and not missing else []
        wrong += [f"{case.name}: {case.error}" for case in test.cases if case.error]
    assert cases > 100
    assert wrong == []
