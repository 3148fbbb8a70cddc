"""Clusters of a size, smaller than those of `python -m loadtest.cluster`, under a load of admissions."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loadtest.cluster import content
from loadtest.cluster.content import CANARY, Content
from tests.patience import until
from tests.system.bulk import create
from tests.system.conftest import ALL_OPERATIONS, StartReplica, control_plane
from tests.system.first_answers import FirstAnswers
from tests.system.load import DRAINING, Load, is_denied
from tests.system.proxy import Proxy
from tests.system.replicas import (
    CRD_PATH,
    STATUSES,
    WORKLOADS,
    Plane,
    Replica,
    constraint,
    template,
)
from tests.system.rounds import rest

MEMORY_MIB_MAX = 120
"""The memory bound of each of three replicas with 100 constraints, in MiB."""

OBJECTS = 1_000

SYNCED = 'gatekeeper_sync{kind="ConfigMap",status="active"}'

REFERENTIAL = f"""
package referential
violation[{{"msg": msg}}] {{
  maps := data.inventory.namespace["{WORKLOADS}"]["v1"]["ConfigMap"]
  count(maps) >= {OBJECTS}
  maps["{CANARY}"]
  input.review.object.data.deny == "referential"
  msg := "denied by referential"
}}
"""


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Plane]:
    """A control plane of the test's own, which is thrown away with all that is in it."""
    with control_plane(tmp_path) as own:
        yield own
        own.cluster.kill()  # told to stop it would wait for watches


def fill(plane: Plane, start: StartReplica, made: Content) -> Replica:
    """Make templates and constraints; the replica that made their kinds."""
    create(plane.api, content.template_requests(made))
    maker = start("waddle-maker", *ALL_OPERATIONS, DRAINING)

    def are_served() -> bool:
        crds = plane.api.request("GET", f"{CRD_PATH}?labelSelector=gatekeeper.sh/constraint=yes")
        established = [
            crd
            for crd in crds["items"]
            for one in (crd.get("status") or {}).get("conditions") or ()
            if (one["type"], one["status"]) == ("Established", "True")
        ]
        return len(established) == len(made.templates)

    until(are_served, "the constraints' kinds are established")
    create(plane.api, content.constraint_requests(made))
    maker.wait_ready()
    until(lambda: maker.denies(CANARY), "the maker enforces")
    return maker


def synced(plane: Plane) -> list[dict[str, Any]]:
    """The objects that policies may read."""
    found: list[dict[str, Any]] = plane.api.request("GET", "/api/v1/configmaps")["items"]
    return found


def memory_mib(replica: Replica) -> float:
    """Resident memory of a replica's process."""
    for line in Path(f"/proc/{replica.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"{replica.name} is gone")


def take_over(
    plane: Plane, start: StartReplica, proxy: Proxy, maker: Replica, word: str
) -> list[Replica]:
    """Under load, let three replicas that start at once take the place of the one before them."""
    proxy.replicas = [maker]
    plane.register(proxy.port)
    until(lambda: is_denied(plane.api, word), "the webhook is in place")
    with Load(plane.api, word) as load:
        answers = FirstAnswers(word)
        three = []
        for number in range(3):
            three.append(start(f"waddle-{number}", *ALL_OPERATIONS))
            answers.of(three[-1])
        answers.join()
        assert answers.allowed == {replica.name: False for replica in three}
        for replica in three:
            replica.wait_ready()
        proxy.replicas = three
        assert maker.stop() == 0
        plane.delete_pod(maker.name)
        load.wait_for(50)
    assert load.wrong == []
    plane.unregister()
    until(lambda: len({replica.digest for replica in three}) == 1, "the policies are one")
    return three


@pytest.mark.slow(50)
@pytest.mark.usefixtures("unmeasured")
def test_three_replicas_with_100_constraints_are_small_and_then_rest(
    plane: Plane, start: StartReplica, proxy: Proxy
) -> None:
    """Their memory, once every status is written; and nothing is written from then on."""
    made = content.policies(templates=12, constraints=100)
    maker = fill(plane, start, made)
    three = take_over(plane, start, proxy, maker, CANARY)
    count = 3 * len(made.constraints)

    def has_all_statuses() -> bool:
        found = plane.api.request("GET", f"{STATUSES}/constraintpodstatuses")["items"]
        return len(found) == count

    until(has_all_statuses, "every replica has its statuses")
    rest(plane, [replica.name for replica in three])
    assert max(memory_mib(replica) for replica in three) <= MEMORY_MIB_MAX


@pytest.mark.slow(40)
def test_no_answer_of_three_replicas_comes_from_a_half_filled_inventory(
    plane: Plane, start: StartReplica, proxy: Proxy
) -> None:
    """Among 300 constraints one asks for the last of a thousand objects, and for all of them."""
    made = content.policies(templates=19, constraints=299)
    reading = template("Referential", REFERENTIAL)
    reads = constraint("reads", "", "Referential")
    made = Content((*made.templates, reading), (*made.constraints, reads))
    create(plane.api, content.config_maps(OBJECTS, WORKLOADS))
    plane.api.apply(content.SYNC_SET, content.sync_set())
    maker = fill(plane, start, made)
    three = take_over(plane, start, proxy, maker, "referential")
    assert all(replica.denies(CANARY) for replica in three)
    until(lambda: len({replica.data_digest for replica in three}) == 1, "the data is one")
    until(
        lambda: all((replica.metric(SYNCED) or 0) >= OBJECTS for replica in three),
        "every replica counts the data",
    )
