"""A soak, of any length."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from loadtest.soak.clients import Client, Crowd
from loadtest.soak.site import REPLICAS, Policies, Replicas, rss_mib
from loadtest.soak.verdict import Memory, Tally, broken
from tests.cluster import Cluster
from tests.patience import until
from tests.system.replicas import Plane

CLIENTS = 6
SAMPLE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Plan:
    """The durations and rates of a soak; 150 requests a second leave room on two cores."""

    seconds: float
    change_seconds: float = 2.0
    end_seconds: float = 30.0
    pause_seconds: float = 0.04
    ends_min: int = 0
    """The least number of replicas that end, without a time limit."""
    seed: int = field(default_factory=lambda: int.from_bytes(os.urandom(3)))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The events of a run, for the verdict."""

    plan: Plan
    tally: Tally
    memory: Memory
    changes: int
    kills: int
    stops: int
    broken: list[str]


def soak(plan: Plan, program: Path, folder: Path, say: Callable[[str], None]) -> Outcome:
    """Run it on a cluster of its own."""
    cluster = Cluster.start(program, folder / "cluster")
    try:
        plane = Plane(cluster, folder)
        plane.install()
        return _soak(plan, plane, say)
    finally:
        cluster.kill()  # told to stop it would wait a minute for watches


def _soak(plan: Plan, plane: Plane, say: Callable[[str], None]) -> Outcome:
    crowd = Crowd()
    policies, replicas = Policies(plane, plan.change_seconds), Replicas(plane, crowd, plan.seed)
    clients = [Client(crowd, number, plan.pause_seconds, plan.seed) for number in range(CLIENTS)]
    try:
        policies.make()
        first = replicas.start_one()
        policies.constrain()
        until(lambda: first.denies("forbidden") and first.denies("word-0"), "policies in force")
        while len(crowd.members) < REPLICAS:
            replicas.start_one()
        policies.start()
        for client in clients:
            client.start()
        try:
            samples = _watch(plan, replicas, clients, say)
        finally:
            for client in clients:
                client.stop()
            policies.stop()
    finally:
        replicas.stop()
    tally = Tally()
    for client in clients:
        tally.add(client.tally)
    memory = Memory(samples)
    faults = [*broken(tally, memory), *policies.faults, *replicas.faults]
    return Outcome(plan, tally, memory, policies.changes, replicas.kills, replicas.stops, faults)


def _watch(
    plan: Plan, replicas: Replicas, clients: list[Client], say: Callable[[str], None]
) -> list[tuple[float, float]]:
    """End replicas now and then; memory of the one that is left alone meanwhile."""
    began = time.monotonic()
    samples: list[tuple[float, float]] = []
    due = plan.end_seconds
    while (now := time.monotonic() - began) < plan.seconds or (
        replicas.kills + replicas.stops < plan.ends_min
    ):
        samples.append((now, rss_mib(replicas.first.process.pid)))
        if now >= due:
            due += plan.end_seconds
            replicas.end_one()
            answered = sum(client.tally.answered for client in clients)
            say(
                f"{now:.0f} s: {answered} answers, {samples[-1][1]:.0f} MiB, "
                f"{replicas.kills} kills, {replicas.stops} stops"
            )
        time.sleep(min(SAMPLE_SECONDS, plan.seconds / 20))
    return samples
