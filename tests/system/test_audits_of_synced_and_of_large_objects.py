"""Audits of synced data do not read unsynced objects, and large objects have a memory bound."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.patience import until
from tests.system.bulk import create
from tests.system.conftest import StartReplica
from tests.system.replicas import (
    CONFIG_MAPS,
    WORKLOADS,
    Plane,
    Replica,
    config_map,
    constraint,
    template,
    try_request,
)

AUDIT = tuple(f"--operation={name}" for name in ("audit", "status", "generate"))
EVERY_SECOND = "--audit-interval=1"
SYNC_SET = "/apis/syncset.gatekeeper.sh/v1alpha1/syncsets/of-audits"
OBJECTS = 100
OBJECT_BYTES = 1_000_000
LIMIT_MIB = 300
"""Measured 115; a first page of all objects, decoded, would be above 600."""


@pytest.fixture(autouse=True)
def nothing_stays(plane: Plane) -> Iterator[None]:
    """Policies and objects end with their test."""
    yield
    try_request(plane.api, "DELETE", SYNC_SET)
    for name in ("unsynced", "weighty"):
        plane.delete_template(name)
    plane.api.request("DELETE", CONFIG_MAPS)


def status_of(plane: Plane, kind: str, name: str) -> dict[str, Any]:
    path = f"/apis/constraints.gatekeeper.sh/v1beta1/{kind.lower()}/{name}"
    status: dict[str, Any] = plane.api.request("GET", path).get("status") or {}
    return status


def sweeps(replica: Replica) -> float:
    """Sweeps that ended, whether they told everything or not."""
    return sum(
        replica.metric(f'waddle_audit_sweeps_total{{outcome="{outcome}"}}') or 0.0
        for outcome in ("complete", "partial")
    )


@pytest.mark.slow(20)
def test_a_constraint_of_which_nothing_is_synced_has_no_total(
    plane: Plane, start: StartReplica
) -> None:
    plane.api.apply(f"{CONFIG_MAPS}/unsynced", config_map("unsynced", "unsynced"))
    replica = start("auditor-of-data", *AUDIT, EVERY_SECOND, "--audit-from-cache").wait_ready()
    plane.put_template(template("Unsynced"))
    plane.put_constraint(constraint("one", "unsynced", "Unsynced"))
    message = "constraints were not audited: none of the kinds that they match is synced"
    until(
        lambda: any(
            event["msg"].startswith(message) and event["constraints"] == ["Unsynced/one"]
            for event in replica.events
        ),
        "the log names the constraint",
    )
    ended = sweeps(replica)
    until(lambda: sweeps(replica) > ended + 1, "sweeps have ended since")
    assert "totalViolations" not in status_of(plane, "Unsynced", "one")

    sync_set = {
        "apiVersion": "syncset.gatekeeper.sh/v1alpha1",
        "kind": "SyncSet",
        "metadata": {"name": "of-audits"},
        "spec": {"gvks": [{"group": "", "version": "v1", "kind": "ConfigMap"}]},
    }
    plane.api.apply(SYNC_SET, sync_set)
    until(
        lambda: status_of(plane, "Unsynced", "one").get("totalViolations") == 1,
        "what is synced is counted",
    )


@pytest.mark.slow(30)
def test_an_audit_of_large_objects_keeps_within_its_memory(
    plane: Plane, start: StartReplica
) -> None:
    names = [f"large-{number:03}" for number in range(OBJECTS)]
    bodies = ((CONFIG_MAPS, large(name)) for name in names)
    create(plane.api, bodies)
    replica = start("auditor-of-large", *AUDIT, EVERY_SECOND).wait_ready()
    plane.put_template(template("Weighty"))
    plane.put_constraint(constraint("one", "large", "Weighty"))
    until(
        lambda: status_of(plane, "Weighty", "one").get("totalViolations") == OBJECTS,
        "every object is counted",
    )
    status = Path(f"/proc/{replica.process.pid}/status").read_text()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    assert int(peak.split()[1]) / 1024 < LIMIT_MIB


def large(name: str) -> dict[str, Any]:
    """A ConfigMap of about a megabyte that violates, and is as deep as such are: not at all."""
    body = config_map("large", name, WORKLOADS)
    body["data"]["content"] = "x" * OBJECT_BYTES
    return body
