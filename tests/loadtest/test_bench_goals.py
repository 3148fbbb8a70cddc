"""The benchmark's verdicts: each goal is judged by its own figures, on the right side."""

from typing import Any

import pytest

from loadtest.bench import pictures, policies
from loadtest.bench.goals import CPU, verdicts
from loadtest.bench.report import verdict_lines


def figures(cpu: float, rate: float) -> dict[str, float]:
    """Returns a server's medians."""
    return {CPU: cpu, "requests_per_second": rate, "p99_ms": cpu * 3}


def result() -> dict[str, Any]:
    """A run in which everything holds."""
    gatekeeper = {"p1": 1.0, "p12": 10.0, "p100": 30.0, "p1000": 100.0}
    points = [
        {
            "set": name,
            "body": "pod",
            "connections": 8,
            "waddle": figures(cpu / 60, 1000),
            "gatekeeper": figures(cpu, 50),
        }
        for name, cpu in gatekeeper.items()
    ]
    points[0]["floor"] = figures(1.0, 1000)
    points[3]["waddle-p12"] = figures(2.0, 1000)
    memory = {"waddle": 40.0, "gatekeeper": 100.0, "requests": 10_000}
    return {
        "points": points,
        "schedule": [
            {"set": name, "rate": 10.0, "waddle": {"p99_ms": 1.0}, "gatekeeper": {"p99_ms": 11.0}}
            for name in gatekeeper
        ],
        "memory": {name: dict(memory) for name in gatekeeper},
        "traces": [
            {"set": name, "trace": trace, "ratio": 1.4}
            for name in ("p12", "p100")
            for trace in ("rollout", "updates", "mix")
        ],
        "start": {name: {"waddle": 1.0, "gatekeeper": 2.1} for name in ("p1", "p12", "p100")},
    }


def test_every_goal_is_judged() -> None:
    judged = verdicts(result())
    assert len(judged) == 20
    assert all(one.met for one in judged)
    lines = verdict_lines([one.as_json() for one in judged])
    assert lines.count("met    ") == 20


@pytest.mark.parametrize(
    ("path", "value", "goal"),
    [
        (("points", 0, "waddle", CPU), 0.26, "CPU for each request, 1 constraint"),
        (("points", 1, "waddle", CPU), 0.51, "CPU for each request, 12 constraints"),
        (("points", 2, "waddle", CPU), 1.06, "CPU for each request, 100 constraints"),
        (("points", 3, "waddle", CPU), 2.61, "CPU with 1,000 constraints of which 12 match"),
        (("points", 0, "floor", CPU), 0.01, "CPU with 1 constraint, beside a bare"),
        (("points", 1, "waddle", "requests_per_second"), 499, "saturation of one core"),
        (("traces", 0, "ratio"), 1.6, "CPU on the trace 'rollout', 12 constraints"),
        (("schedule", 1, "waddle", "p99_ms"), 2.1, "p99 at half of Gatekeeper's saturation, 12"),
        (("start", "p1", "waddle"), 1.1, "start to ready, 1 constraint"),
        (("memory", "p12", "waddle"), 101, "memory after 10,000 requests, 12 constraints"),
        (("memory", "p1000", "waddle"), 81, "memory after 10,000 requests, 1,000 constraints"),
    ],
)
def test_a_goal_that_does_not_hold_is_reported_alone(
    path: tuple[Any, ...], value: float, goal: str
) -> None:
    """A figure on the wrong side of its bound changes one verdict, and no other."""
    changed = result()
    place = changed
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    missed = [one.goal for one in verdicts(changed) if not one.met]
    assert len(missed) == 1
    assert missed[0].startswith(goal)


def test_the_pictures_have_both_servers() -> None:
    drawn = pictures.draw(result())
    assert set(drawn) == {"cpu", "p99", "memory"}
    for text in drawn.values():
        assert "waddle" in text
        assert "gatekeeper" in text


def test_a_thousand_constraints_of_which_twelve_match_are_what_they_say() -> None:
    templates, constraints = policies.with_idle(1000)
    assert (len(templates), len(constraints)) == (12, 1000)
    assert len({(one["kind"], one["metadata"]["name"]) for one in constraints}) == 1000
    matching = [
        one
        for one in constraints
        if "namespaces" not in one["spec"]["match"]
        and one["spec"]["match"]["kinds"] != policies.OTHER_KINDS
    ]
    assert len(matching) == 12


def test_copies_of_constraints_ask_questions_of_their_own() -> None:
    """Equal parameters share an evaluation: a curve of copies would be too flat."""
    _, constraints = policies.matching(1000)
    questions = [repr((one["kind"], one["spec"].get("parameters"))) for one in constraints]
    assert len(set(questions)) > 400
