"""Plans: what constraints of other namespaces cost a review, and what plans cost memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.webhook.constraint.policies import client, constraint, pod, template
from webhook.api.admission import read_request
from webhook.constraint import enforcement, plan
from webhook.constraint.review import AugmentedObject, AugmentedReview

if TYPE_CHECKING:
    from webhook.constraint.client import Client

NAMESPACES = [f"team-{number}" for number in range(20)]


@pytest.fixture
def teams() -> Client:
    """A constraint for each namespace, one for all but one, and one for all."""
    return client(
        template(),
        constraint(name="all"),
        constraint(name="most", match={"excludedNamespaces": ["team-0"]}),
        *(constraint(name=name, match={"namespaces": [name]}) for name in NAMESPACES),
    )


def found(subject: Client, namespace: str) -> set[str]:
    """The constraints that a Pod of a namespace violates."""
    responses = subject.snapshot.review(AugmentedObject(pod(namespace=namespace)))
    return {result.constraint.name for result in responses.results}


def kept(subject: Client) -> plan.Plan:
    """The plan for Pods."""
    return subject.snapshot.plan(enforcement.ALL, "admission.k8s.gatekeeper.sh", ("", "Pod"))


def test_constraints_of_other_namespaces_are_not_asked(teams: Client) -> None:
    """Of twenty-one matchers none is left: the namespace says what the lists say of it."""
    assert found(teams, "team-7") == {"all", "most", "team-7"}
    assert len(kept(teams).matchers) == 21
    assert kept(teams).at("team-7").matchers == ()
    assert kept(teams).at(None) is kept(teams)


def test_what_a_namespace_does_not_settle_is_asked_there() -> None:
    labelled = {"labelSelector": {"matchLabels": {"app": "web"}}, "excludedNamespaces": ["away"]}
    subject = client(
        template(),
        constraint(name="all"),
        constraint(name="most", match={"excludedNamespaces": ["away"]}),
        constraint(name="labelled", match=labelled),
    )
    assert len(kept(subject).at("here").matchers) == 1
    for name in ("here", "there"):
        assert found(subject, name) == {"all", "most"}
    assert found(subject, "away") == {"all"}


def test_kinds_are_asked_of_an_object_that_becomes_another_kind_in_its_namespace() -> None:
    listed = {"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}], "excludedNamespaces": ["away"]}
    subject = client(template(), constraint(name="pods", match=listed))
    new, old = ({**pod(namespace="here"), "kind": kind} for kind in ("Service", "Secret"))
    for before, names in ((old, set()), (pod(namespace="here"), {"pods"})):
        request = read_request({"uid": "u", "object": new, "oldObject": before})
        responses = subject.snapshot.review(AugmentedReview(request))
        assert {result.constraint.name for result in responses.results} == names


@pytest.mark.parametrize("most", [1, plan.PLACED_MAX])
def test_each_namespace_has_its_constraints_however_few_plans_are_kept(
    teams: Client, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "PLACED_MAX", most)
    for name in (*NAMESPACES, *NAMESPACES, "elsewhere"):
        own = {name} & set(NAMESPACES)
        assert found(teams, name) == {"all", *(["most"] if name != "team-0" else []), *own}
    assert len(kept(teams).places) == (1 if most == 1 else 21)
