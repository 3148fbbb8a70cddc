"""Templates whose values double with every line: others are decided, and probes answered, meanwhile."""

import re
from pathlib import Path

import pytest
import yaml

from tests.behaviour.serving import (
    REQUIRED_LABELS,
    Server,
    constraint,
    pod,
    thing,
    write_policies,
)
from tests.repeating import Repeating
from tests.webhook.constraint.doubling import CONDITIONS, DOUBLING, HEADS

FAR = 39
"""2^40 texts when written."""

NEAR = 13
"""Half of what may be written at once."""

GROUPS = 4
"""Constraints that a request meets."""


def source(rule: str) -> str:
    """A rule with the values that it names, of constants and of the review."""
    letters = {*re.findall(r"\b([cdopst])\d+\b", rule)}
    firsts = {
        "c": 'c0 := ["aaaaaaaa"]',
        "d": "d0 := [input.review.object.data.a]",
        "o": 'o0 := {"x": "aaaaaaaa"}',
        "p": 'p0 := {"x": input.review.object.data.a}',
        "s": 's0 := {"aaaaaaaa"}',
        "t": "t0 := {input.review.object.data.a}",
    }
    doubling = [line for line in DOUBLING.splitlines() if line[0] in letters]
    lines = [*(firsts[letter] for letter in sorted(letters)), *doubling]
    return "\n".join(["package p", "import future.keywords", *lines, "f(x) := [x, x]", rule])


def rules() -> list[str]:
    """Every form of doubling.py, as it is there and with smaller values."""
    found = [f'violation contains {{"msg": msg}} if {{ {text} }}' for text in CONDITIONS] + HEADS
    return found + [re.sub(rf"\b([cdopst]){FAR}\b", rf"\g<1>{NEAR}", rule) for rule in found]


def policies() -> list[str]:
    """A template and a constraint for each; a request of a group meets a few of them."""
    documents = []
    for number, rule in enumerate(rules()):
        kind = f"Doubling{number}"
        code = {"engine": "Rego", "source": {"version": "v1", "rego": source(rule)}}
        documents.append(
            {
                "apiVersion": "templates.gatekeeper.sh/v1",
                "kind": "ConstraintTemplate",
                "metadata": {"name": kind.lower()},
                "spec": {
                    "crd": {"spec": {"names": {"kind": kind}}},
                    "targets": [{"target": "admission.k8s.gatekeeper.sh", "code": [code]}],
                },
            }
        )
        labels = {"matchLabels": {"doubling": str(number // GROUPS)}}
        documents.append(
            {
                "apiVersion": "constraints.gatekeeper.sh/v1beta1",
                "kind": kind,
                "metadata": {"name": "doubling"},
                "spec": {"match": {"labelSelector": labels}},
            }
        )
    return [yaml.safe_dump(document) for document in documents]


@pytest.fixture
def server(tmp_path: Path):
    folder = write_policies(tmp_path, REQUIRED_LABELS, constraint("x", "owner"), *policies())
    with Server(folder, "--log-denies") as running:
        yield running.ready()


def test_probes_and_others_are_answered_while_values_that_double_are_reviewed(
    server: Server,
) -> None:
    """In messages, details, keys, members, prints, comparisons, and lines of the log."""
    probes: list[int] = []
    others: list[bool] = []
    answers: list[bool] = []
    with Repeating(
        lambda: probes.append(server.get("health", "/readyz").status),
        lambda: others.append(server.admit(pod(owner="me"))["allowed"]),
        pause_seconds=0.01,
    ):
        for group in range(-(-len(rules()) // GROUPS)):
            victim = thing("ConfigMap", data={"a": "aaaaaaaa"})
            victim["metadata"]["labels"] = {"doubling": str(group)}
            answers.append(server.admit(victim)["allowed"])
    # Undecided values are refused; smaller ones are decided.
    assert not any(answers[: len(rules()) // 2 // GROUPS])
    assert set(probes) == {200}
    assert set(others) == {True}
    assert len(probes) > len(rules()) // GROUPS
    assert server.metric("waddle_engine_faults_total") in (None, 0)
