"""Policies that cannot be used are reported before anybody applies them."""

from typing import Any

import pytest

from tests.webhook.constraint.policies import client, constraint, template
from webhook.policies.problem import Problem
from webhook.policies.samples import SAMPLES_MAX, samples
from webhook.policies.validation import validate

SECONDS = 0.2
ENDLESS = """package p
violation[{"msg": "m"}] {
  r := numbers.range(1, 3000)
  count([1 | r[i]; r[j]; r[k]; i + j + k == -1]) > 0
}"""
FAILING = """package p
violation[{"msg": "m"}] { f(input.review.object.metadata.name) == 3 }
f(x) = 1 { true }
f(x) = 2 { x != "" }"""


def problems(*documents: dict[str, Any]) -> list[Problem]:
    """Returns the problems of these documents alone."""
    return validate(client(), documents, SECONDS)


def test_policies_that_work_have_no_problem() -> None:
    """In any order."""
    assert problems(constraint(), template()) == []


def test_a_source_that_does_not_compile_has_line_and_column() -> None:
    """Its constraints have no template then, and are reported."""
    broken, orphan = problems(constraint(), template(rego="package p\nviolation[{"))
    assert broken.code == "ingest_error"
    assert "template:2" in broken.message
    assert "has no revision that can be used" in orphan.message


def test_a_constraint_is_checked_as_admission_does_it() -> None:
    """Its action, its roll-out and its onError are checked."""
    for change, message in (
        ({"spec": {"enforcementAction": "maybe"}}, "maybe"),
        ({"metadata": {"annotations": {"waddle.dev/rollout": "x"}}}, "dryrun or warn"),
        ({"metadata": {"annotations": {"waddle.dev/on-error": "x"}}}, "on-error"),
    ):
        document = constraint()
        for field, value in change.items():
            document[field] = {**document.get(field, {}), **value}
        (problem,) = problems(template(), document)
        assert message in problem.message
        assert problem.severity == "error"


def test_a_policy_that_does_not_end_is_refused() -> None:
    """On a sample, within its budget."""
    (problem,) = problems(template(rego=ENDLESS), constraint())
    assert (problem.severity, problem.code) == ("error", "overrun")
    assert "on a sample" in problem.message


def test_an_error_of_evaluation_is_a_warning() -> None:
    """A real object may have what the sample lacks."""
    (problem,) = problems(template(rego=FAILING), constraint())
    assert (problem.severity, problem.code) == ("warning", "evaluation")
    assert "conflict" in problem.message


@pytest.mark.parametrize("msg", ["5", "null", "true", '["a"]', '{"a": 1}', "{1}"])
def test_a_message_that_is_no_text_is_refused(msg: str) -> None:
    """No object can be denied by it: each review of it ends in an error."""
    rego = f'package p\nviolation[{{"msg": {msg}}}] {{ input.review }}\n'
    (problem,) = problems(template(rego=rego), constraint())
    assert (problem.severity, problem.code) == ("error", "evaluation")
    assert "expected string" in problem.message


def test_a_new_template_is_tried_with_the_constraints_in_force() -> None:
    """A template in force would meet these constraints."""
    known = client()
    known.add_template(template())
    known.add_constraint(constraint())
    (problem,) = validate(known, [template(rego=ENDLESS)], SECONDS)
    assert (problem.code, problem.name) == ("overrun", constraint()["metadata"]["name"])


@pytest.mark.parametrize(
    ("match", "kinds"),
    [
        (None, ["Pod"]),
        ({"kinds": [{"apiGroups": ["apps"], "kinds": ["Deployment"]}]}, ["Deployment"]),
        ({"kinds": [{"apiGroups": ["*"], "kinds": ["*"]}]}, ["Pod"]),
        ({"kinds": "nonsense"}, ["Pod"]),
        ({"kinds": [{"apiGroups": ["", "x"], "kinds": ["Service", "Y"]}]}, ["Service", "Y"] * 2),
        (
            {"kinds": [{"kinds": [f"K{n}" for n in range(99)]}]},
            [f"K{n}" for n in range(SAMPLES_MAX)],
        ),
    ],
)
def test_samples_are_of_the_kinds_that_a_constraint_is_about(
    match: dict[str, Any] | None, kinds: list[str]
) -> None:
    """A Pod where it says none."""
    assert [item["kind"] for item in samples(match)] == kinds
