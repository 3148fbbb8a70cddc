"""The findings of several audits in a constraint's status."""

from typing import Any

import pytest

from tests.webhook.controllers.pod_statuses import pod, says
from webhook.api import audit_shard, pod_status
from webhook.controllers.status.audit_results import merged
from webhook.controllers.status_kinds import LabelledSubject

SUBJECT = LabelledSubject(pod_status.CONSTRAINT.kind, "Kind", "c")
AUDITS = ("audit", "webhook")
CONSTRAINT = {
    "apiVersion": "constraints.gatekeeper.sh/v1beta1",
    "kind": "Kind",
    "metadata": {"name": "c", "uid": "c-uid", "generation": 2},
}


def found(name: str, *objects: str, of: tuple[str, ...] = ("a", "b"), at: str = "01") -> Any:
    """Returns an audit's status: violations of these objects, and its share among these Pods."""
    members = audit_shard.members_digest(f"{one}-uid" for one in of)
    violations = [{"kind": "Pod", "name": one, "message": "no"} for one in objects]
    shard = audit_shard.shard(
        f"2026-01-{at}T00:00:00Z", members, len(objects), violations, limit=20
    )
    return says(name, of=CONSTRAINT, operations=AUDITS, enforced=True, audit=shard)


def merged_status(
    *statuses: Any, status: Any = None, before: Any = None, pods: Any = ("a", "b")
) -> Any:
    """The status that there should be."""
    document = {**CONSTRAINT, "status": before or {}}
    return merged(SUBJECT, document, status, statuses, [pod(name) for name in pods])


def test_the_whole_is_the_sum_of_all_shares() -> None:
    whole = merged_status(found("a", "x", at="02"), found("b", "y", "z"))
    assert whole["totalViolations"] == 3
    assert whole["auditTimestamp"] == "2026-01-01T00:00:00Z"
    assert [one["name"] for one in whole["violations"]] == ["z", "y", "x"]
    assert merged_status(found("a", "x", at="02"), found("b", "y", "z"), before=whole) is None
    kept = merged_status(found("a"), found("b"), status={"byPod": []}, before=whole)
    assert kept == {
        "byPod": [],
        "auditTimestamp": "2026-01-01T00:00:00Z",
        "totalViolations": 0,
    }


@pytest.mark.parametrize(
    "statuses",
    [
        [found("a", "x")],
        [found("a", "x"), found("b", of=("a", "b", "c"))],
        [found("a", "x"), says("b", of=CONSTRAINT, operations=AUDITS, enforced=True)],
        [found("a", "x"), found("gone", "y")],
        [found("a", "x"), says("b", of=CONSTRAINT, enforced=True)],
    ],
    ids=["one", "other shares", "not said yet", "a Pod that is gone", "one that does not audit"],
)
def test_nothing_is_reported_until_every_audit_has_spoken_of_the_same_shares(statuses: Any) -> None:
    assert merged_status(*statuses) is None
    assert merged_status(*statuses, status={"byPod": []}) == {"byPod": []}


def test_what_was_found_of_another_generation_does_not_count() -> None:
    old = found("b", "y")
    old["status"]["observedGeneration"] = 1
    assert merged_status(found("a", "x"), old) is None


def test_only_constraints_are_audited() -> None:
    subject = LabelledSubject(pod_status.TEMPLATE.kind, "", "c")
    assert merged(subject, CONSTRAINT, {"a": 1}, [found("a"), found("b")], []) == {"a": 1}
