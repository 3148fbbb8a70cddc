"""Who may write a constraint's status, and nothing else, moves no roll-out, at any replica."""

import pytest

from tests.patience import until
from tests.system.conftest import ALL_OPERATIONS, StartReplica
from tests.system.replicas import Plane
from tests.system.revisions import REVISIONS, first_verdict, kill
from tests.system.rollout_forging import annotate, begun, copy_of, forge, reach, record, unsigned

IGNORED = "waddle_rollout_records_ignored_total"


@pytest.fixture
def plane(empty_plane: Plane) -> Plane:
    """Here every replica ends: no other may be there."""
    return empty_plane


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
    until(
        lambda: all(replica.metric(f'{IGNORED}{{why="wrong_signature"}}') for replica in replicas),
        "each counts it",
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
