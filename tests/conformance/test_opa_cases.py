"""OPA's own cases, all of them, and proof that the runner can tell right from wrong."""

from pathlib import Path
from unittest.mock import patch

import pytest

from tests.conformance.gatekeeper import CONFORMANCE
from tests.conformance.opa import EXCLUSIONS, SUPERSEDED, Outcome, exclusions, run, run_case
from tests.conformance.opa_cases import Case, load_cases
from tests.programs import Programs, ProgramUnavailableError, sources

CASES = CONFORMANCE / "opa"
if not CASES.is_dir():
    pytest.skip(f"no {CASES}: set WADDLE_CONFORMANCE", allow_module_level=True)


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    """Of all cases, v0 and v1, with exact results and errors."""
    return run([CASES])


@pytest.mark.slow(10)
def test_every_case_of_opa_passes(outcomes: list[Outcome]) -> None:
    failed = [f"{one.case.name}: {one.reason}" for one in outcomes if one.status == "failed"]
    assert failed == []
    assert len(outcomes) > 2800


@pytest.fixture(scope="module")
def newest(program: Programs) -> Path:
    """The cases that the OPA brings which tests compare with."""
    try:
        return sources("opa") / "v1" / "test" / "cases" / "testdata"
    except ProgramUnavailableError as unavailable:
        pytest.skip(str(unavailable))


@pytest.mark.slow(40)
def test_every_case_of_the_newest_opa_passes(newest: Path) -> None:
    """There are more cases than in the conformance data, with OPA's present answers."""
    outcomes = run([newest], superseded=None)
    failed = [f"{one.case.name}: {one.reason}" for one in outcomes if one.status == "failed"]
    assert failed == []
    assert len(outcomes) > 4000


def test_a_superseded_case_has_another_expectation_today(newest: Path) -> None:
    """The case is judged by the new expectation; OPA's present expectations may not be left out."""
    today = {case.name: case.modules for case in load_cases([newest])}
    older = {case.name: case.modules for case in load_cases([CASES])}
    listed = set(exclusions(SUPERSEDED))
    changed = {name for name in older.keys() & today.keys() if older[name] != today[name]}
    assert listed <= changed


def test_no_case_with_a_wrong_expectation_passes(outcomes: list[Outcome]) -> None:
    """A runner that always agrees would prove nothing."""
    assert [one.case.name for one in outcomes if one.fooled] == []


def test_a_wrong_expectation_that_is_met_is_reported() -> None:
    """A case without an expectation would pass always; so would a case with an empty mutation."""
    case = Case("note", "data.a.p = x", "v1", "", ("package a\np := 1",), want_result=({"x": 1},))
    assert run_case(case).status == "passed"
    assert not run_case(case).fooled
    with patch("tests.conformance.opa.mutated", lambda same: same):
        assert run_case(case).fooled


def test_at_most_one_case_in_a_hundred_is_excluded():
    """Each line of the list names a case that exists."""
    names = {case.name for case in load_cases([CASES])}
    excluded = exclusions()
    assert set(excluded) <= names
    assert len(excluded) <= len(names) / 100


def test_an_exclusion_without_a_reason_is_refused(tmp_path):
    """The reason stands behind the name."""
    file = tmp_path / EXCLUSIONS.name
    file.write_text("v1/some case\n")
    with pytest.raises(AssertionError, match="no reason given"):
        exclusions(file)


def test_a_crash_is_never_a_wanted_error():
    """An error of loading is none either."""
    for modules in (("package a\np := ",), ("package a\np if { undefined_function(1) }",)):
        case = Case("note", "data.a.p = x", "v1", "", modules, want_error="", want_error_code="x")
        assert run_case(case).status == "failed"
