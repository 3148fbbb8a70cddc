"""Warnings of a check about usable groups that are probably not as intended."""

from __future__ import annotations

from typing import Any

import pytest

from tests import policies
from tests.webhook.constraint.policies import constraint, template
from webhook.constraint.client import Client
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.targets.known import TARGETS
from webhook.policies.advice import advice_on_document
from webhook.policies.validation import validate


def advice(group: dict[str, Any], *others: dict[str, Any], known: Any = ()) -> list[str]:
    """The advice on these groups, beside those that are known."""
    client = Client(targets=TARGETS, drivers=[RegoDriver(), CelDriver()])
    validate(client, known, 1.0)
    problems = validate(client, [group, *others], 1.0)
    assert all(one.severity == "warning" for one in problems)
    return [f"{one.kind}/{one.name}: {one.message}" for one in problems]


def group(**spec: Any) -> dict[str, Any]:
    """A group of a constraint."""
    return {
        "apiVersion": "waddle.dev/v1alpha1",
        "kind": "ConstraintGroup",
        "metadata": {"name": "g"},
        "spec": {
            "members": {"own": {"constraint": {"kind": "K8sDeny", "name": "c"}}},
            "expression": "own()",
            **spec,
        },
    }


@pytest.mark.parametrize(("action", "does"), [("deny", "refuses"), ("warn", "warns of")])
def test_a_member_that_is_enforced_itself_is_reported(action: str, does: str) -> None:
    enforced = constraint(enforcementAction=action)
    why = (
        f"ConstraintGroup/g: its member own, K8sDeny/c ({action}), is enforced itself and {does} "
        "what the group accepts: set its enforcementAction to dryrun"
    )
    assert advice(group(), template(), enforced) == [why]
    assert advice(group(), template(), constraint(enforcementAction="dryrun")) == []


@pytest.mark.parametrize(
    ("actions", "shown"),
    [
        (["dryrun"], None),
        (["dryrun", "warn"], "(warn at audit.gatekeeper.sh), is enforced itself and warns of"),
        (["deny", "dryrun"], "(deny at validation.gatekeeper.sh), is enforced itself and refuses"),
    ],
)
def test_a_scoped_member_is_reported_for_what_it_does(actions: list[str], shown: str) -> None:
    """One that only records was said to refuse what the group accepts."""
    points = ["validation.gatekeeper.sh", "audit.gatekeeper.sh"]
    scoped = constraint(
        enforcementAction="scoped",
        scopedEnforcementActions=[
            {"action": action, "enforcementPoints": [{"name": point}]}
            for action, point in zip(actions, points, strict=False)
        ],
    )
    found = advice(group(), template(), scoped)
    assert bool(found) is (shown is not None)
    assert shown is None or shown in found[0]


@pytest.mark.parametrize(("point", "shown"), [("vap.k8s.io", "vap.k8s.io"), ("*", "validation")])
def test_a_member_that_the_api_server_enforces_is_reported(point: str, shown: str) -> None:
    """It refused what the group accepts, and nobody was warned."""
    scoped = constraint(
        enforcementAction="scoped",
        scopedEnforcementActions=[{"action": "deny", "enforcementPoints": [{"name": point}]}],
    )
    in_cel = policies.template("K8sDeny", cel={"validations": [{"expression": "false"}]})
    (found,) = advice(group(), in_cel, scoped)
    assert f"(deny at {shown}" in found
    assert bool(advice(group(), template(), scoped)) is (point == "*"), "Rego is not generated"


def test_a_constraint_that_is_enforced_from_now_on_is_reported_at_its_group() -> None:
    dry = constraint(enforcementAction="dryrun")
    assert len(advice(constraint(), known=[template(), dry, group()])) == 1


def test_a_member_that_is_never_asked_is_reported() -> None:
    members = {"a": {"kind": "K8sDeny"}, "b": {"kind": "K8sDeny"}}
    assert advice(group(members=members, expression="a()"), template()) == [
        "ConstraintGroup/g: its member b is never asked"
    ]


def test_a_group_for_the_api_server_alone_is_reported() -> None:
    points = [{"name": "vap.k8s.io"}]
    spec = {
        "enforcementAction": "scoped",
        "scopedEnforcementActions": [{"action": "deny", "enforcementPoints": points}],
        "members": {"a": {"kind": "K8sDeny"}},
        "expression": "a()",
    }
    (one,) = advice(group(**spec), template())
    assert "it is enforced nowhere: vap.k8s.io does not support groups" in one


def test_a_group_that_cannot_be_read_has_no_advice() -> None:
    (fault,) = validate(
        Client(targets=TARGETS, drivers=[RegoDriver()]), [group(expression="own(")], 1.0
    )
    assert fault.severity == "error"
    assert advice_on_document(group(expression="own(")) == []
