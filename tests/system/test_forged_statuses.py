"""A user with the right to status objects alone cannot speak in a replica's name."""

from typing import Any

from tests.patience import until
from tests.system.replicas import (
    CONSTRAINTS,
    NAMESPACE,
    STATUSES,
    Plane,
    Replica,
    constraint,
    template,
)
from tests.system.revisions import states
from webhook.api.audit_shard import FIELD, members_digest, shard
from webhook.api.pod_status import CONSTRAINT, Pod, StatusError, pod_status, status_subject

FORGED = f"{STATUSES}/constraintpodstatuses"
PATH = f"{CONSTRAINTS}/voiced/words"


def forged(replica: Replica, document: dict[str, Any], uids: list[str]) -> dict[str, Any]:
    """Returns a forged status: an enforcement error and an audit's findings."""
    share = shard("2026-01-01T00:00:00Z", members_digest(uids), 41, [], limit=20)
    return pod_status(
        Pod(replica.name, NAMESPACE, replica.uid, ("audit", "status", "webhook")),
        status_subject(CONSTRAINT, document),
        errors=[StatusError("ingest_error", "forged")],
        enforced=False,
        additions={FIELD: share},
    )


def test_what_is_said_in_a_replica_s_name_under_another_counts_for_nothing(
    plane: Plane, trio: list[Replica]
) -> None:
    """Neither in conditions and byPod nor as an audit's share; under its own name it is put right."""
    plane.put_template(template("Voiced"))
    plane.put_constraint(constraint("words", "voiced", "Voiced"))
    for replica in trio:
        until(lambda replica=replica: replica.denies("voiced"), "each denies")
    until(lambda: "Enforced" in states(plane, PATH, 1), "it is enforced")
    until(lambda: len(plane.by_pod(PATH)) == len(trio), "each says so")
    document = plane.api.request("GET", PATH)
    uids = [replica.uid for replica in trio]
    made = [forged(replica, document, uids) for replica in trio]
    for number, body in enumerate(made):
        named = {**body, "metadata": {**body["metadata"], "name": f"voiced-{number}"}}
        plane.api.request("POST", FORGED, named)
    right = f"{FORGED}/{made[0]['metadata']['name']}"
    patch = {"status": made[0]["status"]}
    plane.api.request("PATCH", right, patch, content_type="application/merge-patch+json")
    until(lambda: "errors" not in plane.api.request("GET", right)["status"], "it is put right")

    plane.put_constraint(constraint("words", "changed", "Voiced"))
    until(lambda: "Enforced" in states(plane, PATH, 2), "the change is enforced, by all that count")
    status = plane.api.request("GET", PATH)["status"]
    assert sorted(entry["id"] for entry in status["byPod"]) == sorted(one.name for one in trio)
    assert not any("errors" in entry for entry in status["byPod"])
    assert "totalViolations" not in status
    until(
        lambda: (
            not [
                one
                for one in plane.api.request("GET", FORGED)["items"]
                if one["metadata"]["name"].startswith("voiced-")
            ]
        ),
        "each replica deletes what has its label and is not its own",
    )
    plane.delete_template("voiced")
