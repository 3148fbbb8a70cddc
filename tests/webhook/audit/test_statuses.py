"""The audit's part of a constraint's status, put beside what others wrote."""

from typing import Any

import pytest

from tests.webhook.audit.made import identity, result
from webhook.audit.statuses import with_results
from webhook.audit.tally import Count, Tally

EXPECTED = {"uid": "u", "generation": 2}
BY_POD = [{"id": "a", "enforced": True}]


def current(**status: Any) -> dict[str, Any]:
    metadata = {"name": "c", "uid": "u", "generation": 2, "resourceVersion": "9"}
    return {"kind": "K", "metadata": metadata, "spec": {}, "status": status}


def count(number: int) -> Count:
    tally = Tally(2)
    for item in range(number):
        tally.add(identity(f"p{item}"), result())
    return tally.get(("Kind", "c"))


def test_what_others_wrote_stays() -> None:
    before = current(byPod=BY_POD, conditions=["x"], totalViolations=7, auditTimestamp="old")
    written = with_results(before, EXPECTED, "now", count(3))
    assert written is not None
    assert written["metadata"]["resourceVersion"] == "9", "a swap compares with it"
    assert written["status"].pop("violations")[0]["name"] == "p1"
    assert written["status"] == {
        "byPod": BY_POD,
        "conditions": ["x"],
        "totalViolations": 3,
        "auditTimestamp": "now",
    }
    assert before["status"]["totalViolations"] == 7, "nothing is changed in place"


def test_without_violations_none_are_left_over_from_before() -> None:
    written = with_results(current(violations=[{}], totalViolations=1), EXPECTED, "now", count(0))
    assert written is not None
    assert written["status"] == {"auditTimestamp": "now", "totalViolations": 0}
    bare = {key: value for key, value in current().items() if key != "status"}
    written = with_results(bare, EXPECTED, "now", count(1))
    assert written is not None
    assert written["status"]["totalViolations"] == 1


@pytest.mark.parametrize("change", [{"uid": "another"}, {"generation": 3}])
def test_results_of_another_constraint_or_an_earlier_generation_are_not_written(
    change: dict[str, Any],
) -> None:
    found = current()
    found["metadata"] |= change
    assert with_results(found, EXPECTED, "now", count(1)) is None
