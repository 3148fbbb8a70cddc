"""Plans: what constraints of other namespaces cost a review, and what plans cost memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.webhook.constraint.policies import client, constraint, pod, template
from webhook.constraint import enforcement, plan
from webhook.constraint.review import AugmentedObject

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
    """Of twenty-one matchers two are left, however many namespaces have constraints."""
    assert found(teams, "team-7") == {"all", "most", "team-7"}
    assert len(kept(teams).matchers) == 21
    assert len(kept(teams).at("team-7").matchers) == 2
    assert kept(teams).at(None) is kept(teams)


@pytest.mark.parametrize("most", [1, plan.PLACED_MAX])
def test_each_namespace_has_its_constraints_however_few_plans_are_kept(
    teams: Client, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "PLACED_MAX", most)
    for name in (*NAMESPACES, *NAMESPACES, "elsewhere"):
        own = {name} & set(NAMESPACES)
        assert found(teams, name) == {"all", *(["most"] if name != "team-0" else []), *own}
    assert len(kept(teams).places) == (1 if most == 1 else 21)
