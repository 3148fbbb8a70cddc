"""Every mutation case agrees with Gatekeeper, but for what docs/compatibility/mutation.md lists."""

import copy
import json
from pathlib import Path

import pytest

from tests.conformance.gatekeeper import CONFORMANCE
from tests.conformance.mutation import Disagreement, main, run_case, run_path

CASES = CONFORMANCE / "mutation" / "cases.json"


@pytest.fixture(scope="module")
def cases() -> Path:
    """The file of cases; skips the tests where it is not."""
    if not CASES.is_file():
        pytest.skip(
            f"no {CASES}: set WADDLE_CONFORMANCE to the folder that holds mutation/cases.json"
        )
    return CASES


def test_every_case_agrees(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main([str(cases)])
    output = capsys.readouterr().out
    assert code == 0, output
    found = json.loads(cases.read_bytes())
    total = len(found["paths"]) + len(found["cases"])
    assert output.splitlines()[-1] == f"{total} passed, 0 failed"


def test_a_wrong_expectation_is_a_failure(cases: Path) -> None:
    found = json.loads(cases.read_bytes())
    path = next(case for case in found["paths"] if case.get("nodes"))
    with pytest.raises(Disagreement):
        run_path({**path, "nodes": []})
    case = copy.deepcopy(next(case for case in found["cases"] if case.get("mutated")))
    case["after"]["planted"] = 1
    with pytest.raises(Disagreement):
        run_case(case)
