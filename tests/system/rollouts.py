"""Records of roll-outs at a control plane: where they stand, and as a forger writes them."""

from collections.abc import Mapping
from typing import Any

from tests.patience import until
from tests.system.replicas import CONSTRAINTS, Plane
from tests.system.revisions import MERGE, REVISIONS
from webhook.constraint.rollout import ANNOTATION

LATEST = 10**15
"""A sequence that no record reaches."""


def path(kind: str) -> str:
    return f"{CONSTRAINTS}/{kind.lower()}/words"


def record(plane: Plane, kind: str) -> dict[str, Any]:
    """``status.rollout`` of the constraint."""
    kept: dict[str, Any] = plane.api.request("GET", path(kind)).get("status", {}).get("rollout", {})
    return kept


def forge_rollout(plane: Plane, kind: str, written: Mapping[str, Any] | None) -> None:
    """Write a record by the right on ``constraints/status`` alone; None takes it away."""
    body = {"status": {"rollout": None}}
    plane.api.request("PATCH", f"{path(kind)}/status", body, content_type=MERGE)
    if written is not None:
        body = {"status": {"rollout": dict(written)}}
        plane.api.request("PATCH", f"{path(kind)}/status", body, content_type=MERGE)


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
