"""A claim that is kept up by who may write PolicyRevisions: a change comes later, and it does come."""

import contextlib
import threading
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import pytest

from tests.cluster import ApiError
from tests.patience import until
from tests.system.conftest import ALL_OPERATIONS, StartReplica
from tests.system.forging import at, harmless
from tests.system.replicas import TEMPLATES, Plane, Replica, constraint, template
from tests.system.revisions import MERGE, REVISIONS, kill
from webhook import __version__
from webhook.api.revision import digest_of, name_of, revision_object
from webhook.api.revision_outcome import TrialOutcome
from webhook.controllers.apply import prevalidation

RENEWED_SECONDS = 0.05
"""The interval of writes of a claim: far shorter than any replica's looks."""

ANNOUNCED = "package reclaimed\n" + "\n".join(
    f'violation[{{"msg": "m{i}"}}] {{ input.review.object.spec.a{i} == {i} }}' for i in range(900)
)
"""60 KB, of which a trial is announced before it begins; it denies no ConfigMap."""


@pytest.fixture
def plane(empty_plane: Plane) -> Plane:
    """Here every replica ends: no other may be there."""
    return empty_plane


@contextlib.contextmanager
def written_again_and_again(plane: Plane, name: str, made: dict[str, Any]) -> Iterator[list[int]]:
    """A revision's status as a forger has it, whatever anybody writes; how often it was."""
    ended, times = threading.Event(), [0]

    def write() -> None:
        while not ended.wait(RENEWED_SECONDS):
            try:
                body = {"status": {"outcome": None}}
                plane.api.request("PATCH", f"{REVISIONS}/{name}", body, content_type=MERGE)
                body = {"status": made["status"]}
                plane.api.request("PATCH", f"{REVISIONS}/{name}", body, content_type=MERGE)
                times[0] += 1
            except ApiError as error:
                if error.status != HTTPStatus.NOT_FOUND:
                    continue
                with contextlib.suppress(ApiError):
                    plane.api.request("POST", REVISIONS, made)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield times
    finally:
        ended.set()
        writer.join()


def begun(
    plane: Plane, start: StartReplica, kind: str
) -> tuple[list[Replica], dict[str, Any], Any]:
    """Three replicas that deny; the template, and what claims a generation in one's name."""
    name = kind.lower()
    replicas = [start(f"{name}-{number}", *ALL_OPERATIONS) for number in range(3)]
    for replica in replicas:
        replica.wait_ready()
        plane.mark_pod(replica.name, ready=True)
    plane.put_template(template(kind))
    plane.put_constraint(constraint("words", name, kind))
    for replica in replicas:
        until(lambda replica=replica: replica.denies(name), "each denies")
    current = plane.api.request("GET", f"{TEMPLATES}/{name}")
    claim = TrialOutcome(
        "trying", replicas[0].name, replicas[0].uid, __version__, "2026-01-01T00:00:00Z", ""
    )
    return replicas, current, claim


def test_a_claim_that_nobody_signed_delays_no_change(plane: Plane, start: StartReplica) -> None:
    """It is in the name of a replica that is there, and renewed for as long as anybody looks."""
    replicas, current, claim = begun(plane, start, "Renewed")
    predicted = at(current, 2, harmless("Renewed"))
    made = revision_object(predicted, digest_of(predicted), claim)
    made["status"]["signature"] = f"key-1700000000:{'0' * 64}"
    name = name_of(predicted, digest_of(predicted))
    with written_again_and_again(plane, name, made) as times:
        until(lambda: times[0] > 3, "it is written again and again")
        plane.put_template(harmless("Renewed"))
        for replica in replicas:
            until(lambda replica=replica: not replica.denies("renewed"), "each enforces the change")
    plane.delete_template("renewed")
    kill(replicas)


@pytest.mark.slow(120)
def test_a_genuine_claim_that_is_written_again_delays_a_change_and_no_more(
    plane: Plane, start: StartReplica
) -> None:
    """A replica signed it once; the replica is there, and has come to an end long ago."""
    replicas, _, _ = begun(plane, start, "Reclaimed")
    seen: list[dict[str, Any]] = []

    def claimed() -> bool:
        for item in plane.api.request("GET", REVISIONS)["items"]:
            outcome = (item.get("status") or {}).get("outcome", {})
            if (
                item["spec"]["subject"]["name"] == "reclaimed"
                and outcome.get("verdict") == "trying"
            ):
                seen.append(item)
        return bool(seen)

    plane.put_template(template("Reclaimed", ANNOUNCED))
    until(claimed, "a replica says that it is at it")
    genuine = seen[0]
    made = {**genuine, "metadata": dict(genuine["metadata"])}
    for field in ("uid", "resourceVersion", "managedFields", "creationTimestamp"):
        made["metadata"].pop(field, None)
    with written_again_and_again(plane, genuine["metadata"]["name"], made) as times:
        for replica in replicas:
            until(
                lambda replica=replica: not replica.denies("reclaimed"),
                "each enforces the change",
                prevalidation.LONGEST_SECONDS * 2,
            )
        until(lambda: times[0] > 3, "it was written again and again")
    plane.delete_template("reclaimed")
    kill(replicas)
