"""Valid enforcement actions and points, with Gatekeeper's messages."""

from __future__ import annotations

import pytest

from tests.webhook.constraint.policies import constraint
from webhook.constraint import enforcement


@pytest.mark.parametrize("action", ["deny", "warn", "dryrun"])
def test_known_actions_are_valid(action):
    document = constraint(enforcementAction=action)
    enforcement.validate(document)
    assert enforcement.action_of(document) == action


def test_no_action_is_deny():
    enforcement.validate(constraint())
    assert enforcement.action_of({"metadata": {}}) == "deny"


def test_an_unknown_action_is_refused_naming_the_known():
    with pytest.raises(enforcement.InvalidEnforcementAction) as refusal:
        enforcement.validate(constraint(enforcementAction="shout"))

    assert (
        str(refusal.value)
        == 'unrecognized enforcementAction: "shout" is not within the supported list '
        "[deny dryrun warn scoped]"
    )


def test_unknown_scoped_actions_and_points_are_all_named():
    scoped = [
        {"action": "shout", "enforcementPoints": [{"name": "moon"}, {"name": "*"}]},
        {"action": "scoped"},
    ]

    with pytest.raises(enforcement.InvalidEnforcementAction) as refusal:
        enforcement.validate(
            constraint(enforcementAction="scoped", scopedEnforcementActions=scoped)
        )

    assert (
        str(refusal.value)
        == "unrecognized enforcement points: constraint will not be enforced for enforcement points "
        "[moon ], supported enforcement points are [validation.gatekeeper.sh "
        "audit.gatekeeper.sh gator.gatekeeper.sh vap.k8s.io]\n"
        "unrecognized enforcementAction: [shout scoped] is not within the supported list "
        "[deny dryrun warn]"
    )


def test_scoped_without_its_list_is_refused():
    with pytest.raises(enforcement.InvalidEnforcementAction, match="is required"):
        enforcement.validate(constraint(enforcementAction="scoped"))
