"""CEL's own cases, Kubernetes' and ours, and proof that the runner can tell right from wrong."""

import pytest

from tests.conformance.cel import run
from tests.conformance.gatekeeper import CONFORMANCE

CASES = CONFORMANCE / "cel"
if not CASES.is_dir():
    pytest.skip(f"no {CASES}: set WADDLE_CONFORMANCE", allow_module_level=True)


def test_every_case_has_the_verdict_of_kubernetes():
    """Values, types, and errors word for word where a line of Kubernetes' own has them."""
    outcomes = run(CASES)
    failed = [f"{one.case.name}: {one.reason}" for one in outcomes if one.status == "failed"]
    assert failed == []
    assert len(outcomes) > 2000


def test_no_case_with_a_wrong_expectation_passes():
    """A runner that always agrees would prove nothing."""
    outcomes = run(CASES, mutate=True)
    assert [one.case.name for one in outcomes if one.status == "passed"] == []


def test_only_cases_of_protobufs_messages_are_skipped():
    """At most one in ten, and no line of Kubernetes' or ours."""
    outcomes = run(CASES)
    skipped = [one for one in outcomes if one.status == "skipped"]
    assert len(skipped) < len(outcomes) / 10
    assert all("verdict" in one.case.expected for one in skipped)
