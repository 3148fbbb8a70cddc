"""Contents and checks of the benchmark of large clusters."""

import copy
from typing import Any

import pytest

from loadtest.cluster import content, report


@pytest.mark.parametrize(("templates", "constraints"), [(1, 1), (12, 100), (500, 2_000)])
def test_a_content_has_its_size_and_its_last_constraint_is_the_canary(
    templates: int, constraints: int
) -> None:
    """No other constraint denies what the canary does, and every one has its template."""
    made = content.policies(templates, constraints)
    assert (len(made.templates), len(made.constraints)) == (templates, constraints)
    kinds = {one["spec"]["crd"]["spec"]["names"]["kind"] for one in made.templates}
    assert len(kinds) == templates
    assert {one["kind"] for one in made.constraints} == kinds
    identities = {(one["kind"], one["metadata"]["name"]) for one in made.constraints}
    assert len(identities) == constraints
    last = made.constraints[-1]
    assert (last["kind"], last["metadata"]["name"]) == max(identities)
    words = [one["spec"].get("parameters", {}).get("word") for one in made.constraints]
    assert words.index(content.CANARY) == constraints - 1


START = {
    **dict.fromkeys(report.FIGURES, 2.0),
    "first_answer_denies": True,
    "ready_answer_denies": True,
}
REPLICAS = {
    "ready_seconds": [1.0, 1.0, 1.0],
    "rss_mib": [100.0, 100.0, 100.0],
    "first_answers_deny": [True, True, True],
    "digests": 1,
    "quiet_seconds": 60.0,
    "writes": 0,
}
RESULT: dict[str, Any] = {
    "command": "make bench-cluster",
    "machine": {"cores": "2"},
    "stages": {
        "3 templates": {
            "starts": {"waddle": [START], "gatekeeper": [START | {"ready_seconds": 8.0}]},
            "replicas": REPLICAS,
        }
    },
}


def test_a_page_has_both_programs_and_their_ratio() -> None:
    """Medians of the rounds."""
    page = report.markdown(RESULT)
    assert "| start to ready, s | 2.0 | 8.0 | **0.25** |" in page
    assert "Together they made **0 writes** in 60 s" in page
    assert report.faults(RESULT) == []


@pytest.mark.parametrize(
    ("figure", "value", "fault"),
    [
        ("first_answers_deny", [True, False, True], "half-filled"),
        ("digests", 2, "differ"),
        ("writes", 3, "3 writes"),
    ],
)
def test_what_must_not_be_seen_is_a_fault(figure: str, value: Any, fault: str) -> None:
    """The benchmark ends with another exit code then."""
    result = copy.deepcopy(RESULT)
    result["stages"]["3 templates"]["replicas"][figure] = value
    (found,) = report.faults(result)
    assert fault in found
