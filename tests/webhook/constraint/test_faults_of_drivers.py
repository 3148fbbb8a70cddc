"""Any exception or delay of an evaluation costs its own policy alone: others still deny."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.webhook.constraint.policies import DENY, client, constraint, pod, template
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.errors import PolicyError
from webhook.constraint.limits import Budget, Limits
from webhook.constraint.review import AugmentedObject
from webhook.constraint.target import CompiledMatch
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.policies.problem import FAULT
from webhook.policies.validation import validate

if TYPE_CHECKING:
    from webhook.constraint.driver import DriverViolation

RAISED = [
    TypeError("object of type 'bool' has no len()"),
    KeyError("x"),
    AssertionError(),
    RecursionError(),
    MemoryError(),
    UnicodeEncodeError("utf-8", "x", 0, 1, "surrogates"),
    ValueError("Exceeds the limit (4300 digits) for integer string conversion"),
    StopIteration(),
    OSError(),
    PolicyError("fails"),
    PolicyError("no text", no_verdict=True),
]


class Raising:
    """An evaluator that raises as it begins, or as it evaluates."""

    reads_constraint = False

    def __init__(self, error: Exception, *, at_once: bool) -> None:
        self.error = error
        self.at_once = at_once

    def begin(self, limits: Any, inventory: Any, shared: Any = None) -> Any:
        """Returns the shared state of evaluations."""
        if self.at_once:
            raise self.error
        return limits, inventory

    def evaluate(self, parameters: Any, review: Any, state: Any) -> list[DriverViolation]:
        """Never gives anything."""
        raise self.error


class RaisingDriver:
    """An engine whose every evaluation ends in an exception."""

    name = "Raising"

    def __init__(self, error: Exception, *, at_once: bool) -> None:
        self.evaluator = Raising(error, at_once=at_once)

    def compile(self, template: Any, code: Any) -> Raising:
        """Returns the evaluator for any source."""
        return self.evaluator


def with_denial(error, on_bug=None, *, at_once=False):
    """A client with a policy that raises, and another that denies."""
    drivers: Any = [RaisingDriver(error, at_once=at_once), RegoDriver()]
    subject = Client(targets=[AdmissionTarget()], drivers=drivers, on_bug=on_bug)
    raising = {"code": [{"engine": "Raising", "source": {}}]}
    subject.add_template(template("K8sRaises", "", target=raising))
    subject.add_constraint(constraint("K8sRaises", "raises"))
    subject.add_template(template("K8sDeny", DENY))
    subject.add_constraint(constraint("K8sDeny", "denies"))
    return subject


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("budget", [None, Budget.of(1.0)])
@pytest.mark.parametrize("error", RAISED, ids=repr)
def test_what_others_deny_is_denied(error, budget, at_once):
    subject = with_denial(error, at_once=at_once)
    answer = subject.snapshot.review(AugmentedObject(pod()), limits=Limits(budget=budget))
    assert ("denies", "no") in [(item.constraint.name, item.msg) for item in answer.results]
    of_raising = [
        *(item for item in answer.results if item.constraint.name == "raises"),
        *answer.undecided,
        *answer.faults,
    ]
    assert len(of_raising) == 1


def test_a_fault_of_ours_is_reported_with_the_template_and_what_it_was():
    bugs: list[tuple[str, Exception]] = []
    error = TypeError("x")
    subject = with_denial(error, lambda kind, bug: bugs.append((kind, bug)))
    answer = subject.snapshot.review(AugmentedObject(pod()))
    assert bugs == [("K8sRaises", error)]
    assert "policy met a fault of the engine: TypeError" in [item.msg for item in answer.results]


class RaisingTarget(AdmissionTarget):
    """A target whose matchers raise where a match names namespaces."""

    def compile_match(self, match: Any) -> CompiledMatch:
        """Returns the target's match, or one that raises."""

        def raises(review: Any) -> bool:
            raise TypeError(review)

        if "namespaces" not in match:
            return super().compile_match(match)
        return CompiledMatch(lambda key: key is not None, raises, "raises", raises)


def test_a_matcher_that_raises_costs_its_constraint_alone():
    subject = Client(targets=[RaisingTarget()], drivers=[RegoDriver()])
    subject.add_template(template("K8sDeny", DENY))
    subject.add_constraint(constraint("K8sDeny", "a", match={"namespaces": ["x"]}))
    subject.add_constraint(constraint("K8sDeny", "b", match={"name": pod()["metadata"]["name"]}))
    answer = subject.snapshot.review(AugmentedObject(pod()))
    assert {item.constraint.name: item.msg for item in answer.results} == {
        "a": "unable to match constraints: fault of Waddle: TypeError",
        "b": "no",
    }


@pytest.mark.parametrize("error", [TypeError("x"), KeyError("x"), AssertionError()], ids=repr)
def test_what_ends_in_a_fault_of_ours_as_it_is_tried_is_an_error(error):
    subject = with_denial(error)
    of = [template("K8sDeny", DENY), constraint("K8sDeny", "denies")]
    assert validate(subject, of, 1.0) == []
    problems = validate(subject, [constraint("K8sRaises", "raises", match={})], 1.0)
    assert [(item.code, item.severity, item.name) for item in problems] == [
        (FAULT, "error", "raises")
    ]


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["msg", "details", "mgs", "Msg", "", "é"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)
SHAPES = {
    "value": "violation = x { x := input.parameters.given }",
    "member": "violation[x] { x := input.parameters.given }",
    "members": "violation[x] { x := input.parameters.given[_] }",
    "set": "violation = {x} { x := input.parameters.given }",
    "key": "violation[x] = 1 { x := input.parameters.given }",
    "msg": 'violation[{"msg": x}] { x := input.parameters.given }',
    "details": 'violation[{"msg": "m", "details": x}] { x := input.parameters.given }',
    "details of sets": 'violation[{"msg": "m", "details": {x}}] { x := input.parameters.given }',
    "keys of objects": 'violation[{"msg": "m", x: {x: 1}}] { x := input.parameters.given }',
}
CLIENTS = {
    name: client(
        template(
            rego=f"package p\n{rego}",
            schema={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        )
    )
    for name, rego in SHAPES.items()
}


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(SHAPES)), JSON)
def test_results_of_any_shape_are_violations_or_a_fault_of_the_policy(shape, value):
    subject = CLIENTS[shape].copy()
    bugs: list[Exception] = []
    subject.add_constraint(constraint(parameters={"given": value}))
    snapshot = subject.snapshot
    snapshot.on_bug = lambda _, bug: bugs.append(bug)
    answer = snapshot.review(AugmentedObject(pod()))
    assert bugs == []
    assert all(type(item.msg) is str for item in answer.results)
    assert not answer.undecided
