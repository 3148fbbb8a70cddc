"""The replica whose turn it is to write byPod hangs: the next one writes, and nobody fights after."""

import itertools
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from subprocess import CompletedProcess
from time import monotonic
from typing import Any

import pytest

from tests.conformance.gatekeeper import waddle
from tests.patience import PATIENCE_SECONDS, until
from tests.system.conftest import ALL_OPERATIONS
from tests.system.replicas import (
    CONSTRAINTS,
    NAMESPACE,
    STATUSES,
    Plane,
    Replica,
    constraint,
    template,
    try_request,
)
from tests.system.rounds import rest
from webhook.api import pod_status
from webhook.api.pod_status import Pod
from webhook.controllers.keeper import TURN_SECONDS
from webhook.controllers.status_kinds import LabelledSubject
from webhook.replicas import rendezvous

PATH = f"{CONSTRAINTS}/hung/words"
SUBJECT = LabelledSubject(pod_status.CONSTRAINT.kind, "Hung", "words")


@pytest.fixture(scope="module")
def ranked(empty_plane: Plane) -> Iterator[list[Replica]]:
    """Three replicas, in the order in which they would write the constraint's byPod."""
    with ExitStack() as stack:
        started = []
        for number in range(3):
            name = f"turn-{number}"
            stack.callback(empty_plane.delete_pod, name)
            replica = Replica(empty_plane, name, *ALL_OPERATIONS)
            started.append(stack.enter_context(replica))
        stack.callback(empty_plane.delete_template, "hung")
        for replica in started:
            replica.wait_ready()
            empty_plane.mark_pod(replica.name, ready=True)
        uids = [replica.uid for replica in started]
        empty_plane.put_template(template("Hung"))
        empty_plane.put_constraint(constraint("words", "first", "Hung"))
        until(lambda: generations(empty_plane) == [1, 1, 1], "three entries are shown")
        yield sorted(started, key=lambda item: rendezvous.rank("/".join(SUBJECT), uids, item.uid))


def generations(plane: Plane) -> list[int]:
    """The generation in each entry of the constraint's byPod."""
    return sorted(entry["observedGeneration"] for entry in plane.by_pod(PATH))


def entry_of(plane: Plane, replica: Replica) -> Any:
    """Returns the byPod entry of a replica."""
    return next(entry for entry in plane.by_pod(PATH) if entry["id"] == replica.name)


@contextmanager
def stopped(replica: Replica) -> Iterator[None]:
    """Stops the process, as a node without memory does: it exists, and does nothing."""
    replica.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        replica.process.send_signal(signal.SIGCONT)


@pytest.mark.slow(30)
def test_the_next_writes_while_the_first_hangs_and_its_return_starts_no_fight(
    empty_plane: Plane, ranked: list[Replica]
) -> None:
    """By its turn at first; then because the kubelet's probes have made the Pod unready."""
    plane, (first, _, third) = empty_plane, ranked
    names = [replica.name for replica in ranked]
    rest(plane, names)  # the constraint's first statuses are written
    with stopped(first):
        with not_before_its_turn(plane, third, 2):
            plane.put_constraint(constraint("words", "second", "Hung"))
            until(lambda: generations(plane) == [1, 2, 2], "the next in turn has written")
        assert entry_of(plane, first)["observedGeneration"] == 1

        def says_so() -> bool:  # in two seconds it may not have asked everything yet
            waited = wait(plane, "2s")
            assert waited.returncode == 1
            return f"{first.name}: at generation 1" in waited.stderr

        until(says_so, "it tells who is behind")
        plane.mark_pod(first.name, ready=False)
        with not_before_its_turn(plane, third, 1):
            plane.put_constraint(constraint("words", "third", "Hung"))
            until(
                lambda: generations(plane) == [1, 3, 3], "the next writes as if it were the first"
            )

    with not_before_its_turn(plane, third, 1):
        until(lambda: generations(plane) == [3, 3, 3], "the one that hung has followed")
    assert first.denies("third")
    plane.mark_pod(first.name, ready=True)
    assert wait(plane, f"{PATIENCE_SECONDS:.0f}s").returncode == 0
    rest(plane, names)  # no replica writes any more
    assert generations(plane) == [3, 3, 3]


@contextmanager
def not_before_its_turn(plane: Plane, replica: Replica, before: int) -> Iterator[None]:
    """It does not write while others have a turn, of which there are so many before it.

    Where a machine stops those for as long, it is right that it writes.
    """
    wrote, began = by_pod_writes(plane, replica), monotonic()
    yield
    has_written = by_pod_writes(plane, replica) > wrote
    assert not has_written or monotonic() - began >= before * TURN_SECONDS


def wait(plane: Plane, timeout: str) -> CompletedProcess[str]:
    """Waits as a pipeline does after it applied the constraint."""
    kubeconfig = str(plane.cluster.kubeconfig)
    return waddle("wait", "Hung/words", f"--timeout={timeout}", "--kubeconfig", kubeconfig)


def by_pod_writes(plane: Plane, replica: Replica) -> int:
    """Returns the number of a replica's writes of the constraint's status."""
    return plane.writes(replica=replica.name).count("update hung/status words")


@pytest.mark.slow
def test_statuses_of_a_finished_pod_are_deleted_though_the_one_whose_turn_it_is_hangs(
    empty_plane: Plane, ranked: list[Replica]
) -> None:
    """The Pod is still there, so that the garbage collector leaves them."""
    plane, first = empty_plane, ranked[0]
    uids = [replica.uid for replica in ranked]
    names = (f"finished-{number}" for number in itertools.count())
    name = next(
        name
        for name in names
        if rendezvous.chosen(pod_status.pack_name(name, "hung"), uids) == first.uid
    )
    uid = plane.make_pod(name)
    try:
        subject = pod_status.status_subject(pod_status.TEMPLATE, {"metadata": {"name": "hung"}})
        status = pod_status.pod_status(Pod(name, NAMESPACE, uid), subject)
        path = f"{STATUSES}/constrainttemplatepodstatuses"
        plane.api.request("POST", path, status)
        path += f"/{status['metadata']['name']}"
        with stopped(first):
            plane.finish_pod(name)
            until(lambda: try_request(plane.api, "GET", path) is None, "another has deleted it")
    finally:
        plane.delete_pod(name)
