"""Every test of Kyverno's library of policies in CEL."""

from __future__ import annotations

from pathlib import Path

from tests.conformance.gatekeeper import CONFORMANCE, require
from webhook.policies.kyverno_suite import find_kyverno_suites
from webhook.policies.suite_filter import Filter

require("kyverno")

LACKING = {
    f"other-vpol/{policy}/.kyverno-test/kyverno-test.yaml": f"{name} is not among the data"
    for policy, name in (
        ("metadata-match-regex", "pod-bad.yaml"),
        ("prevent-bare-pods", "pod-bad.yaml"),
        ("require-annotations", "pod-bad.yaml"),
        ("require-container-port-names", "pod-bad.yaml"),
        ("restrict-binding-clusteradmin", "crb-bad.yaml"),
        ("restrict-binding-system-groups", "crb-bad.yaml"),
    )
}
"""Tests that run nothing, each with the reason."""


def test_every_case_of_the_library_ends_as_kyverno_expects() -> None:
    """Tests whose objects are not among the data run nothing, and report so."""
    cases, wrong, lacking = 0, [], []
    for suite in find_kyverno_suites(Path(CONFORMANCE / "kyverno")):
        [test] = suite.run(str(suite.path), Filter()).tests
        cases += len(test.cases)
        place = str(suite.path.relative_to(CONFORMANCE / "kyverno"))
        if place in LACKING and "No such file or directory" in test.error:
            lacking.append(place)
        elif test.error:
            wrong.append(f"{place}: {test.error}")
        wrong += [f"{case.name}: {case.error}" for case in test.cases if case.error]
    assert cases > 100
    assert wrong == []
    assert sorted(lacking) == sorted(LACKING), "remove from the list what runs"
