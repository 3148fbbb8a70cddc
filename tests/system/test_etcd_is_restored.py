"""Etcd goes back to a copy made earlier: replicas enforce what it holds then, and follow on."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import until
from tests.system.conftest import ALL_OPERATIONS, StartReplica, control_plane
from tests.system.replicas import CONFIG_MAPS, Plane, config_map, constraint, template

CONSTRAINTS = "/apis/constraints.gatekeeper.sh/v1beta1/restored"
AUDIT = ("--operation=audit", "--operation=status")
RESTORED = "the API server is at an older version than before"
"""The beginning of a log line."""

WRITES_BETWEEN = 300
"""More than what is written between the restore and the last watch that goes on: a real cluster has
tens of writes a second, and its copies are hours old."""


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Plane]:
    """A control plane of this test's own."""
    with control_plane(tmp_path) as own:
        yield own
        own.cluster.kill()  # told to stop it would wait for watches


class Backup:
    """A copy of etcd's data, as an administrator makes and restores it: with the API server down."""

    def __init__(self, plane: Plane) -> None:
        self._cluster = plane.cluster
        self._data = plane.cluster.folder / "etcd"
        self._copy = plane.cluster.folder / "copy of etcd"

    def make(self) -> None:
        """Copy what there is now."""
        self._cluster.kill()
        shutil.copytree(self._data, self._copy)
        self._cluster.run()

    def restore(self) -> None:
        """Put the copy in the place of what there is now."""
        self._cluster.kill()
        shutil.rmtree(self._data)
        shutil.copytree(self._copy, self._data)
        self._cluster.run()


def total(plane: Plane, name: str) -> int | None:
    """Returns the audit's ``totalViolations`` of a constraint."""
    found = plane.api.request("GET", f"{CONSTRAINTS}/{name}").get("status") or {}
    number: int | None = found.get("totalViolations")
    return number


@pytest.mark.slow(60)
def test_replicas_follow_a_cluster_whose_etcd_was_restored(
    plane: Plane, start: StartReplica
) -> None:
    names = ["waddle-one", "waddle-two"]
    replicas = [start(name, *ALL_OPERATIONS) for name in names]
    auditor = start("waddle-auditor", *AUDIT, "--audit-interval=3600", "--audit-continuous")
    plane.put_template(template("Restored"))
    plane.put_constraint(constraint("kept", "kept", "Restored"))
    plane.put_constraint(constraint("changed", "before", "Restored"))
    plane.api.apply(f"{CONFIG_MAPS}/violating", config_map("kept", "violating"))
    until(lambda: total(plane, "kept") == 1, "the audit has counted")
    until(lambda: all(one.is_ready and one.denies("before") for one in replicas), "they enforce")

    backup = Backup(plane)
    backup.make()
    for number in range(WRITES_BETWEEN):
        plane.api.apply(f"{CONFIG_MAPS}/busy", config_map(f"{number}", "busy"))
    plane.put_constraint(constraint("changed", "after", "Restored"))
    plane.put_constraint(constraint("late", "late", "Restored"))
    plane.api.request("DELETE", f"{CONFIG_MAPS}/violating")
    until(lambda: total(plane, "kept") == 0, "the audit has followed")
    for word in ("after", "late"):
        until(lambda word=word: all(one.denies(word) for one in replicas), f"{word} is enforced")

    backup.restore()
    until(lambda: not any(one.denies("late") for one in replicas), "what never was is gone")
    until(lambda: all(one.denies("before") for one in replicas), "what was restored is enforced")
    assert not any(one.denies("after") for one in replicas)
    assert all(one.denies("kept") for one in replicas)
    for one in replicas:
        until(lambda one=one: one.metric("waddle_watch_restores_total"), "the restore is counted")
        until(
            lambda one=one: any(event["msg"].startswith(RESTORED) for event in list(one.events)),
            "the log says so",
        )
        until(lambda one=one: one.is_ready, "it is ready again")

    until(lambda: total(plane, "kept") == 1, "the audit counts what was restored")
    until(lambda: auditor.is_ready, "the audit is ready again")

    plane.put_constraint(constraint("new", "new", "Restored"))
    until(lambda: all(one.denies("new") for one in replicas), "what is new is followed")
    everyone = sorted([*names, auditor.name])
    until(
        lambda: [item["id"] for item in plane.by_pod(f"{CONSTRAINTS}/new")] == everyone,
        "statuses are written",
    )
    until(lambda: len({one.digest for one in replicas}) == 1, "the policies are one")
