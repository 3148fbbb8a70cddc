"""The bench beside Kyverno: its policies, its page, and where Kyverno cannot be built."""

import json
import sys
from typing import Any

import pytest

from loadtest import freshness
from loadtest.kyverno import __main__ as bench
from loadtest.traces import BODIES
from tests.programs import ProgramUnavailableError
from webhook.api.gvk import name_of
from webhook.kyverno.policy import PolicyQuestion
from webhook.kyverno.validating_policy import ValidatingPolicy
from webhook.kyverno.world import World, objects_known

NAMESPACE = {"metadata": {"name": "payments"}}


def verdicts(name: str, review: Any) -> dict[str, str]:
    """Returns the result of Waddle's form of each policy for a review."""
    question = PolicyQuestion(review["request"], NAMESPACE, World(objects_known(())))
    return {
        name_of(policy): ValidatingPolicy(own).say(question).result
        for policy in bench.policies_of(name)
        for own in bench.own_policies(policy)
    }


@pytest.mark.parametrize("name", list(bench.NAMES))
def test_one_pod_breaks_every_policy_and_the_measured_one_none(name: str) -> None:
    found = verdicts(name, bench.breaking())
    assert len(found) == max(bench.GOALS)
    assert set(found.values()) == {"fail"}
    for body in ("pod", "deployment"):
        review = json.loads((BODIES / f"{body}.json").read_bytes())
        assert set(verdicts(name, review).values()) == {"pass"}


def test_both_kinds_have_the_same_policies_and_the_first_denies_the_bad_pod() -> None:
    bad = json.loads((BODIES / "pod_bad.json").read_bytes())
    found = [verdicts(name, bad) for name in bench.NAMES]
    assert found[0] == found[1]
    assert next(iter(found[0].values())) == "fail"


def row(policies: str, count: int, body: str, ours: float) -> dict[str, Any]:
    cpu = {"waddle": ours, "kyverno": 3.0, bench.WITHOUT_REPORTS: 2.0}
    if count == 1:
        cpu["floor"] = 0.1
    found: dict[str, Any] = {"policies": policies, "count": count, "body": body, "cpu_ms": cpu}
    if body == "pod":
        both = {"waddle": 1.0, "kyverno": 4.0}
        found |= {"rate": 100.0, "p50_ms": both, "p99_ms": both, "rss_mib": both}
    return found


def test_a_goal_is_a_share_of_what_kyverno_takes_to_answer() -> None:
    rows = [row("cel", 1, "pod", 0.9), row("cel", 12, "pod", 0.2), row("patterns", 12, "pod", 0.3)]
    result = {"command": "make bench-kyverno", "machine": {"kyverno": "v1"}, "rows": rows}
    assert bench.missed(result) == ["12 ClusterPolicy of patterns, pod: 0.150, at most 0.1"]
    page = bench.page(result)
    assert "| 12 ValidatingPolicy in CEL | pod | 0.200 ms | 3.000 ms | 2.000 ms | 0.067 " in page
    assert page.count("NOT MET") == 1


def test_where_kyverno_cannot_be_built_it_is_skipped_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unavailable(plan: object) -> None:
        raise ProgramUnavailableError("no proxy answers")

    monkeypatch.setattr(bench, "measure", unavailable)
    monkeypatch.setattr(sys, "argv", ["bench", "--save"])
    assert bench.main() == 0
    error_lines = capsys.readouterr().err
    assert error_lines == "skipped: Kyverno cannot be built here: no proxy answers\n"


def test_its_results_are_known_to_be_old_or_not() -> None:
    assert "kyverno" in freshness.MEASURED
