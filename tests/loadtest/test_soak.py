"""The soak, for some seconds; and what it is judged by."""

import copy
from pathlib import Path

import pytest

from loadtest.soak.clients import FORBIDDEN, FREE, wrong
from loadtest.soak.run import Plan, soak
from loadtest.soak.verdict import Memory, Tally, broken
from tests.programs import Programs

FLAT = Memory([(float(at), 60.0 if at < 300 else 70.0) for at in range(0, 1201, 5)])
SHORT = Memory([(0.0, 60.0), (30.0, 90.0)])


@pytest.mark.slow(30)
def test_replicas_end_and_policies_change_and_no_verdict_is_wrong(
    program: Programs, tmp_path: Path
) -> None:
    plan = Plan(seconds=8, change_seconds=0.5, end_seconds=2, pause_seconds=0.05, ends_min=2)
    outcome = soak(plan, program("testcluster"), tmp_path, print)
    assert outcome.broken == [], plan
    assert outcome.tally.answered > 20
    assert outcome.changes >= 4
    assert min(outcome.kills, outcome.stops) >= 1


def test_a_wrong_verdict_or_a_failed_request_breaks_a_soak() -> None:
    assert broken(Tally(answered=1, killed=3, refused=2), SHORT) == []
    assert broken(Tally(answered=1, wrong=["a"]), SHORT) == ["1 wrong verdicts: a"]
    assert broken(Tally(answered=1, failed=["a", "b"]), SHORT) == ["2 failed requests: a"]
    assert broken(Tally(), SHORT) == ["nothing was answered"]


def test_memory_is_compared_after_five_minutes() -> None:
    """Earlier growth does not count; a run of less than seven minutes has no result."""
    assert FLAT.growth() == 0
    assert SHORT.growth() is None
    growing = Memory([(at, mib + at / 100) for at, mib in FLAT.samples])
    assert growing.growth() == pytest.approx(0.117, abs=0.01)
    (fault,) = broken(Tally(answered=1), growing)
    assert fault.startswith("memory is not flat: +11.")


def test_each_part_of_an_answer_is_checked() -> None:
    denied = {
        "uid": "u",
        "allowed": False,
        "status": {"message": "[forbidden] denied by forbidden"},
    }
    assert wrong(denied, FORBIDDEN, "u") == ""
    assert wrong({"uid": "u", "allowed": True, "status": {}}, FREE, "u") == ""
    assert wrong(denied, FREE, "u") != ""
    assert wrong(denied, FORBIDDEN, "v") != ""
    other = copy.deepcopy(denied)
    other["status"] = {"message": "[forbidden] denied"}
    assert wrong(other, FORBIDDEN, "u") != ""
