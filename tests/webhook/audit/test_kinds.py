"""Which kinds are listed, and which constraints a kind that failed leaves undecided."""

from tests.webhook.audit.made import DEPLOYMENT, POD, SECRET, constraint, snapshot, template
from webhook.audit.kinds import is_matchable, undecided
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
