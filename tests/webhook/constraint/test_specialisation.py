"""Constraints that are evaluated often get code of their own, which answers as before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.webhook.constraint.policies import template
from tests.webhook.constraint.specialising import AFTER, specialiser
from webhook.constraint.drivers.rego import RegoDriver, RegoEvaluator
from webhook.constraint.drivers.specialisation import KNOWN_MIN, MAX_WAITING, Specialiser
from webhook.constraint.errors import PolicyError
from webhook.constraint.limits import UNLIMITED, Limits
from webhook.constraint.template import Code, read_template
from webhook.external_data.exchange import ProviderResponse

if TYPE_CHECKING:
    from collections.abc import Callable


LABELS = """package p
wanted contains label if some label in input.parameters.labels
violation contains {"msg": msg, "details": {"missing": missing}} if {
	missing := wanted - {label | some label, _ in input.review.object.labels}
	count(missing) > 0
	msg := sprintf("missing %v of %v", [missing, input.parameters.labels])
}
"""


def compiled(rego: str, own: Specialiser | None, **options: Any) -> RegoEvaluator:
    """A template's evaluator."""
    driver = RegoDriver(specialiser=own, **options)
    code = Code("Rego", {"rego": rego, "version": "v1"})
    return driver.compile(read_template(template()), code)


def violations(
    evaluator: RegoEvaluator, parameters: Any, review: Any, limits: Limits = UNLIMITED
) -> list[Any]:
    """Returns the violations of one review."""
    return list(evaluator.evaluate(parameters, review, evaluator.begin(limits, {})))


def review(*labels: str) -> dict[str, Any]:
    """A review of an object with these labels."""
    return {"object": {"labels": dict.fromkeys(labels, "x")}}


def test_a_constraint_gets_its_code_after_enough_evaluations_and_answers_the_same():
    own = specialiser()
    special, general = compiled(LABELS, own), compiled(LABELS, None)
    few, many = {"labels": ["a"]}, {"labels": ["a", "b", "c"]}
    reviews = [review(), review("a"), review("b"), review("a", "b", "c"), {"object": {"labels": 5}}]
    for number in range(4 * AFTER):
        for parameters in (few, many):
            for one in reviews:
                assert violations(special, parameters, one) == violations(general, parameters, one)
        if not number:
            assert own.constraints == 2
    assert own.constraints == 2
    assert own.bytes > 1000


def test_constraints_that_are_evaluated_seldom_get_none():
    own = specialiser(evaluations=100)
    evaluator = compiled(LABELS, own)
    kept = [{"labels": [str(number)]} for number in range(50)]
    for parameters in kept:
        for _ in range(99):
            violations(evaluator, parameters, review())
    assert own.constraints == 0


def test_the_total_is_kept_and_what_is_evaluated_no_more_gives_its_code_back():
    own = specialiser(max_bytes=1)
    evaluator = compiled(LABELS, own)
    first, second = {"labels": ["a"]}, {"labels": ["b"]}

    def evaluate(parameters: Any) -> None:
        (found,) = violations(evaluator, parameters, review())
        assert (
            found.msg == f'missing {{"{parameters["labels"][0]}"}} of ["{parameters["labels"][0]}"]'
        )

    for _ in range(AFTER):
        evaluate(first)
    assert own.constraints == 1
    for _ in range(AFTER):
        evaluate(second)
    assert (own.constraints, own.refused) == (1, 1)  # the first was just looked at: still in use
    for _ in range(AFTER):
        evaluate(second)
    assert (own.constraints, own.refused) == (1, 1)  # the first was not evaluated since
    evaluate(first)
    evaluate(second)


def test_what_waits_is_bounded_and_asks_again():
    waiting: list[Callable[[], None]] = []
    own = Specialiser(waiting.append, evaluations=AFTER)
    evaluator = compiled(LABELS, own)
    kept = [{"labels": [str(number)]} for number in range(MAX_WAITING + 5)]

    def evaluate_all() -> None:
        for parameters in kept:
            for _ in range(AFTER):
                violations(evaluator, parameters, review())

    evaluate_all()
    assert len(waiting) == MAX_WAITING
    while waiting:
        waiting.pop()()
    assert own.constraints == MAX_WAITING
    evaluate_all()
    assert len(waiting) == 5


def test_constraints_that_are_gone_are_forgotten_with_their_code():
    own = specialiser(evaluations=1)
    evaluator = compiled(LABELS, own)
    stays = {"labels": ["stays"]}
    for number in range(10 * KNOWN_MIN):
        violations(evaluator, {"labels": [str(number)]}, review())
        violations(evaluator, stays, review())
    assert own.constraints <= 2 * KNOWN_MIN


def test_constraints_that_take_turns_are_all_known():
    """Many of one template, each evaluated once for a review."""
    own = specialiser(evaluations=5)
    evaluator = compiled(LABELS, own)
    kept = [{"labels": [str(number)]} for number in range(5 * KNOWN_MIN)]
    for _ in range(5):
        for parameters in kept:
            violations(evaluator, parameters, review())
    assert own.constraints == len(kept)


def test_a_template_that_goes_takes_the_code_of_its_constraints_along():
    own = specialiser(evaluations=1)
    evaluator = compiled(LABELS, own)
    violations(evaluator, {"labels": ["a"]}, review())
    assert own.constraints == 1
    del evaluator
    assert (own.constraints, own.bytes) == (0, 0)


def test_parameters_that_the_policy_replaces_stay_in_the_general_code():
    rego = """package p
limit := input.parameters.limit
violation contains {"msg": msg} if {
	y := limit with input.parameters as {"limit": 7}
	msg := sprintf("%v and %v", [limit, y])
}
"""
    own = specialiser()
    evaluator = compiled(rego, own)
    parameters = {"limit": 3}
    for _ in range(3 * AFTER):
        assert violations(evaluator, parameters, {}) == [("3 and 7", {})]
    assert own.constraints == 0


def test_time_chance_and_providers_are_asked_at_every_evaluation():
    requests: list[Any] = []

    def provider(request: Any) -> Any:
        requests.append(request)
        return ProviderResponse((("k", len(requests)),), (), 200)

    rego = """package p
now := time.now_ns()
chance := rand.intn(input.parameters.name, 1000000000)
told := external_data({"provider": input.parameters.name, "keys": ["k"]}).responses[0][1]
violation contains {"msg": sprintf("%v %v %v", [now, chance, told])} if input.parameters.name
"""
    own = specialiser()
    evaluator = compiled(rego, own)
    parameters = {"name": "x"}
    limits = Limits(known=provider)
    found = [violations(evaluator, parameters, {}, limits)[0].msg for _ in range(4 * AFTER)]
    assert own.constraints == 1
    assert len(requests) == len(found)
    for column in zip(*(text.split() for text in found), strict=True):
        assert len(set(column)) == len(found)


def test_what_a_policy_prints_is_printed_at_every_evaluation():
    rego = """package p
limit := x if {
	x := input.parameters.limit
	print("limit", x)
}
violation contains {"msg": "over"} if limit < 5
"""
    lines: list[str] = []
    limits = Limits(print_=lambda _, line: lines.append(line))
    evaluator = compiled(rego, specialiser())
    parameters = {"limit": 3}
    for number in range(1, 3 * AFTER):
        assert violations(evaluator, parameters, {}, limits) == [("over", {})]
        assert lines == ["limit 3"] * number


@pytest.mark.parametrize("parameters", [{"x": [1, 2]}, {"x": [2, 1, 1]}])
def test_an_error_that_only_parameters_decide_stays_an_error(parameters: Any):
    rego = """package p
first := x if some x in input.parameters.x
violation contains {"msg": sprintf("%v", [first])} if input.review.object
"""
    evaluator = compiled(rego, specialiser())
    assert violations(evaluator, parameters, {}) == []
    for _ in range(3 * AFTER):
        with pytest.raises(PolicyError, match="complete rules must not produce multiple outputs"):
            violations(evaluator, parameters, {"object": {}})
        assert violations(evaluator, parameters, {}) == []


def test_an_evaluation_of_its_own_code_ends_with_its_budget():
    rego = """package p
violation contains {"msg": "many"} if {
	some a in input.parameters.xs
	some b in input.parameters.xs
	some c in input.review.xs
	a * b * c < 0
}
"""
    own = specialiser()
    evaluator = compiled(rego, own)
    parameters = {"xs": list(range(100))}
    for _ in range(2 * AFTER):
        with pytest.raises(PolicyError, match="exceeded its budget"):
            violations(evaluator, parameters, {"xs": list(range(100))}, Limits(steps=100_000))
    assert own.constraints == 1
