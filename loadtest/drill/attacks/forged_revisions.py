"""A user with the right to replicas' records (revisions, claims, statuses), at three replicas."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from loadtest.drill.drill import Row
from tests.patience import until
from tests.system.conftest import ALL_OPERATIONS, control_plane
from tests.system.forging import at, forge, harmless
from tests.system.replicas import (
    CONSTRAINTS,
    NAMESPACE,
    STATUSES,
    TEMPLATES,
    Plane,
    Replica,
    constraint,
    template,
)
from tests.system.revisions import MERGE, REVISIONS, kept, states
from tests.system.rollout_forging import (
    annotate,
    copy_of,
    forge_copy,
    in_secret,
    path,
    reach,
    record,
    unsigned,
)
from tests.system.rollout_forging import forge as forge_rollout
from webhook.api.pod_status import CONSTRAINT, Pod, StatusError, pod_status, status_subject
from webhook.api.revision import ROLLBACK
from webhook.constraint.rollout import ANNOTATION

FORGED = 200
"""Of each kind of forgery: more than anything else is kept of one object."""

SECONDS_MAX = 30.0
"""In which a change is enforced everywhere: it was kept out for as long as anybody looked."""

NAME = "forged PolicyRevisions"
ROLLOUTS = "forged records of roll-outs"
STRANGER = "stranger"


def run() -> Iterator[Row]:
    """Forge what is kept, what may come, and what was; change, roll back, and start anew."""
    with (
        tempfile.TemporaryDirectory(prefix="waddle-drill-") as folder,
        control_plane(Path(folder) / "plane") as plane,
        ExitStack() as stack,
    ):
        plane.put_template(template("Drilled"))
        replicas = [_started(stack, plane, f"drilled-{number}") for number in range(3)]
        plane.put_constraint(constraint("words", "drilled", "Drilled"))
        for replica in replicas:
            until(lambda replica=replica: replica.denies("drilled"), "each denies")
        until(lambda: kept(plane, "ConstraintTemplate", "drilled") == [1], "it is kept")
        current = plane.api.request("GET", f"{TEMPLATES}/drilled")
        _forge_all(plane, current)
        denying = sum(replica.denies("drilled") for replica in replicas)
        yield Row(NAME, "replicas that enforce something else", len(replicas) - denying, 0)
        genuine = kept(plane, "ConstraintTemplate", "drilled").count(1)
        yield Row(NAME, "genuine revisions deleted", 2 - genuine, 0)

        began = time.monotonic()
        plane.put_template(harmless("Drilled"))
        for replica in replicas:
            until(lambda replica=replica: not replica.denies("drilled"), "each enforces it")
        yield Row(
            NAME, "time until a change is enforced", time.monotonic() - began, SECONDS_MAX, "s"
        )
        until(lambda: "Active" in states(plane, f"{TEMPLATES}/drilled", 2), "it is active")

        body = {"metadata": {"annotations": {ROLLBACK: "1"}}}
        plane.api.request("PATCH", f"{TEMPLATES}/drilled", body, content_type=MERGE)
        for replica in replicas:
            until(lambda replica=replica: replica.denies("drilled"), "each is rolled back")
        fresh = _started(stack, plane, "drilled-fresh")
        yield Row(
            NAME, "fresh replicas that enforce what is forged", not fresh.denies("drilled"), 0
        )
        yield from _stranger(stack, plane, [*replicas, fresh])
        yield from _forged_rollouts(stack, plane, [*replicas, fresh])


def _stranger(stack: ExitStack, plane: Plane, replicas: list[Replica]) -> Iterator[Row]:
    """A status of a Pod that is none of ours, which says that it cannot enforce the constraint."""
    place = f"{CONSTRAINTS}/drilled/words"
    uid = plane.make_pod(STRANGER, {"app": STRANGER})
    plane.mark_pod(STRANGER, ready=True)
    stack.callback(plane.delete_pod, STRANGER)
    status = pod_status(
        Pod(STRANGER, NAMESPACE, uid, ("status", "webhook")),
        status_subject(CONSTRAINT, plane.api.request("GET", place)),
        errors=[StatusError("ingest_error", "forged")],
        enforced=False,
    )
    plane.api.request("POST", f"{STATUSES}/constraintpodstatuses", status)
    plane.put_constraint(constraint("words", "drilled-anew", "Drilled"))
    for replica in replicas:
        until(lambda replica=replica: replica.denies("drilled-anew"), "each denies")
    until(lambda: "Enforced" in states(plane, place, 2), "it is enforced by all that count")
    counted = sum(entry["id"] == STRANGER for entry in plane.by_pod(place))
    yield Row("forged statuses", "strangers that count as replicas", counted, 0)


def _forged_rollouts(stack: ExitStack, plane: Plane, replicas: list[Replica]) -> Iterator[Row]:
    """Of a roll-out that has come to its end: no record of it, another's, and its own first one."""
    kind = "Drilledstages"
    plane.put_template(template(kind))
    staged = constraint("words", kind.lower(), kind)
    staged["metadata"]["annotations"] = {ANNOTATION: "dryrun"}
    plane.put_constraint(staged)
    first = reach(plane, kind, "dryrun")
    annotate(plane, kind, "dryrun after=0s")
    latest = reach(plane, kind, "deny")
    for replica in replicas:
        until(lambda replica=replica: replica.denies(kind.lower()), "each denies")
    until(lambda: copy_of(plane, kind) == latest, "its record is kept twice")
    loosened = 0
    for written in (None, unsigned(latest, "dryrun"), first):
        forge_rollout(plane, kind, written)
        loosened += sum(not replica.denies(kind.lower()) for replica in replicas)
        until(lambda: record(plane, kind) == latest, "it is put right")
        loosened += sum(not replica.denies(kind.lower()) for replica in replicas)
    yield Row(ROLLOUTS, "replicas at a stage of the forger's", loosened, 0)
    uid = plane.api.request("GET", path(kind))["metadata"]["uid"]
    until(lambda: in_secret(plane, uid)[-1:] == [_unsigned(latest)], "the Secret has it, too")
    for number, also_copy in enumerate((False, True)):
        for replica in replicas:
            replica.kill()
            plane.delete_pod(replica.name)
        forge_rollout(plane, kind, first)
        if also_copy:
            forge_copy(plane, kind, first)
        replicas = [_started(stack, plane, f"drilled-last-{number}")]
        figure = "fresh replicas at an earlier stage"
        figure += ", both copies" if also_copy else ""
        yield Row(ROLLOUTS, figure, not replicas[0].denies(kind.lower()), 0)


def _unsigned(written: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in written.items() if name != "signature"}


def _started(stack: ExitStack, plane: Plane, name: str) -> Replica:
    replica = Replica(plane, name, *ALL_OPERATIONS)
    stack.callback(plane.delete_pod, name)
    stack.enter_context(replica)
    return replica.wait_ready()


def _forge_all(plane: Plane, current: dict[str, Any]) -> None:
    """Older and later generations, those to come with what was found of them, and copies."""
    empty = harmless("Drilled")
    for verdict in ("", "ended", "trying"):
        for number in range(FORGED):
            name = f"drilled-{verdict or 'plain'}-{number}"
            forge(plane, at(current, 10**15 + number, empty), name, verdict=verdict)
    forge(plane, at(current, 1, empty))
    forge(plane, at(current, 2, empty), verdict="ended")
    (genuine,) = [
        item
        for item in plane.api.request("GET", REVISIONS)["items"]
        if item["spec"]["subject"]["name"] == "drilled"
        and item["spec"]["generation"] == 1
        and not item["status"]["signature"].endswith("0" * 64)
    ]
    for field in ("uid", "resourceVersion", "managedFields", "creationTimestamp"):
        genuine["metadata"].pop(field, None)
    genuine["metadata"]["name"] = "drilled-copy"
    plane.api.request("POST", REVISIONS, genuine | {"spec": genuine["spec"] | {"generation": 2}})
