"""A Pod's name may be longer than a label's value: its replica says what it enforces all the same."""

import pytest

from tests.patience import until
from tests.system.conftest import ALL_OPERATIONS, StartReplica
from tests.system.replicas import Plane, constraint, template

NAME = f"waddle-{'with-a-long-name-' * 8}0"
PATH = "/apis/constraints.gatekeeper.sh/v1beta1/longnamed/long"


@pytest.mark.slow(15)
def test_a_replica_whose_pod_has_a_long_name_writes_its_statuses(
    plane: Plane, start: StartReplica
) -> None:
    replica = start(NAME, *ALL_OPERATIONS).wait_ready()
    plane.put_template(template("LongNamed"))
    plane.put_constraint(constraint("long", "long", "LongNamed"))
    until(lambda: replica.denies("long"), "it is enforced")
    until(lambda: NAME in [item["id"] for item in plane.by_pod(PATH)], "its status is there")
    plane.delete_template("longnamed")
    assert [
        event
        for event in replica.events
        if event["msg"] == "an object was not written; trying again"
    ] == []
