"""Groups, exceptions and ratchets over policies that ask providers: an answer that lacks is no verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.policies import constraint, exception, template
from tests.webhook.external_data.recorded import Answers, refused
from tests.webhook.mutation.documents import pod
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.review import AugmentedObject
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.exceptions.reading import read_exception
from webhook.exceptions.stage import Excusing
from webhook.review.loops import review
from webhook.review.policy_set import PolicySet
from webhook.review.subject import Subject, played

if TYPE_CHECKING:
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
    """Those of each round."""
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
