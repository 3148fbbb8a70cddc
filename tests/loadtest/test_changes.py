"""The benchmark of changes: what changes, how evenly, and what its verdict holds of the figures."""

import json
from collections import Counter
from itertools import islice
from typing import Any

import pytest

from loadtest.changes import report
from loadtest.changes.measurement import CHANGES_PER_MINUTE, STATES
from loadtest.changes.policies import LABEL, Changing
from loadtest.traces import BODIES
from webhook.cli.clients import new_client
from webhook.constraint.client import Client
from webhook.constraint.review import AugmentedObject


def window(**changed: Any) -> dict[str, Any]:
    """A window of six seconds in which all is well."""
    return {
        "p50_ms": 1.0,
        "p99_ms": 2.0,
        "max_ms": 3.0,
        "server_cores": 0.1,
        "latencies_us": [1000] * 99 + [3000],
        "late_us": [10] * 99 + [50],
        "requests": 100,
        "failed": 0,
        "wrong": 0,
        "fault": "",
        "changes": {},
        "change_seconds": [],
        "enforced_seconds": 0.1,
        **changed,
    }


def result(**churn: Any) -> dict[str, Any]:
    """Returns a round of both programs; ``churn`` changes Waddle's window with changes."""
    changes = {"changes": {"update": 18, "template": 2}, "change_seconds": [0.01] * 20}
    return {
        "command": "make bench-changes",
        "machine": {"cores": "2"},
        "plan": {"seconds": 6, "rounds": 1, "load": 0.5},
        "rate": 20.0,
        "generator_first": True,
        "rounds": {
            "waddle": [{"quiet": window(), "churn": window(**{**changes, **churn})}],
            "gatekeeper": [{"quiet": window(), "churn": window(**changes, p99_ms=9.0)}],
        },
    }


def test_a_minute_has_180_changes_of_constraints_and_20_of_templates_evenly_spread() -> None:
    changing = Changing.begin()
    for _ in range(3):
        names = [change.name for change in islice(changing.changes(), CHANGES_PER_MINUTE)]
        counts = Counter(names)
        assert counts["template"] == 20
        assert counts["create"] + counts["update"] + counts["delete"] == 180
        assert min(counts["create"], counts["update"], counts["delete"]) >= 20
        assert all(names[at : at + 10].count("template") == 1 for at in range(0, 200, 10))


def test_each_change_of_a_template_is_another_source_and_no_constraint_is_made_twice() -> None:
    changing = Changing.begin()
    there = {one.path for one in changing.constraints}
    sources = {json.dumps(one) for one in changing.templates()}
    for change in islice(changing.changes(), 400):
        if change.name == "template":
            assert json.dumps(change.body) not in sources
            sources.add(json.dumps(change.body))
        elif change.name == "create":
            assert change.path not in there
            there.add(change.path)
        else:
            assert change.path in there
            there -= {change.path} if change.name == "delete" else set()


def denials(client: Client, document: dict[str, Any]) -> list[str]:
    """Returns the denials of an object."""
    found = client.snapshot.review(AugmentedObject(document, operation="CREATE"))
    return [result.msg for result in found.results]


@pytest.mark.parametrize("changes", [0, 137])
def test_what_changes_denies_its_own_word_alone(changes: int) -> None:
    """The bodies that are asked meanwhile are nothing to it, and its last state can be told."""
    changing = Changing.begin()
    list(islice(changing.changes(), changes))
    client = new_client()
    for template in changing.templates():
        client.add_template(template)
    for one in changing.constraints:
        if one.exists:
            client.add_constraint(one.document())
    pod = json.loads((BODIES / "pod.json").read_text())["request"]["object"]
    assert denials(client, pod) == []
    del pod["metadata"]["labels"]["owner"]
    assert denials(client, pod) == []
    for word, message in changing.words():
        pod["metadata"]["labels"][LABEL] = word
        assert denials(client, pod) == ([message] if message else [])


def test_the_verdict_holds_when_all_is_well() -> None:
    judged = report.judged(result())
    assert judged["passed"]
    page = report.markdown(judged)
    assert "does NOT hold" not in page
    assert "**1.00 times** the quiet one" in page
    assert "| gatekeeper | changes | 1.00 | 9.00 | 2.95 | 3.00 | 3.0 | 0.05 | 0.100 |" in page


@pytest.mark.parametrize(
    ("churn", "broken"),
    [
        ({"p99_ms": 3.1}, "p99 at most 1.5 times the quiet one"),
        ({"failed": 1, "fault": "no answer"}, "no failed admission"),
        ({"wrong": 1, "fault": "allowed"}, "no wrong admission"),
        ({"changes": {"update": 17, "template": 2}}, "200 changes a minute"),
    ],
)
def test_the_verdict_fails_by_each_of_its_bounds(churn: dict[str, Any], broken: str) -> None:
    judged = report.judged(result(**churn))
    assert not judged["passed"]
    assert [name for name, holds in judged["verdicts"].items() if not holds] == [broken]
    assert f"**does NOT hold**: {broken}" in report.markdown(judged)


def test_a_wrong_answer_of_a_quiet_window_counts_too() -> None:
    found = result()
    found["rounds"]["waddle"][0]["quiet"]["wrong"] = 1
    assert not report.judged(found)["passed"]


def test_figures_are_medians_of_rounds_and_the_tail_is_of_all_together() -> None:
    found = result()
    for p99, slowest in ((8.0, 3000), (4.0, 3000)):
        one = {state: window(p99_ms=p99, latencies_us=[1000] * 99 + [slowest]) for state in STATES}
        found["rounds"]["waddle"].append(one)
    ours = report.judged(found)["programs"]["waddle"]
    assert ours["quiet"]["p99_ms"] == 4.0
    assert ours["quiet"]["p999_ms"] == 3.0
    assert report.percentile(range(1, 1001), 0.999) == 1.0
    assert report.percentile([], 0.5) == 0
