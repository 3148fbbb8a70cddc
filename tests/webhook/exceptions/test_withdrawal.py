"""Bindings of the API server's own policies go while exceptions hold, or are about to."""

from __future__ import annotations

import math
from typing import Any

from tests.policies import exception
from tests.webhook.generation.planned import constraint, template
from webhook.constraint.enforcement import WEBHOOK
from webhook.controllers.generate.statuses import generation_statuses
from webhook.exceptions.exception import SOON_SECONDS
from webhook.exceptions.reading import read_exception
from webhook.exceptions.withdrawal import seconds_to_change, withdrawn_for
from webhook.generation.plan import Enforced, GenerationPlan, Options, Planner
from webhook.generation.scope import PolicyScope

NOON = 1798761600.0  # 2027-01-01T00:00:00Z
TIMED = exception(
    "e",
    "Named/one",
    match={"name": "p"},
    notBefore="2027-01-01T00:00:00Z",
    expires="2027-01-02T00:00:00Z",
)


def plan(
    at: float, *exceptions: dict[str, Any], action: str = "deny", **spec: Any
) -> GenerationPlan:
    items = [read_exception(one) for one in exceptions]
    given = {("Named", "one"): Enforced(constraint(**spec), action)}
    return Planner(Options(), "v1").plan(
        {"named": template()},
        given,
        PolicyScope(),
        lambda _: "",
        lambda document: withdrawn_for(items, document, at),
    )


def test_a_binding_is_withdrawn_from_an_hour_before_to_the_end() -> None:
    for at, bound in (
        (NOON - SOON_SECONDS - 1, True),
        (NOON - SOON_SECONDS, False),
        (NOON, False),
        (NOON + 86400 - 1, False),
        (NOON + 86400, True),
    ):
        made = plan(at, TIMED)
        assert bool(made.bindings) is bound
        assert made.policies, "the template's policy stays"
        # A withdrawn binding does not wait: it exists, and must go.
        assert made.waiting == set()


def test_the_status_says_so() -> None:
    report = generation_statuses(
        plan(NOON, TIMED),
        lambda *_: ("generated", ""),
        lambda *_: ("generated", ""),
        {},
        alone=False,
    )
    (entry,) = report.statuses["Named", "one"]["enforcementPointsStatus"]
    assert entry["state"] == "withdrawn"
    assert "withdrawn for ClusterPolicyException e" in entry["message"]


def test_other_exceptions_leave_a_binding_alone() -> None:
    assert plan(NOON, exception("e", "Named/two", match={"name": "p"})).bindings
    closed = exception("e", "Named/one", namespace="shop")  # it allows those of the cluster alone
    assert plan(NOON, closed).bindings
    assert not plan(NOON, exception("e", "Named/*", match={"name": "p"})).bindings


def test_a_constraint_that_the_webhook_does_not_decide_by_keeps_its_binding() -> None:
    def scoped(*points: str) -> dict[str, Any]:
        named = [{"name": point} for point in points]
        return {
            "enforcementAction": "scoped",
            "scopedEnforcementActions": [{"action": "deny", "enforcementPoints": named}],
        }

    assert plan(NOON, TIMED, action="scoped", **scoped("vap.k8s.io")).bindings
    assert not plan(NOON, TIMED, action="scoped", **scoped("vap.k8s.io", WEBHOOK)).bindings


def test_it_is_planned_anew_when_that_changes() -> None:
    items = [read_exception(TIMED)]
    assert seconds_to_change(items, NOON - SOON_SECONDS - 5) == 5
    assert seconds_to_change(items, NOON) == 86400
    assert seconds_to_change(items, NOON + 86400) == math.inf
    assert seconds_to_change([], NOON) == math.inf
