"""Windows of load with changes and without, each program in turn on one cluster."""

import copy
import functools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadtest.bench import policies
from loadtest.bench.load import Generator, ask
from loadtest.bench.measurement import warm
from loadtest.bench.servers import Cores
from loadtest.bench.servers import Server as Answering
from loadtest.changes.churn import Churn
from loadtest.changes.policies import LABEL, Changing
from loadtest.cluster.servers import Server
from loadtest.cluster.stages import Site, site
from loadtest.traces import BODIES
from tests.patience import until

PROGRAMS = ("waddle", "gatekeeper")
STATES = ("quiet", "churn")

CHANGES_PER_MINUTE = 200
CONNECTIONS = 32
TIMEOUT_SECONDS = 30
"""Of the webhook that reviews the changes: what the API server allows at most."""

ENFORCED_SECONDS_MAX = 60.0


@dataclass(frozen=True, slots=True)
class Plan:
    """The measurements and their durations."""

    rounds: int = 3
    seconds: float = 60
    saturation_seconds: float = 10
    warm_up: int = 300
    load: float = 0.5
    """Of what Gatekeeper can answer."""


QUICK = Plan(rounds=1, seconds=15, saturation_seconds=3, warm_up=100)


@dataclass(frozen=True, slots=True)
class Stand:
    """The equipment of the measured windows."""

    plan: Plan
    folder: Path
    site: Site
    changing: Changing
    generator: Generator
    say: Callable[[str], None]

    @property
    def bodies(self) -> dict[Path, str]:
        """Files of the requests, and their verdicts."""
        return {self.folder / "good.json": "allowed", self.folder / "bad.json": "denied"}


def measure(plan: Plan, folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """All windows of both programs."""
    cores = Cores.of_this_machine()
    templates, constraints = policies.read("p12")
    changing = Changing.begin()
    with site(folder, cores) as made:
        made.enforce(
            [*templates, *changing.templates()],
            [*constraints, *(one.document() for one in changing.constraints)],
        )
        generator = Generator(cores.client, first=True)
        stand = Stand(plan, folder, made, changing, generator, say)
        _write_bodies(stand)
        rate = _saturation(stand) * plan.load
        say(f"{rate:.1f} requests a second")
        rounds: dict[str, list[dict[str, Any]]] = {program: [] for program in PROGRAMS}
        for number in range(plan.rounds):
            for program in PROGRAMS if number % 2 == 0 else PROGRAMS[::-1]:
                order = STATES if number % 2 == 0 else STATES[::-1]
                rounds[program].append(_round(stand, program, order, rate))
    return {"rate": rate, "rounds": rounds}


def _write_bodies(stand: Stand) -> None:
    """A good and a bad one, which one policy denies that does not change; each with its own UID."""
    review = json.loads((BODIES / "pod.json").read_text())
    for path, verdict in stand.bodies.items():
        body = copy.deepcopy(review)
        body["request"]["uid"] = f"{path.stem}-{body['request']['uid']}"
        if verdict == "denied":
            del body["request"]["object"]["metadata"]["labels"]["owner"]
        path.write_text(json.dumps(body))


def _saturation(stand: Stand) -> float:
    """Returns the throughput of the slower of both, in quiet."""
    with stand.site.start("gatekeeper") as server:
        server.wait_ready()
        _await_enforced(stand, server)
        answering = server.answering
        warm(stand.generator, answering, stand.plan.warm_up)
        closed = Generator(stand.generator.core).closed(
            answering,
            BODIES / "pod.json",
            connections=8,
            seconds=stand.plan.saturation_seconds,
            expected="allowed",
        )
    return float(closed["requests_per_second"])


def _round(stand: Stand, program: str, order: tuple[str, ...], rate: float) -> dict[str, Any]:
    """A window of each state, with a process of its own."""
    found: dict[str, Any] = {}
    with stand.site.start(program) as server:
        server.wait_ready()
        _await_enforced(stand, server)
        stand.site.plane.register(server.port, timeout_seconds=TIMEOUT_SECONDS)
        try:
            warm(stand.generator, server.answering, stand.plan.warm_up)
            for state in order:
                found[state] = _window(stand, server.answering, state, rate)
                found[state]["enforced_seconds"] = _await_enforced(stand, server)
                stand.say(f"{program} {state}: {_figures(found[state])}")
        finally:
            stand.site.plane.unregister()
    return found


def _window(stand: Stand, server: Answering, state: str, rate: float) -> dict[str, Any]:
    """The load's own figures, and the changes that were made meanwhile."""
    samples = stand.folder / f"{server.name}-{state}.samples"
    per_minute = CHANGES_PER_MINUTE if state == "churn" else 0
    with Churn(stand.site.plane.api, per_minute, stand.changing.changes()) as churn:
        found = stand.generator.mixed(
            server,
            stand.bodies,
            connections=CONNECTIONS,
            seconds=stand.plan.seconds,
            rate=rate,
            samples=samples,
        )
    lines = [[int(field) for field in line.split()] for line in samples.read_text().splitlines()]
    found["latencies_us"] = [latency for _, _, latency in lines]
    found["late_us"] = [late for _, late, _ in lines]
    found["changes"] = dict(churn.made)
    found["change_seconds"] = churn.seconds
    return found


def _await_enforced(stand: Stand, server: Server) -> float:
    """Seconds until each policy that changes is enforced as it was applied last.

    Raises AssertionError when that never comes.
    """
    began = time.monotonic()
    answering = server.answering
    for word, message in stand.changing.words():
        until(
            functools.partial(_enforces, stand, answering, word, message),
            f"{server.name} says {message or 'nothing'!r} of {word}",
            ENFORCED_SECONDS_MAX,
        )
    return time.monotonic() - began


def _enforces(stand: Stand, server: Answering, word: str, message: str) -> bool:
    """Whether a Pod that names the word is denied by just this message, or allowed without one."""
    body = json.loads((BODIES / "pod.json").read_text())
    body["request"]["object"]["metadata"]["labels"][LABEL] = word
    path = stand.folder / "probe.json"
    path.write_text(json.dumps(body))
    answer = ask(server, path)
    answer_text = answer.get("status", {}).get("message", "")
    return answer["allowed"] if not message else not answer["allowed"] and message in answer_text


def _figures(found: dict[str, Any]) -> str:
    changes = sum(found["changes"].values())
    return (
        f"p50 {found['p50_ms']:.2f} p99 {found['p99_ms']:.2f} max {found['max_ms']:.1f} ms, "
        f"{found['server_cores']:.3f} cores, {changes} changes, "
        f"{found['failed']} failed, {found['wrong']} wrong"
    )
