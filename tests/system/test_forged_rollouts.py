"""A user with the right to a constraint's status alone moves no roll-out, at any replica."""

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.patience import until
from tests.system.conftest import ALL_OPERATIONS, StartReplica
from tests.system.replicas import STATUSES, Plane, constraint, template
from tests.system.revisions import MERGE, REVISIONS, first_verdict, kill
from tests.system.rollout_forging import (
    annotate,
    begun,
    copy_of,
    forge,
    forge_copy,
    in_secret,
    path,
    reach,
    record,
    unsigned,
)
from webhook.api.pod_status import pack_name
from webhook.constraint.rollout import ANNOTATION

FORGED = f"{STATUSES}/constraintpodstatuses"
IGNORED = "waddle_rollout_records_ignored_total"


@pytest.fixture
def plane(empty_plane: Plane) -> Iterator[Plane]:
    """Here every replica ends: no other may be there. What a failure leaves goes, too."""
    yield empty_plane
    empty_plane.delete_templates()


def test_a_stage_is_neither_weakened_nor_hurried_by_who_may_write_its_status(
    plane: Plane, start: StartReplica
) -> None:
    """By what nobody signed, by an earlier record of its own, and by none at all."""
    kind = "Hurried"
    replicas = begun(plane, start, kind, "dryrun")
    earlier = reach(plane, kind, "dryrun")
    assert earlier["signature"]
    forge(plane, kind, unsigned(earlier, "deny"))
    until(lambda: record(plane, kind) == earlier, "it is put right")
    assert not any(replica.denies("hurried") for replica in replicas)
    # The repairing replica has seen it; the others may only see the repaired status.
    until(
        lambda: any(replica.metric(f'{IGNORED}{{why="wrong_signature"}}') for replica in replicas),
        "one counts it",
    )

    annotate(plane, kind, "dryrun after=0s")
    latest = reach(plane, kind, "deny")
    for replica in replicas:
        until(lambda replica=replica: replica.denies("hurried"), "each denies")
    for written in (unsigned(latest, "dryrun"), earlier, None, {"steps": 5}, "x" * 1000):
        forge(plane, kind, written if isinstance(written, dict) else None)
        assert all(replica.denies("hurried") for replica in replicas)
        until(lambda: record(plane, kind) == latest, "it is put right")
        assert all(replica.denies("hurried") for replica in replicas)
    plane.delete_template("hurried")
    kill(replicas)


def test_replicas_that_start_believe_no_earlier_record(plane: Plane, start: StartReplica) -> None:
    """Signed once, and written again while no replica is there. Nor the copy beside it."""
    kind = "Restarted"
    replicas = begun(plane, start, kind, "dryrun")
    earlier = reach(plane, kind, "dryrun")
    annotate(plane, kind, "dryrun after=0s")
    latest = reach(plane, kind, "deny")
    until(lambda: copy_of(plane, kind) == latest, "a copy of it is kept")
    kill(replicas)
    forge(plane, kind, earlier)
    (fresh,) = [start("restarted-again", *ALL_OPERATIONS)]
    assert first_verdict(fresh, "restarted")["allowed"] is False
    fresh.wait_ready()
    until(lambda: record(plane, kind) == latest, "it is put right")
    kill([fresh])

    # The right on revisions alone weakens nothing either.
    items = plane.api.request("GET", REVISIONS)["items"]
    for item in items:
        if item["spec"]["subject"]["kind"] == kind:
            plane.api.request("DELETE", f"{REVISIONS}/{item['metadata']['name']}")
    (last,) = [start("restarted-last", *ALL_OPERATIONS)]
    assert first_verdict(last, "restarted")["allowed"] is False
    last.wait_ready()
    until(lambda: copy_of(plane, kind) == latest, "the copy is made anew")
    plane.delete_template("restarted")
    kill([last])


def test_both_copies_written_back_together_bring_no_earlier_stage(
    plane: Plane, start: StartReplica
) -> None:
    """By who may write statuses and revisions, while no replica is there; the Secret has a third."""
    kind = "Twice"
    replicas = begun(plane, start, kind, "dryrun")
    earlier = reach(plane, kind, "dryrun")
    annotate(plane, kind, "dryrun after=0s")
    latest = reach(plane, kind, "deny")
    uid = plane.api.request("GET", path(kind))["metadata"]["uid"]
    until(
        lambda: [one["action"] for one in in_secret(plane, uid)] == ["deny"],
        "the Secret of keys has the record",
    )
    kill(replicas)
    for written in (earlier, {**latest, "steps": []}):
        forge(plane, kind, written)
        forge_copy(plane, kind, written)
        assert copy_of(plane, kind) == written
        (fresh,) = [start(f"twice-again-{written is earlier}".lower(), *ALL_OPERATIONS)]
        assert first_verdict(fresh, "twice")["allowed"] is False
        fresh.wait_ready()
        until(lambda: record(plane, kind) == latest, "the status is put right")
        until(lambda: copy_of(plane, kind) == latest, "the revision is put right")
        assert first_verdict(fresh, "twice")["allowed"] is False
        kill([fresh])
    (last,) = [start("twice-last", *ALL_OPERATIONS)]
    last.wait_ready()
    plane.delete_template("twice")
    kill([last])


def test_a_status_in_a_replica_s_name_hurries_no_step(plane: Plane, start: StartReplica) -> None:
    """A stopped replica has not reached the stage, despite a forged status."""
    kind = "Postponed"
    plane.put_template(template(kind))
    replicas = [start(f"postponed-{number}", *ALL_OPERATIONS) for number in range(3)]
    for replica in replicas:
        replica.wait_ready()
    staged = constraint("words", kind.lower(), kind)
    staged["metadata"]["annotations"] = {ANNOTATION: "dryrun"}
    plane.put_constraint(staged)
    reach(plane, kind, "dryrun")
    until(lambda: len(plane.by_pod(path(kind))) == len(replicas), "each says so")
    still = replicas[0]
    still.process.send_signal(signal.SIGSTOP)
    try:
        annotate(plane, kind, "dryrun after=0s, warn after=0s")
        reached = ("warn", "Progressing")
        until(
            lambda: tuple(record(plane, kind).get(one) for one in ("action", "state")) == reached,
            "the next stage begins, which one does not reach",
        )
        name = pack_name(still.name, kind.lower(), "words")
        for message in ("", "again"):  # the second is told of after the first was judged
            claim: dict[str, Any] = {"enforcementAction": "warn", "errors": None}
            if message:
                claim["enforcementPointsStatus"] = [{"enforcementPoint": message, "state": "x"}]
            plane.api.request("PATCH", f"{FORGED}/{name}", {"status": claim}, content_type=MERGE)
            until(
                lambda claim=claim: any(
                    entry["id"] == still.name
                    and all(entry.get(field) == value for field, value in claim.items())
                    for entry in plane.by_pod(path(kind))
                ),
                "the others have heard of it",
            )
            assert record(plane, kind)["action"] == "warn"
    finally:
        still.process.send_signal(signal.SIGCONT)
    reach(plane, kind, "deny")
    plane.delete_template("postponed")
    kill(replicas)


def test_a_roll_out_that_was_taken_away_begins_anew_whatever_was_recorded(
    plane: Plane, start: StartReplica
) -> None:
    """The annotation is gone and comes again: no record of before brings its last stage back."""
    kind = "Anew"
    replicas = begun(plane, start, kind, "dryrun after=0s")
    latest = reach(plane, kind, "deny")
    annotate(plane, kind, None)
    until(lambda: record(plane, kind) == {}, "nothing is recorded")
    until(lambda: copy_of(plane, kind).get("state") == "Ended", "its end is kept")
    annotate(plane, kind, "dryrun")
    anew = reach(plane, kind, "dryrun")
    forge(plane, kind, latest)
    until(lambda: record(plane, kind) == anew, "it is put right")
    assert not any(replica.denies("anew") for replica in replicas)
    plane.delete_template("anew")
    kill(replicas)
