"""Faults under a load of real admissions: whoever is ready decides, and decides rightly."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from tests.patience import until
from tests.repeating import BREATH_SECONDS, Repeating
from tests.system.conftest import ALL_OPERATIONS, StartReplica
from tests.system.gate import Gate
from tests.system.load import Load
from tests.system.proxy import Proxy
from tests.system.replicas import (
    CONSTRAINTS,
    STATUSES,
    TEMPLATES,
    Plane,
    Replica,
    config_map,
    constraint,
    review_of,
    template,
)

CANARIES = 300


@contextmanager
def policy(plane: Plane, kind: str, word: str) -> Iterator[None]:
    """A template and a constraint with a word, while this block runs."""
    plane.put_template(template(kind))
    try:
        plane.put_constraint(constraint("words", word, kind))
        yield
    finally:
        plane.delete_template(kind.lower())


@pytest.mark.slow(25)
def test_the_first_answer_of_a_ready_replica_knows_the_last_constraint(
    plane: Plane, trio: list[Replica], gate: Gate, start: StartReplica
) -> None:
    """A half-filled cache would admit what the last of many constraints denies."""
    plane.put_template(template("Canary"))
    try:
        for number in range(CANARIES):
            word = "canary" if number == CANARIES - 1 else f"other {number}"
            plane.put_constraint(constraint(f"canary-{number:04}", word, "Canary"))
        until(lambda: trio[0].denies("canary"), "the others deny")
        gate.hold(lambda path: "/constraints.gatekeeper.sh/" in path)
        replica = start("waddle-late", f"--kubeconfig={gate.kubeconfig}")
        while True:
            answer = replica.post(review_of(config_map("canary")))
            if answer.status == 200:
                break
            assert answer.status == 503
            assert b"not ready" in answer.body
            gate.open()
        assert answer.verdict["allowed"] is False
        assert answer.verdict["status"]["message"] == "[canary-0299] denied by canary"
        assert not gate.is_holding, "it was ready before it had heard of a constraint"
        enforced = replica.wait_ready().digest
        # The policies were complete: the others, perhaps still at trials, reach the same state.
        until(lambda: trio[0].digest == enforced, "the others enforce what it enforced when ready")
    finally:
        plane.delete_template("canary")


def test_a_replica_that_is_not_ready_says_what_it_waits_for(
    plane: Plane, trio: list[Replica], start: StartReplica
) -> None:
    """A broken template holds it back only where that is asked for, until it is repaired."""
    plane.put_template(template("Holding", "package holding\nviolation[{"))
    try:
        patient = start("waddle-patient", "--readiness-retries=-1")
        hasty = start("waddle-hasty").wait_ready()
        until(
            lambda: (
                b"ConstraintTemplate holding, for " in patient.get("health", "/readyz?verbose").body
            ),
            "the template is named",
        )
        answer = patient.get("health", "/readyz")
        assert answer.status == 503
        assert b"rego_parse_error" in answer.body
        assert patient.post(review_of(config_map("x"))).status == 503
        assert hasty.post(review_of(config_map("x"))).status == 200
        patient.wait_for("not ready")
        plane.put_template(template("Holding"))
        patient.wait_ready()
        assert patient.post(review_of(config_map("x"))).status == 200
    finally:
        plane.delete_template("holding")
    assert all(replica.is_ready for replica in trio)


def test_a_pod_that_is_deleted_takes_its_statuses_and_entries_along(
    plane: Plane, trio: list[Replica], start: StartReplica
) -> None:
    """By the garbage collector; and a Pod that has only finished, by the replicas themselves."""
    with policy(plane, "Leaving", "leaving"):
        path = f"{CONSTRAINTS}/leaving/words"
        deleted, finished = start("waddle-deleted"), start("waddle-finished")
        until(lambda: len(plane.by_pod(path)) == len(trio) + 2, "five entries are shown")

        deleted.kill()
        plane.delete_pod("waddle-deleted")
        finished.kill()
        plane.finish_pod("waddle-finished")
        for shown in (path, f"{TEMPLATES}/leaving"):
            until(lambda shown=shown: len(plane.by_pod(shown)) == len(trio), "three are left")

        def has_statuses(pod: str) -> bool:
            selector = f"internal.gatekeeper.sh/pod={pod}"
            query = f"{STATUSES}/constraintpodstatuses?labelSelector={selector}"
            return bool(plane.api.request("GET", query)["items"])

        until(lambda: not has_statuses("waddle-deleted"), "statuses are collected")
        until(lambda: not has_statuses("waddle-finished"), "statuses are deleted")


def test_a_replica_without_those_operations_makes_no_crd_and_writes_no_by_pod(
    plane: Plane, trio: list[Replica], start: StartReplica
) -> None:
    """A replica beside a running Gatekeeper enforces and writes only its own status objects."""
    plain = start("waddle-plain", "--operation=webhook,mutation-status").wait_ready()
    with policy(plane, "Plain", "plain"):
        until(lambda: plain.denies("plain"), "it enforces")
        path = f"{CONSTRAINTS}/plain/words"
        until(
            lambda: (
                [
                    entry["operations"]
                    for entry in plane.by_pod(path)
                    if entry["id"] == "waddle-plain"
                ]
                == [["webhook"]]
            ),
            "it claims what it carries out: nobody else copies its mutators' statuses",
        )
        until(
            lambda: (plain.metric('waddle_api_writes_total{what="status"}') or 0) >= 2,
            "it has written the statuses of template and constraint",
        )
        assert not plain.metric('waddle_api_writes_total{what="crd"}')
        assert not plain.metric('waddle_api_writes_total{what="by_pod"}')
        until(
            lambda: any(
                replica.metric('waddle_api_writes_total{what="by_pod"}') for replica in trio
            ),
            "another has written byPod",
        )


def test_replicas_come_and_go_under_load(plane: Plane, start: StartReplica, proxy: Proxy) -> None:
    """SIGTERM loses no admission; SIGKILL those that were under way in the process, at most."""
    # The replicas first: they are the ones that make the constraint's kind.
    # They drain for longer than this process, which is the load and the proxy, may stand still.
    flags = (*ALL_OPERATIONS, "--shutdown-delay=8")
    replicas = [start(f"waddle-load-{number}", *flags) for number in range(3)]
    with policy(plane, "Loaded", "loaded"):
        for replica in replicas:
            replica.wait_ready()
        for replica in replicas:
            until(lambda replica=replica: replica.denies("loaded"), f"{replica.name} denies")
        proxy.replicas = list(replicas)
        plane.register(proxy.port)
        try:
            until(lambda: is_denied(plane, "loaded"), "the webhook is in place")
            with Load(plane.api, "loaded") as load:
                load.wait_for(50)
                assert replicas[0].stop() == 0
                load.wait_for(50)
                assert load.wrong == []

                replicas[1].process.send_signal(signal.SIGKILL)
                load.wait_for(50)
            # Each was cut off in the killed process, and failurePolicy spoke instead.
            assert all("failed calling webhook" in text for text in load.wrong)
            assert len(load.wrong) <= load.threads_count
        finally:
            plane.unregister()


def is_denied(plane: Plane, word: str) -> bool:
    """Whether the API server denies a ConfigMap by policy."""
    load = Load(plane.api, word)
    load.ask()
    return load.denied == 1


def test_a_restart_of_the_api_server_loses_no_policy(plane: Plane, trio: list[Replica]) -> None:
    """Asked all the while, each replica denies; watches that were forgotten (410) list anew."""
    with policy(plane, "Restarted", "restarted"):
        for replica in trio:
            until(lambda replica=replica: replica.denies("restarted"), "each denies")
        faults = [replica.metric("waddle_cluster_faults_total") or 0 for replica in trio]
        wrong, answered = [], [0] * len(trio)

        def ask(number: int) -> None:
            if not trio[number].denies("restarted"):
                wrong.append(number)
            answered[number] += 1

        asking = (partial(ask, number) for number in range(len(trio)))
        with Repeating(*asking, pause_seconds=BREATH_SECONDS):
            # As after a power cut: told to stop, it would wait a minute for its watches.
            plane.cluster.kill()
            plane.cluster.run()
            plane.put_constraint(constraint("after", "after", "Restarted"))
            for replica in trio:
                until(lambda replica=replica: replica.denies("after"), "each follows again")
        assert wrong == []
        assert all(answered)
        assert all(replica.is_ready for replica in trio)
        until(lambda: len({replica.digest for replica in trio}) == 1, "the digests are one")
        until(lambda: all(replica.metric("waddle_watch_gone_total") for replica in trio), "410s")
        after = [replica.metric("waddle_cluster_faults_total") or 0 for replica in trio]
        assert after == faults
