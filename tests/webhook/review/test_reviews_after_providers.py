"""Reviews that are made again once providers have answered: what is evaluated again, and what is found.

Groups, exceptions and ratchets over policies that ask take an answer that lacks for no verdict.
"""

from __future__ import annotations

import gc
import random
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.policies import constraint, exception, expansion_template, template
from tests.webhook.external_data.recorded import Answers, refused
from tests.webhook.mutation.documents import pod
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.expansion import Expansion, read_expansion_template
from webhook.constraint.findings import WAITING_RESULTS_MAX, Findings
from webhook.constraint.limits import UNTIL_NOW, Limits
from webhook.constraint.review import AugmentedObject
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.exceptions.reading import read_exception
from webhook.exceptions.stage import Excusing
from webhook.external_data.exchange import failure
from webhook.review.expanding import expand_value
from webhook.review.loops import review
from webhook.review.outcome import Found, Needs
from webhook.review.policy_set import PolicySet
from webhook.review.subject import Subject, played
from webhook.review.walk import walk

if TYPE_CHECKING:
    from webhook.constraint.constraint import Constraint
    from webhook.constraint.result import Responses
    from webhook.external_data.exchange import ProviderRequest

COUNTED = """package asks
violation[{"msg": msg}] {
  images := [c.image | c := input.review.object.spec.containers[_]]
  asked := external_data({"provider": "p", "keys": images})
  count(asked.errors) > 0
  msg := sprintf("%v are unsigned", [count(asked.errors)])
}"""
LABELLED = """package labelled
violation[{"msg": "no label"}] { not input.review.object.metadata.labels.owner }"""
PLACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}


def policies(**metadata: Any) -> Client:
    client = Client(targets=[AdmissionTarget()], drivers=[RegoDriver()])
    client.add_template(template("Asks", COUNTED))
    client.add_template(template("Labelled", LABELLED))
    client.add_constraint(constraint("Asks", "all", metadata=metadata))
    return client


def keys(ask: Answers) -> list[list[tuple[str, ...]]]:
    """Returns the keys of each round."""
    return [[request.keys for request in requests] for requests in ask.rounds]


def unsigned(request: ProviderRequest) -> Any:
    """Images that begin with an x are not signed."""
    answer = refused(request)
    errors = tuple(pair for pair in answer.errors or () if pair[0].startswith("x"))
    return answer._replace(errors=errors)


def test_what_is_excused_without_a_part_is_asked_about_without_it() -> None:
    """The review without the container asks something else; until that is known nothing is excused."""
    client = policies(annotations={"waddle.dev/exceptions": "all"})
    excused = exception("e", "Asks/all", namespace="shop", parts={"containers": ["c1"]})
    stages = (Excusing([read_exception(excused)]),)
    for images, left in ((("a", "x"), []), (("x", "x"), ["2 are unsigned"])):
        ask = Answers(unsigned)
        subject = Subject(AugmentedObject(pod(*images), PLACE))
        found = review(PolicySet(client.snapshot, stages=stages), subject, ask=ask)
        assert [one.msg for one in found.responses.results] == left
        assert keys(ask) == [[images], [images[:1]]]


def test_an_update_that_changes_nothing_is_asked_about_the_old_object_too() -> None:
    snapshot = policies(annotations={"waddle.dev/existing": "allow"}).snapshot
    for before, actions in (("x", ("warn",)), ("a", ("deny",))):
        ask = Answers(unsigned)
        value = played(pod("x-new"), PLACE, "UPDATE", pod(before))
        found = review(PolicySet(snapshot), Subject(value), ask=ask)
        assert [one.actions for one in found.responses.results] == [actions]
        assert keys(ask) == [[("x-new",)], [(before,)]]


NAMED = """package asks
asked := external_data({"provider": "p", "keys": [c.image | c := input.review.object.spec.containers[_]]})
violation[{"msg": msg}] { msg := sprintf("%v is unsigned", [asked.errors[_][0]]) }"""
CLOSED = f"""{NAMED}
violation[{{"msg": msg}}] {{ msg := sprintf("nobody knows: %v", [asked.system_error]); asked.system_error != "" }}"""


NO_C0 = """package named
violation[{"msg": "c0 is there"}] { input.review.object.spec.containers[_].name == "c0" }"""


def excusing(*containers: str) -> tuple[Excusing, ...]:
    """Returns a stage with an exception for each container."""
    of_each = (
        exception(name, "Asks/all", namespace="shop", parts={"containers": [name]})
        for name in containers
    )
    return (Excusing([read_exception(document) for document in of_each]),)


def asking(rego: str, annotation: str, value: str) -> Client:
    client = Client(targets=[AdmissionTarget()], drivers=[RegoDriver()])
    client.add_template(template("Asks", rego))
    client.add_constraint(constraint("Asks", "all", metadata={"annotations": {annotation: value}}))
    return client


def test_reviews_without_the_parts_of_many_exceptions_take_one_round() -> None:
    """And the review without all of them at once, for what none excuses alone, takes another."""
    snapshot = asking(NAMED, "waddle.dev/exceptions", "all").snapshot
    stages = excusing(*(f"c{number}" for number in range(6)))
    ask = Answers(unsigned)
    images = [f"x{number}" for number in range(7)]
    found = review(
        PolicySet(snapshot, stages=stages), Subject(AugmentedObject(pod(*images), PLACE)), ask=ask
    )
    assert [len(requests) for requests in ask.rounds] == [1, 6, 1]
    assert [one.msg for one in found.responses.results] == ["x6 is unsigned"]
    assert [one.excuse and one.excuse.name for one in found.responses.excused] == [
        f"c{number}" for number in range(6)
    ]


def test_no_exception_excuses_by_a_provider_that_fails_without_its_part() -> None:
    """The policy takes a failure for good news: its violation is gone, and not by the part."""
    snapshot = asking(NAMED, "waddle.dev/exceptions", "all").snapshot

    def answer(request: ProviderRequest) -> Any:
        return unsigned(request) if len(request.keys) == 2 else failure("no route to host")

    found = review(
        PolicySet(snapshot, stages=excusing("c0")),
        Subject(AugmentedObject(pod("a", "x"), PLACE)),
        ask=Answers(answer),
    )
    assert [one.msg for one in found.responses.results] == ["x is unsigned"]
    assert not found.responses.excused


@pytest.mark.parametrize(("before", "actions"), [("x-new", ("warn",)), ("a", ("deny",))])
def test_a_failure_was_there_before_only_if_the_same_request_fails(
    before: str, actions: tuple[str, ...]
) -> None:
    """Nobody knows the new image: that nobody knows the old one now is no earlier violation."""
    snapshot = asking(CLOSED, "waddle.dev/existing", "allow").snapshot
    ask = Answers(lambda _: failure("no route to host"))
    value = played(pod("x-new"), PLACE, "UPDATE", pod(before))
    found = review(PolicySet(snapshot), Subject(value), ask=ask)
    assert [(one.msg, one.actions) for one in found.responses.results] == [
        ("nobody knows: no route to host", actions)
    ]


def test_a_provider_that_fails_without_a_part_leaves_other_policies_exceptions() -> None:
    """It concerns the policy that asks it: an outage must not end exceptions of all others."""
    client = asking(NAMED, "waddle.dev/exceptions", "all")
    client.add_template(template("Named", NO_C0))
    metadata = {"annotations": {"waddle.dev/exceptions": "all"}}
    client.add_constraint(constraint("Named", "all", metadata=metadata))
    excused = exception("c0", "Named/all", namespace="shop", parts={"containers": ["c0"]})
    found = review(
        PolicySet(client.snapshot, stages=(Excusing([read_exception(excused)]),)),
        Subject(AugmentedObject(pod("a", "b"), PLACE)),
        ask=Answers(lambda _: failure("no route to host")),
    )
    assert not found.responses.results
    assert [one.msg for one in found.responses.excused] == ["c0 is there"]


@pytest.mark.parametrize(("expression", "denied"), [("a() && b()", True), ("a() || b()", True)])
def test_members_of_a_group_are_asked_together_and_none_is_decided_before(
    expression: str, denied: bool
) -> None:
    client = policies()
    client.remove_constraint("Asks", "all")
    client.add_constraint(
        {
            "apiVersion": "waddle.dev/v1alpha1",
            "kind": "ConstraintGroup",
            "metadata": {"name": "g"},
            "spec": {
                "members": {"a": {"kind": "Labelled"}, "b": {"kind": "Asks"}},
                "expression": expression,
            },
        }
    )
    ask = Answers(unsigned)
    found = review(PolicySet(client.snapshot), Subject(AugmentedObject(pod("x"))), ask=ask)
    assert not found.responses.faults
    assert bool(found.responses.results) is denied
    signed = review(
        PolicySet(client.snapshot), Subject(AugmentedObject(pod("a"))), ask=Answers(unsigned)
    )
    assert bool(signed.responses.results) is (expression == "a() && b()")


# --- what is evaluated again ------------------------------------------------------------------------

CHAINED = """package chained
violation[{"msg": msg}] {
  image := input.review.object.spec.containers[_].image
  owner := external_data({"provider": "p", "keys": [image]}).errors[_][1]
  asked := external_data({"provider": "owners", "keys": [sprintf("%v of %v", [owner, image])]})
  msg := sprintf("%v is %v", asked.errors[_])
}"""
CONFLICTING = """package conflicting
verdict = "a" { asked.status_code == 200 }
verdict = "b" { input.parameters.fails; count(asked.errors) > 0 }
asked := external_data({"provider": "p", "keys": [input.parameters.key]})
violation[{"msg": "no label"}] { verdict }"""
PARTLY = """package partly
violation[{"msg": "no label"}] { input.parameters.key == "" }
violation[{"msg": "no label"}] {
  input.parameters.fails
  clash(input.parameters.count) > 0
}
violation[{"msg": msg}] {
  not input.parameters.fails
  input.parameters.key != ""
  asked := external_data({"provider": "p", "keys": [input.parameters.key]})
  msg := sprintf("%v: %v", asked.errors[_])
}
clash(n) = 1 { n > 0 }
clash(n) = 2 { n > 1 }"""
"""Without a key it asks nobody, and with several it fails before it asks."""
MANY = """package many
violation[{"msg": sprintf("%v", [n])}] { n := numbers.range(1, input.parameters.count)[_] }"""


PARAMETERS = {
    "type": "object",
    "properties": {
        "key": {"type": "string"},
        "fails": {"type": "boolean"},
        "count": {"type": "integer"},
    },
}


class Evaluations:
    """Counts the evaluations of each constraint."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def evaluated(self, constraints: tuple[Constraint, ...], *_: Any) -> None:
        self.counts.update(one.name for one in constraints)


def mixed(*constraints: dict[str, Any]) -> Client:
    """Templates that ask, and others, with these constraints."""
    client = Client(targets=[AdmissionTarget()], drivers=[RegoDriver()])
    texts = {"Asks": COUNTED, "Labelled": LABELLED, "Chained": CHAINED, "Many": MANY}
    for kind, rego in {**texts, "Conflicting": CONFLICTING, "Partly": PARTLY}.items():
        client.add_template(template(kind, rego, schema=PARAMETERS))
    for one in constraints:
        client.add_constraint(one)
    return client


@pytest.mark.parametrize(("count", "evaluations"), [(3, 1), (WAITING_RESULTS_MAX + 1, 2)])
def test_only_what_asks_is_evaluated_again_unless_many_results_would_wait(
    count: int, evaluations: int
) -> None:
    client = mixed(
        constraint("Asks", "asks", enforcementAction="dryrun"),
        constraint("Labelled", "labelled"),
        constraint("Many", "many", parameters={"count": count}),
    )
    seen = Evaluations()
    subject = Subject(AugmentedObject(pod("x")), limits=Limits(observer=seen))
    found = review(PolicySet(client.snapshot), subject, ask=Answers(unsigned))
    assert seen.counts == {"asks": 2, "labelled": evaluations, "many": evaluations}
    assert found.responses.evaluated == 3
    assert len(found.responses.results) == count + 2


def test_what_an_object_implies_is_not_generated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    expansions: list[Any] = []

    def expand(*arguments: Any) -> Any:
        expansions.append(arguments)
        return expand_value(*arguments)

    monkeypatch.setattr("webhook.review.walk.expand_value", expand)
    expansion = Expansion([read_expansion_template(expansion_template("t"))])
    of_deployments = PolicySet(policies().snapshot, expansion=expansion)
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"template": {"spec": pod("x")["spec"]}},
    }
    subject = Subject(AugmentedObject(deployment))
    needs = walk(of_deployments, subject)
    assert type(needs) is Needs
    assert needs.again is not None
    answered = subject.with_answers(Answers(unsigned)(needs.requests))
    found = needs.again(Limits(known=answered.known, moment=subject.moment), answered.rounds)
    assert len(expansions) == 1
    whole = walk(of_deployments, answered)
    assert type(found) is type(whole) is Found
    assert found.responses.results == whole.responses.results != ()
    assert found.implied == whole.implied != ()


def test_the_time_of_a_review_counts_in_each_round() -> None:
    """Constraints whose answers arrive too late are undecided, as unevaluated ones are."""
    client = mixed(constraint("Asks", "asks"), constraint("Labelled", "labelled"))
    subject = Subject(AugmentedObject(pod("x")))
    needs = walk(PolicySet(client.snapshot), subject)
    assert type(needs) is Needs
    late = replace(subject.with_answers(Answers(unsigned)(needs.requests)), limits=UNTIL_NOW)
    found = walk(PolicySet(client.snapshot), late)
    assert type(found) is Found
    assert found.responses.deadline_exceeded


def test_what_waited_for_a_provider_is_let_go_without_a_collection_of_garbage() -> None:
    client = mixed(constraint("Asks", "asks"), constraint("Labelled", "labelled"))
    subject = Subject(AugmentedObject(pod("x")))
    limits = Limits(moment=subject.moment, known=subject.known)
    gc.collect()
    gc.disable()
    try:
        client.snapshot.review(subject.value, limits=limits)
        begun = subject.moment.begun
        assert begun is not None
        held = id(begun[1])
        del subject, limits, begun
        assert held not in [id(one) for one in gc.get_objects() if type(one) is Findings]
    finally:
        gc.enable()


PARTS = ("Partly",) * 4


def some_constraints(chance: random.Random) -> list[dict[str, Any]]:
    made = []
    for number in range(chance.randint(2, 9)):
        kind = chance.choice(("Asks", "Labelled", "Chained", "Conflicting", "Many", *PARTS))
        parameters: dict[str, Any] = {
            "key": chance.choice(("a", "x", "")),
            "fails": chance.random() < 0.5,
            "count": chance.choice((1, 3, 60)),
        }
        action = chance.choice(("deny", "deny", "warn", "dryrun"))
        name = f"{chance.choice('abc')}{number}"
        metadata = (
            {"annotations": {"waddle.dev/on-error": chance.choice(("reject", "allow"))}}
            if chance.random() < 0.2
            else {}
        )
        made.append(
            constraint(
                kind, name, metadata=metadata, enforcementAction=action, parameters=parameters
            )
        )
    return made


@pytest.mark.parametrize("seed", range(60))
def test_rounds_find_what_is_found_where_all_answers_are_known(seed: int) -> None:
    chance = random.Random(seed)  # a test's
    snapshot = mixed(*some_constraints(chance)).snapshot
    images = [f"{chance.choice('ax')}{number}" for number in range(chance.randint(1, 3))]
    value = AugmentedObject(pod(*images))
    ask = Answers(unsigned)
    found = review(PolicySet(snapshot), Subject(value), ask=ask)
    at_once = snapshot.review(value, limits=Limits(known=unsigned))
    assert compared(found.responses) == compared(at_once)


def compared(responses: Responses) -> tuple[Any, ...]:
    """Returns all fields but the answers of providers."""
    return tuple(responses._replace(answers=None))
