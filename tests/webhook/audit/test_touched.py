"""Kinds that must be reviewed again after a change of policy."""

from tests.webhook.constraint.policies import client, constraint, template
from webhook.api.gvk import GroupVersionKind
from webhook.audit.continuous import changed_constraints, matcher_of_kinds
from webhook.constraint.expansion import Expansion

POD = GroupVersionKind("", "v1", "Pod")
SERVICE = GroupVersionKind("", "v1", "Service")
PODS = {"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}]}


def names(before, after):
    return [item.name for item in changed_constraints(before, after)]


def test_only_what_decides_otherwise_is_changed():
    """New constraints, changed ones, all of a changed template; none for data, or for a deletion."""
    policies = client()
    policies.add_template(template())
    policies.add_constraint(constraint(name="one", match=PODS))
    policies.add_constraint(constraint(name="two"))
    first = policies.snapshot
    policies.add_data({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}})
    policies.add_constraint(constraint(name="three"))
    second = policies.snapshot
    assert names(first, second) == ["three"]
    policies.add_constraint(constraint(name="one", match=PODS, enforcementAction="warn"))
    third = policies.snapshot
    assert names(second, third) == ["one"]
    policies.remove_constraint("K8sDeny", "two")
    assert names(third, policies.snapshot) == []
    policies.add_template(template(rego='package p\nviolation[{"msg": "other"}] { true }'))
    assert names(third, policies.snapshot) == ["one", "three"]


def test_kinds_are_those_that_the_constraints_may_match_at_the_audit():
    """A scoped one of the webhook alone touches nothing."""
    policies = client()
    policies.add_template(template())
    policies.add_constraint(constraint(name="pods", match=PODS))
    policies.add_constraint(constraint(name="all"))
    scoped = [{"action": "deny", "enforcementPoints": [{"name": "validation.gatekeeper.sh"}]}]
    policies.add_constraint(
        constraint(name="webhook", enforcementAction="scoped", scopedEnforcementActions=scoped)
    )
    found = {item.name: item for item in policies.snapshot.constraints}

    def kinds(*names):
        matches = matcher_of_kinds([found[name] for name in names], Expansion())
        return None if matches is None else set(filter(matches, (POD, SERVICE)))

    assert kinds("pods") == {POD}
    assert kinds("all", "webhook") == {POD, SERVICE}
    assert kinds("webhook") is None
    assert kinds() is None
