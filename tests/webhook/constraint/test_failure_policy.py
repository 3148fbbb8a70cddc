"""`waddle.dev/failure-policy`: which webhook entry decides by a constraint, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.webhook.constraint.policies import client, constraint, template
from webhook.constraint.enforcement import WEBHOOK
from webhook.constraint.errors import InvalidConstraint
from webhook.constraint.failure_policy import FAILURE_POLICIES, failure_policy_of
from webhook.constraint.review import AugmentedObject

NAMED = template("Named", 'package named\nviolation[{"msg": "no"}] { true }\n')
PODS = {"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}]}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}}


def annotated(name: str, value: str | None, match: dict[str, Any] | None = None) -> dict[str, Any]:
    """A constraint of a failure policy."""
    document = constraint("Named", name, match=match or PODS)
    if value is not None:
        document["metadata"]["annotations"] = {"waddle.dev/failure-policy": value}
    return document


def kinds(group: str, *names: str) -> dict[str, Any]:
    """A match of kinds."""
    return {"kinds": [{"apiGroups": [group], "kinds": list(names)}]}


def test_each_entry_leaves_out_the_others_constraints() -> None:
    snapshot = client(
        NAMED, annotated("closed", "fail"), annotated("open", "ignore"), annotated("plain", None)
    ).snapshot

    def messages(snapshot: Any) -> list[str]:
        responses = snapshot.review(AugmentedObject(POD), enforcement_point=WEBHOOK)
        return [one.constraint.name for one in responses.results]

    assert messages(snapshot) == ["closed", "open", "plain"]
    assert messages(snapshot.part("fail")) == ["closed"]
    assert messages(snapshot.part("ignore")) == ["open", "plain"]
    assert snapshot.part("fail") is snapshot.part("fail")


def test_where_no_constraint_says_anything_nothing_is_made_anew() -> None:
    snapshot = client(NAMED, annotated("plain", None)).snapshot
    assert snapshot.part("ignore") is snapshot
    assert not snapshot.part("fail").constraints


@pytest.mark.parametrize(
    ("match", "why"),
    [
        ({"namespaces": ["shop"]}, "it is for every kind"),
        (kinds("*", "*"), "Node is among its kinds"),
        (kinds("", "Node"), "no node could join"),
        (kinds("coordination.k8s.io", "Lease"), "stay alive by their leases"),
        (kinds("", "*"), "Node is among its kinds"),
        (kinds("*", "Lease"), "stay alive by their leases"),
        (kinds("policy", "Eviction"), "no node could be drained"),
        (kinds("templates.gatekeeper.sh", "ConstraintTemplate"), "policies could not be repaired"),
        (kinds("constraints.gatekeeper.sh", "Named"), "policies could not be repaired"),
        (kinds("waddle.dev", "PolicyException"), "own objects could not be repaired"),
        (kinds("apiextensions.k8s.io", "*"), "Waddle's own kinds could not be repaired"),
        (kinds("authentication.k8s.io", "TokenReview"), "nobody could be recognized"),
        (kinds("admissionregistration.k8s.io", "*"), "configurations could not be repaired"),
        ({**PODS, "namespaces": ["kube-system"]}, "namespace kube-system"),
        ({**PODS, "namespaces": ["shop", "waddle"]}, "namespace waddle"),
    ],
)
def test_what_would_lock_the_cluster_out_is_refused(match: dict[str, Any], why: str) -> None:
    document = annotated("closed", "fail", match)
    with pytest.raises(InvalidConstraint, match="would lock the cluster out") as refused:
        failure_policy_of(document, {"waddle"})
    assert why in str(refused.value)
    document["metadata"]["annotations"] = {"waddle.dev/failure-policy": "ignore"}
    assert failure_policy_of(document, {"waddle"}) == "ignore"


@pytest.mark.parametrize(
    "match",
    [PODS, kinds("apps", "*"), kinds("*", "Pod"), {**PODS, "excludedNamespaces": ["kube-system"]}],
)
def test_what_a_cluster_can_do_without_for_a_while_may_fail_closed(match: dict[str, Any]) -> None:
    assert failure_policy_of(annotated("closed", "fail", match)) == "fail"


def test_a_constraint_with_another_word_is_no_good() -> None:
    made = client(NAMED)
    with pytest.raises(InvalidConstraint, match='must be fail or ignore, got "closed"'):
        made.validate_constraint(annotated("one", "closed"))
    assert FAILURE_POLICIES == ("fail", "ignore")
