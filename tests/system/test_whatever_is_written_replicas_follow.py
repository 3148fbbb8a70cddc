"""Running and restarting replicas follow policies, despite any object in the API server."""

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.patience import until
from tests.system.conftest import ALL_OPERATIONS, control_plane
from tests.system.replicas import (
    CONSTRAINTS,
    NAMESPACE,
    TEMPLATES,
    Plane,
    Replica,
    constraint,
    template,
)
from tests.system.strange import CONFIG, KIND, Fuzz, try_apply, write_all

ROUNDS = int(os.environ.get("WADDLE_FUZZ_ROUNDS", "6"))
OPERATIONS = (*ALL_OPERATIONS, "--operation=mutation-webhook")
WRITES = 20
"""Objects written in a round."""

CANARY = "Canary"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane of their own: what is written here would harm other tests' looks."""
    with control_plane(tmp_path_factory.mktemp("strange-plane")) as made:
        sync = {"syncOnly": [{"group": "", "version": "v1", "kind": "ConfigMap"}]}
        config = {
            "apiVersion": "config.gatekeeper.sh/v1alpha1",
            "kind": "Config",
            "metadata": {"name": "config", "namespace": NAMESPACE},
            "spec": {"sync": sync},
        }
        assert try_apply(made.api, f"{CONFIG}/config", config)
        made.put_template(template(CANARY))
        yield made


@pytest.fixture(scope="module")
def pair(plane: Plane) -> Iterator[list[Replica]]:
    """Two replicas that carry out every operation."""
    with ExitStack() as stack:
        started = [
            stack.enter_context(Replica(plane, f"waddle-{number}", *OPERATIONS))
            for number in range(2)
        ]
        for replica in started:
            replica.wait_ready()
        yield started


def follows(plane: Plane, replicas: list[Replica], word: str) -> None:
    """Each of the replicas enforces what is written now, and none began anew."""
    plane.put_constraint(constraint("canary", word, CANARY))
    for replica in replicas:
        until(lambda: replica.denies(word), f"{replica.name} denies {word}")  # noqa: B023  # called here
        lines = [
            line
            for line in replica.events
            if "watching the cluster stopped" in str(line.get("msg"))
        ]
        assert not lines, lines[0]


def enforced(plane: Plane, path: str) -> list[bool]:
    """Returns for each replica whether it reports an object as enforced."""
    return [bool(entry.get("enforced")) for entry in plane.by_pod(path)]


@pytest.mark.leaves("each test writes beside what there is")
@pytest.mark.slow(20)
def test_what_was_seen_to_stop_replicas_costs_itself_alone(
    plane: Plane, pair: list[Replica]
) -> None:
    for number, description in enumerate(write_all(plane)):
        if number % 6 == 5:
            follows(plane, pair, f"after {number} ({description})"[:60])
    follows(plane, pair, "after all of it")
    with Replica(plane, "waddle-late", *OPERATIONS) as late:
        late.wait_ready()
        follows(plane, [*pair, late], "with one that starts")
    plane.delete_pod("waddle-late")
    canary = f"{CONSTRAINTS}/{CANARY.lower()}/canary"
    until(lambda: enforced(plane, canary)[:2] == [True, True], "the canary's status")
    deep = f"{CONSTRAINTS}/{KIND.lower()}/deep-1100"
    until(lambda: any("nested deeper" in str(entry) for entry in plane.by_pod(deep)), "its status")
    strange = f"{CONSTRAINTS}/{KIND.lower()}/status-0"
    until(lambda: len(enforced(plane, strange)) >= 2, "a status is written over")
    broken = f"{TEMPLATES}/worded"
    until(lambda: any(entry.get("errors") for entry in plane.by_pod(broken)), "the schema's fault")


@pytest.mark.leaves("each test writes beside what there is")
@pytest.mark.slow(30)
def test_random_objects_of_every_kind_stop_no_replica(plane: Plane, pair: list[Replica]) -> None:
    fuzz = Fuzz(plane, seed=int(os.environ.get("WADDLE_FUZZ_SEED", "1")))
    for number in range(ROUNDS):
        for _ in range(WRITES):
            fuzz.write()
        follows(plane, pair, f"round {number}")
        if number % 3 == 2:
            with Replica(plane, f"waddle-round-{number}", *OPERATIONS) as fresh:
                fresh.wait_ready()
                follows(plane, [fresh], f"round {number}, restarted")
            plane.delete_pod(f"waddle-round-{number}")
