"""A constraint that is rolled out, and what is written into its record by who may write its status."""

from collections.abc import Mapping
from typing import Any

from tests.patience import until
from tests.system.conftest import ALL_OPERATIONS, StartReplica
from tests.system.replicas import CONSTRAINTS, NAMESPACE, Plane, Replica, constraint, template
from tests.system.revisions import MERGE, REVISIONS
from webhook.constraint.rollout import ANNOTATION
from webhook.controllers.revisions.keys import COPIES
from webhook.controllers.revisions.rollout_copies import read_copies
from webhook.settings.serve import KEY_SECRET

LATEST = 10**15
"""A sequence that no record reaches."""


def path(kind: str) -> str:
    """Of the constraint."""
    return f"{CONSTRAINTS}/{kind.lower()}/words"


def record(plane: Plane, kind: str) -> dict[str, Any]:
    """``status.rollout`` of the constraint."""
    kept: dict[str, Any] = plane.api.request("GET", path(kind)).get("status", {}).get("rollout", {})
    return kept


def forge(plane: Plane, kind: str, written: Mapping[str, Any] | None) -> None:
    """Write a record by the right on ``constraints/status`` alone; None takes it away."""
    body = {"status": {"rollout": None}}
    plane.api.request("PATCH", f"{path(kind)}/status", body, content_type=MERGE)
    if written is not None:
        body = {"status": {"rollout": dict(written)}}
        plane.api.request("PATCH", f"{path(kind)}/status", body, content_type=MERGE)


def begun(plane: Plane, start: StartReplica, kind: str, rollout: str) -> list[Replica]:
    """Three replicas, and a constraint that is rolled out."""
    plane.put_template(template(kind))
    replicas = [start(f"{kind.lower()}-{number}", *ALL_OPERATIONS) for number in range(3)]
    for replica in replicas:
        replica.wait_ready()
    staged = constraint("words", kind.lower(), kind)
    staged["metadata"]["annotations"] = {ANNOTATION: rollout}
    plane.put_constraint(staged)
    return replicas


def reach(plane: Plane, kind: str, action: str) -> dict[str, Any]:
    """The record once the roll-out is at a stage that it stays at."""
    states = ("Holding", "Complete")
    until(
        lambda: (
            (record(plane, kind).get("action"), record(plane, kind).get("state"))
            in [(action, state) for state in states]
        ),
        f"it is at {action}",
    )
    return record(plane, kind)


def annotate(plane: Plane, kind: str, rollout: str | None) -> None:
    """Change the stages that its owner wants."""
    body = {"metadata": {"annotations": {ANNOTATION: rollout}}}
    plane.api.request("PATCH", path(kind), body, content_type=MERGE)


def unsigned(written: Mapping[str, Any], action: str) -> dict[str, Any]:
    """A record that says another stage, later than any."""
    steps = [{"action": action, "since": "2026-01-01T00:00:00Z"}]
    return {**written, "action": action, "steps": steps, "sequence": LATEST}


def copy_of(plane: Plane, kind: str) -> dict[str, Any]:
    """The record that is kept in the constraint's revision."""
    items = plane.api.request("GET", REVISIONS)["items"]
    kept = [item for item in items if item["spec"]["subject"]["kind"] == kind]
    return {} if not kept else dict((kept[0].get("status") or {}).get("rollout", {}))


def forge_copy(plane: Plane, kind: str, written: Mapping[str, Any]) -> None:
    """Write a record into the constraint's revision by the right on ``policyrevisions/status``."""
    for item in plane.api.request("GET", REVISIONS)["items"]:
        if item["spec"]["subject"]["kind"] == kind:
            forged = {**item, "status": {**item["status"], "rollout": dict(written)}}
            plane.api.request("PUT", f"{REVISIONS}/{item['metadata']['name']}", forged)


def in_secret(plane: Plane, uid: str) -> list[dict[str, Any]]:
    """The records of an object that the Secret of keys has."""
    secret = plane.api.request("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets/{KEY_SECRET}")
    return read_copies((secret.get("data") or {}).get(COPIES, "")).get(uid, [])
