"""Public policies of others and their cases: every verdict is the API server's."""

import json

import pytest

from tests.conformance import vap
from tests.conformance.gatekeeper import CONFORMANCE, require

require("vap")


def test_every_verdict_is_as_expected():
    given = list(vap.answers(CONFORMANCE / "vap"))
    assert [one for one in given if not one.is_right and one.name not in vap.EXCUSED] == []
    assert {one.given for one in given} == {"pass", "fail"}


def test_a_wrong_expectation_is_reported(tmp_path, capsys):
    cases = json.loads((CONFORMANCE / "vap" / "cases.json").read_text())[:1]
    (tmp_path / "policies").symlink_to(CONFORMANCE / "vap" / "policies")
    for case in cases:
        case["expected"] = "pass" if case["expected"] == "fail" else "fail"
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    assert vap.main(tmp_path) == 1
    assert "1 wrong" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["[]"])
def test_a_folder_without_cases_is_no_success(tmp_path, text):
    (tmp_path / "cases.json").write_text(text)
    assert vap.main(tmp_path) == 1
