"""Listed kinds, and constraints that a failed kind leaves undecided."""

import asyncio
from typing import Any

import pytest

from tests.webhook.audit.made import DEPLOYMENT, POD, SECRET, constraint, snapshot, template
from webhook.api.resource import Resource
from webhook.audit.kinds import is_matchable, listable, undecided
from webhook.cluster.errors import ApiUnreachable
from webhook.constraint.expansion import Expansion, ExpansionTemplate

EXPANSION = Expansion(
    [ExpansionTemplate("deployments", frozenset({DEPLOYMENT}), ("spec", "template"), POD)]
)
NOWHERE = {
    "enforcementAction": "scoped",
    "scopedEnforcementActions": [
        {"action": "deny", "enforcementPoints": [{"name": "validation.gatekeeper.sh"}]}
    ],
}


def test_a_kind_is_listed_if_a_constraint_can_match_it_or_what_it_implies() -> None:
    policies = snapshot(template("A"), constraint("A", "pods", POD))
    assert is_matchable(policies, Expansion(), POD)
    assert not is_matchable(policies, Expansion(), DEPLOYMENT)
    assert is_matchable(policies, EXPANSION, DEPLOYMENT)
    assert not is_matchable(policies, EXPANSION, SECRET)


def test_a_constraint_without_kinds_is_about_every_kind() -> None:
    policies = snapshot(template("A"), constraint("A", "all"))
    assert is_matchable(policies, Expansion(), SECRET)


def test_a_constraint_that_is_not_enforced_at_the_audit_asks_for_no_kind() -> None:
    policies = snapshot(template("A"), constraint("A", "pods", POD, **NOWHERE))
    assert not is_matchable(policies, Expansion(), POD)
    assert undecided(policies, Expansion(), [POD], ()) == frozenset()


def test_a_failed_kind_leaves_those_undecided_that_can_match_it() -> None:
    """Also those that match what its objects imply, and no others."""
    policies = snapshot(
        template("A"),
        template("B"),
        constraint("A", "pods", POD),
        constraint("A", "secrets", SECRET),
        constraint("B", "all"),
    )
    assert undecided(policies, Expansion(), [SECRET], ()) == {("A", "secrets"), ("B", "all")}
    assert undecided(policies, EXPANSION, [DEPLOYMENT], ()) == {("A", "pods"), ("B", "all")}
    assert undecided(policies, Expansion(), [], {"A"}) == {("A", "pods"), ("A", "secrets")}
    assert undecided(policies, Expansion(), [], ()) == frozenset()


# --- what the API server tells of them -----------------------------------------------------------

PODS = {
    "resource": "pods",
    "responseKind": {"group": "", "version": "v1", "kind": "Pod"},
    "scope": "Namespaced",
    "verbs": ["get", "list"],
}
DEPLOYMENTS = PODS | {"resource": "deployments", "responseKind": {"kind": "Deployment"}}
FOUND = (
    Resource(POD, "pods", namespaced=True),
    Resource(DEPLOYMENT, "deployments", namespaced=True),
)


def discovered(core: Any, others: Any) -> tuple[Resource, ...]:
    """Returns the discovered resources for these answers about the core group and the others."""
    answers = {"/api": core, "/apis": others}

    class Answering:
        async def request(self, method: str, path: str, *, accept: str) -> Any:
            assert (method, "as=APIGroupDiscoveryList" in accept) == ("GET", True)
            return answers[path]

    return asyncio.run(listable(Answering()))  # type: ignore[arg-type]


def groups(*items: Any) -> dict[str, Any]:
    return {"kind": "APIGroupDiscoveryList", "items": list(items)}


def group(name: str, *entries: Any, version: Any = "v1") -> dict[str, Any]:
    named = {"name": name} if name else {}
    return {"metadata": named, "versions": [{"version": version, "resources": list(entries)}]}


CORE = groups(group("", PODS))
APPS = group("apps", DEPLOYMENTS)


def test_kinds_are_those_with_a_list_at_the_preferred_version() -> None:
    older = {"version": "v1beta1", "resources": [DEPLOYMENTS]}
    reviews = PODS | {"resource": "reviews", "verbs": ["create"]}
    apps = group("apps", DEPLOYMENTS, reviews)
    apps["versions"].append(older)
    assert discovered(CORE, groups(apps)) == FOUND


@pytest.mark.parametrize(
    "odd",
    [
        None,
        "x",
        [],
        {},
        {"metadata": {"name": "odd"}},
        {"metadata": {"name": "odd"}, "versions": {}},
        {"metadata": {"name": "odd"}, "versions": [None, "v1", {}]},
        {"metadata": {"name": "odd"}, "versions": [{"version": "v1", "resources": None}]},
        {"metadata": {"name": "odd"}, "versions": [{"version": "v1", "resources": 5}]},
        {"metadata": None, "versions": [{"version": "v1", "resources": [DEPLOYMENTS]}]},
        {"metadata": {"name": 5}, "versions": [{"version": "v1", "resources": [DEPLOYMENTS]}]},
        group("odd", DEPLOYMENTS, version=None),
        group("odd", DEPLOYMENTS, version=[]),
    ],
)
def test_a_group_of_another_shape_is_left_out_and_the_others_are_listed(odd: Any) -> None:
    """Such a group ended the audit, which began anew, again and again."""
    assert discovered(CORE, groups(odd, APPS)) == FOUND


@pytest.mark.parametrize(
    "entry",
    [
        None,
        "odd",
        [],
        {},
        PODS | {"resource": None},
        PODS | {"resource": ["odd"]},
        PODS | {"resource": "odd", "responseKind": None},
        PODS | {"resource": "odd", "responseKind": "Odd"},
        PODS | {"resource": "odd", "responseKind": {"kind": {}}},
        PODS | {"resource": "odd", "verbs": None},
        PODS | {"resource": "odd", "verbs": 5},
        PODS | {"resource": "odd", "verbs": "list"},
    ],
)
def test_an_entry_of_another_shape_is_left_out_and_its_group_is_listed(entry: Any) -> None:
    assert discovered(CORE, groups(group("apps", entry, DEPLOYMENTS))) == FOUND


def test_go_writes_an_empty_list_as_null() -> None:
    assert discovered(CORE, groups() | {"items": None}) == FOUND[:1]


@pytest.mark.parametrize("answer", [None, [], "x", {}, groups() | {"items": {}}, {"kind": []}])
def test_what_is_no_aggregated_discovery_is_no_answer(answer: Any) -> None:
    with pytest.raises(ApiUnreachable, match="/apis: no aggregated discovery"):
        discovered(CORE, answer)
