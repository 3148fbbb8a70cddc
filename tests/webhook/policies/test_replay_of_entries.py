"""A record of one webhook entry is reviewed again by that entry's constraints alone."""

from typing import Any

import pytest

from tests import policies
from webhook.cli.clients import new_client
from webhook.policies.replay import replay
from webhook.review.policy_set import PolicySet

REGO = 'package named\nviolation[{"msg": input.parameters.word}] { true }'
SCHEMA = {"type": "object", "properties": {"word": {"type": "string"}}}


def in_force(**entries: str) -> PolicySet:
    """Constraints by name, each with its failure policy."""
    client = new_client()
    client.add_template(policies.template("Named", REGO, schema=SCHEMA))
    for name, entry in entries.items():
        document = policies.constraint("Named", name, parameters={"word": name})
        document["metadata"]["annotations"] = {"waddle.dev/failure-policy": entry}
        if entry == "fail":
            document["spec"]["match"] = {"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}]}
        client.add_constraint(document)
    return PolicySet(client.snapshot)


def record(entry: str, *violations: str) -> dict[str, Any]:
    """Returns a record of an entry's earlier decision about a Pod."""
    results = [
        {"constraint": {"kind": "Named", "name": one}, "message": one, "enforcementAction": "deny"}
        for one in violations
    ]
    return {
        "eventType": "decision",
        "enforcementPoint": "validation.gatekeeper.sh",
        "verdict": "deny" if violations else "allow",
        "constraintsEvaluated": 1,
        "operation": "CREATE",
        "resourceAPIVersion": "v1",
        "resourceKind": "Pod",
        "requestResource": {"group": "", "version": "v1", "resource": "pods"},
        "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}},
        "results": results,
        **({"failurePolicy": entry} if entry else {}),
    }


@pytest.mark.parametrize(
    ("entry", "violations"),
    [("fail", ("closed",)), ("ignore", ("opened",)), ("", ("closed", "opened"))],
)
def test_nothing_has_changed_where_policies_are_the_same(
    entry: str, violations: tuple[str, ...]
) -> None:
    found = replay([record(entry, *violations)], in_force(closed="fail", opened="ignore"))
    assert (found.replayed, found.changes, found.other_violations) == (1, [], 0)
    assert not found.differences


def test_a_constraint_that_goes_to_the_other_entry_is_reported_at_each() -> None:
    moved = in_force(closed="ignore", opened="ignore")
    found = replay([record("fail", "closed"), record("ignore", "opened")], moved)
    difference = found.differences["Named", "closed"]
    assert (difference.added, difference.removed) == (1, 1)
