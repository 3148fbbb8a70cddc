"""Stored objects that nobody would write, while a replica runs and restarts."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from loadtest.drill.drill import Row
from tests.patience import until
from tests.system.conftest import ALL_OPERATIONS, control_plane
from tests.system.replicas import NAMESPACE, Plane, Replica, constraint, template
from tests.system.strange import CONFIG, Fuzz, try_apply, write_all

FOLLOW_SECONDS_MAX = 15
START_SECONDS_MAX = 60
"""The longest start. Ten seconds go to SyncSets of kinds that nobody serves, which are awaited for
so long; the rest is a start on a machine with other work. The attack might have prevented any
start."""

ROUNDS = 5
WRITES = 15

NAME = "objects of every shape and depth"


def run() -> Iterator[Row]:
    """Write what was seen to stop replicas, then at random; follow a canary all the while."""
    with (
        tempfile.TemporaryDirectory(prefix="waddle-drill-") as folder,
        control_plane(Path(folder)) as plane,
    ):
        kinds = [{"group": "", "version": "v1", "kind": "ConfigMap"}]
        config = {
            "apiVersion": "config.gatekeeper.sh/v1alpha1",
            "kind": "Config",
            "metadata": {"name": "config", "namespace": NAMESPACE},
            "spec": {"sync": {"syncOnly": kinds}},
        }
        try_apply(plane.api, f"{CONFIG}/config", config)
        plane.put_template(template("Canary"))
        with Replica(plane, "waddle-drill", *ALL_OPERATIONS) as replica:
            replica.wait_ready()
            written = len(list(write_all(plane)))
            slowest = _follow(plane, replica, "all")
            fuzz = Fuzz(plane, seed=1)
            for number in range(ROUNDS):
                for _ in range(WRITES):
                    fuzz.write()
                slowest = max(slowest, _follow(plane, replica, f"round {number}"))
            anew = sum(
                "watching the cluster stopped" in str(line.get("msg")) for line in replica.events
            )
        began = time.monotonic()
        with Replica(plane, "waddle-late", *ALL_OPERATIONS) as late:
            late.wait_ready()
            start = time.monotonic() - began
            slowest = max(slowest, _follow(plane, late, "late"))
        yield Row(NAME, f"times that following began anew ({written} written)", anew, 0)
        yield Row(NAME, "slowest change to be enforced", slowest, FOLLOW_SECONDS_MAX, "s")
        yield Row(NAME, "start of a replica to ready", start, START_SECONDS_MAX, "s")


def _follow(plane: Plane, replica: Replica, word: str) -> float:
    """Seconds until a change of the canary is enforced."""
    plane.put_constraint(constraint("canary", word, "Canary"))
    began = time.monotonic()
    until(lambda: replica.denies(word), f"{replica.name} denies {word}")
    return time.monotonic() - began
