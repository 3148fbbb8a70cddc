"""Mutators that change while three replicas are asked, start and are killed: all of one generation.

One mutator writes five fields of one generation: an object has all of one, never of two, and never
goes unmutated.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cluster import ApiError
from tests.patience import until
from tests.repeating import BREATH_SECONDS
from tests.system.mutating import clean, enforced, place_of, post, three
from tests.system.proxy import Proxy
from tests.system.replicas import Plane, Replica
from tests.webhook.cli.in_process import waddle
from tests.webhook.mutation.documents import assign

CONFIG_MAPS = [{"groups": [""], "versions": ["v1"], "kinds": ["ConfigMap"]}]
CALL_FAILED = "failed calling webhook"
"""The API server's message if a replica ends during a call: nothing is stored."""


@pytest.fixture(scope="module")
def behind(plane: Plane) -> Iterator[tuple[list[Replica], Proxy]]:
    """Three replicas, and the address that the API server asks them at."""
    with three(plane) as found:
        for replica in found[0]:
            plane.mark_pod(replica.name, ready=True)
        yield found


@pytest.fixture(autouse=True)
def cleaned(plane: Plane, behind: tuple[list[Replica], Proxy]) -> Iterator[None]:
    """Deletes the test's policies after it."""
    yield
    clean(plane, behind[0])


def fields(number: int) -> dict[str, Any]:
    """The mutator's generation of a number."""
    value = {f"f{place}": str(number) for place in range(5)}
    return assign("fields", "data", value, applyTo=CONFIG_MAPS)


class Load:
    """Creates ConfigMaps one after another, and records the stored ones."""

    def __init__(self, plane: Plane, *tolerated: str) -> None:
        self.seen: set[str] = set()
        """The generations that objects have."""
        self.wrong: list[str] = []
        self.failed = 0
        self._plane = plane
        self._tolerated = tolerated
        self._stop = threading.Event()
        self._workers = [threading.Thread(target=self._create, args=(at,)) for at in range(3)]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Create objects meanwhile."""
        for worker in self._workers:
            worker.start()
        try:
            yield
        finally:
            self._stop.set()
            for worker in self._workers:
                worker.join()

    def meets(self, number: int) -> None:
        """Wait until an object is of a generation."""
        shown = str(number)
        until(lambda: shown in self.seen or self.wrong, f"generation {number} is met")

    def _create(self, worker: int) -> None:
        made = 0
        while not self._stop.wait(BREATH_SECONDS) and not self.wrong:
            made += 1
            body = {"metadata": {"name": f"load-{worker}-{made}"}, "data": {"own": "x"}}
            try:
                found = post(self._plane, "configmaps?dryRun=All", body)
            except ApiError as error:
                if not any(text in str(error.body) for text in self._tolerated):
                    self.wrong.append(f"{error.status}: {error.body[:300]}")
                self.failed += 1
                continue
            data = found.get("data") or {}
            if len(data) != 5 or len(set(data.values())) != 1:
                self.wrong.append(str(data))
            self.seen.update(data.values())


def test_while_a_mutator_changes_under_load_no_request_is_half_mutated(
    plane: Plane, behind: tuple[list[Replica], Proxy]
) -> None:
    replicas, _ = behind
    enforced(plane, fields(0), replicas)
    load = Load(plane)
    with load.running():
        load.meets(0)
        for number in range(1, 6):
            plane.api.apply(place_of(fields(number)), fields(number))
            load.meets(number)
        enforced(plane, fields(6), replicas)
    assert load.wrong == []
    assert {"0", "5"} <= load.seen


@pytest.mark.slow(30)
def test_while_replicas_are_killed_and_start_again_no_request_is_half_mutated(
    plane: Plane, behind: tuple[list[Replica], Proxy]
) -> None:
    """Each is killed in the middle of a change, and starts again in the middle of the next."""
    replicas, proxy = behind
    enforced(plane, fields(0), replicas)
    load = Load(plane, CALL_FAILED)
    with load.running():
        load.meets(0)
        for round_, victim in enumerate(replicas * 2):
            number = 10 + 2 * round_
            plane.api.apply(place_of(fields(number)), fields(number))
            victim.kill()
            proxy.replicas = [replica for replica in replicas if replica is not victim]
            load.meets(number)
            plane.api.apply(place_of(fields(number + 1)), fields(number + 1))
            victim.restart()
            victim.wait_ready()
            proxy.replicas = list(replicas)
            load.meets(number + 1)
        enforced(plane, fields(99), replicas)
        load.meets(99)
    assert load.wrong == []
    assert not any(victim.process.poll() for victim in replicas)


def test_wait_ends_once_the_last_of_three_replicas_applies_a_mutator(
    plane: Plane, behind: tuple[list[Replica], Proxy]
) -> None:
    replicas, _ = behind
    plane.api.apply(place_of(fields(1)), fields(1))
    options = ("--timeout=240s", "--kubeconfig", plane.cluster.kubeconfig)
    found = waddle("wait", "--for=enforced", "Assign/fields", *options)
    assert found.returncode == 0, found.stdout + found.stderr
    number = found.stdout.split("enforced by ")[1].split(" ")[0]
    assert found.stdout == f"Assign/fields: enforced by {number} of {number} replicas\n"
    assert int(number) >= len(replicas)
    for _ in range(12):  # Whichever replica is asked.
        assert set(post(plane, "configmaps?dryRun=All", CONFIG_MAP)["data"].values()) == {"1"}
    early = waddle("wait", "--for=enforced", "Assign/none", *options)
    assert early.returncode == 2, early.stdout + early.stderr


CONFIG_MAP = {"metadata": {"name": "waited-for"}, "data": {"own": "x"}}
