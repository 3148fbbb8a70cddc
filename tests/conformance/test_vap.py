"""Public policies of others and their cases: every verdict is the API server's."""

import json

import pytest

from tests.cluster import Cluster
from tests.conformance import vap, vap_in_cluster
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


@pytest.mark.slow(30)
def test_every_verdict_is_the_api_server_s(program, tmp_path):
    cluster = Cluster.start(program("testcluster"), tmp_path)
    try:
        given = list(vap_in_cluster.verdicts(cluster.api, CONFORMANCE / "vap"))
    finally:
        cluster.stop()
    assert [(one.name, one.difference) for one in given if one.is_different] == []
    assert {bool(one.message) for one in given} == {True, False}


@pytest.mark.parametrize(
    "verdict",
    [
        vap_in_cluster.Verdict("", "fail", message="a", ours=("b",), written=("b",)),
        vap_in_cluster.Verdict("", "fail", message="a"),
        vap_in_cluster.Verdict("", "pass", ours=("a",), written=("a",)),
        vap_in_cluster.Verdict("", "pass", message="a", ours=("a",), written=("a",)),
        vap_in_cluster.Verdict("", "fail", message="a", ours=("a",)),
        vap_in_cluster.Verdict("", "pass", refusal="a"),
    ],
)
def test_a_verdict_that_differs_is_reported(verdict):
    assert verdict.difference


@pytest.mark.parametrize(("expected", "ours"), [("fail", ("a",)), ("pass", ())])
def test_equal_verdicts_are_none(expected, ours):
    message = "".join(ours)
    assert not vap_in_cluster.Verdict("", expected, message, ours=ours, written=ours).difference
