"""The measurements of a run: sets of policies in turn, with both servers side by side."""

import contextlib
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loadtest.bench import gatekeeper, policies, report, start
from loadtest.bench.load import Generator, ask
from loadtest.bench.machine import describe
from loadtest.bench.replica import replica
from loadtest.bench.servers import Cores, Server, floor, waddle
from loadtest.bytecode import compile_modules
from loadtest.cluster.stages import Site, site
from loadtest.traces import BODIES, Trace, write
from webhook.certificates.pairs import self_signed

# The expected verdicts hold for every set; the real Gatekeeper is asked too, at each start.
VERDICTS = {"pod": "allowed", "pod_bad": "denied", "deployment": "allowed"}

# Requests before the first round of a process: Gatekeeper takes some seconds for them.
WARM_UP = {"p1": 2000, "p12": 300, "p100": 60, "p1000": 30}

MEMORY_BODY = "pod_small"
"""The body before memory is read. Gatekeeper decodes the object for each constraint: 10,000 larger
bodies with a thousand constraints would take it a quarter of an hour. It needs less memory for
small ones."""

START_SETS = ("p1", "p12", "p100")

TRACES: dict[str, tuple[Trace, ...]] = {
    "p12": ("rollout", "updates", "mix"),
    "p100": ("rollout", "updates", "mix"),
}
TRACE_REQUESTS = 400
TRACE_WARM_UP = 6000
"""A constraint has code of its own from its 5,000th evaluation on."""

JUDGED_CONNECTIONS = 8
"""The number of connections for goals: an API server sends several requests at a time."""

Point = tuple[str, int]
"""A body, and the number of connections."""

_POINTS: tuple[Point, ...] = (
    ("pod", 8),
    ("pod", 1),
    ("pod", 32),
    ("pod_bad", 8),
    ("deployment", 8),
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The measurements and their durations."""

    points: dict[str, tuple[Point, ...]]
    rounds: int
    seconds: float
    # Rounds and their seconds on a fixed schedule, at half of what Gatekeeper can do.
    schedule: tuple[int, float]
    # Requests before the first round, after which memory is read.
    requests: int
    # Rounds of a trace, of TRACE_REQUESTS each.
    traces: int


# Gatekeeper takes 14 minutes for 10,000 requests with 1,000 constraints; with the other sets it takes
# 8, on the other core meanwhile. Rounds take 6 minutes, schedules 3, starts 3.
FULL = Plan(
    {"p1": _POINTS, "p12": _POINTS, "p100": _POINTS[:4], "p1000": _POINTS[:1]},
    4,
    2.5,
    (3, 6),
    10_000,
    40,
)
QUICK = Plan(
    {"p1": _POINTS[:1], "p12": _POINTS[:4], "p100": _POINTS[:1], "p1000": _POINTS[:1]},
    3,
    1,
    (1, 4),
    300,
    10,
)


@dataclass(slots=True)
class Bench:
    """A run: where things are, and what was found so far."""

    plan: Plan
    folder: Path
    cores: Cores
    points: list[dict[str, Any]] = field(default_factory=list)
    schedule: list[dict[str, Any]] = field(default_factory=list)
    memory: dict[str, dict[str, float]] = field(default_factory=dict)
    started: dict[str, dict[str, float]] = field(default_factory=dict)
    floors: dict[str, float] = field(default_factory=dict)
    traces: list[dict[str, Any]] = field(default_factory=list)
    installed: dict[str, gatekeeper.Installation] = field(default_factory=dict)
    clusters: dict[str, Site] = field(default_factory=dict)
    """Our replicas', each with a set of policies."""

    @property
    def generator(self) -> Generator:
        """Clients, on their core."""
        return Generator(self.cores.client)

    @property
    def log(self) -> Path:
        """Returns the path of our servers' log."""
        return self.folder / "waddle.log"

    @property
    def certificates(self) -> Path:
        """The folder of the pair that all servers have."""
        return self.folder / "certificates"

    def ours(
        self, source: Path, *, keeps_results: bool = False
    ) -> contextlib.AbstractContextManager[Server]:
        """Our server with a set of policies, on the servers' core."""
        core = self.cores.server
        return waddle(
            source, self.certificates, core=core, log=self.log, keeps_results=keeps_results
        )

    def replica(self, name: str, core: int) -> contextlib.AbstractContextManager[Server]:
        """A replica as in a Pod, at the API server that has this set."""
        return replica(self.clusters[name].plane, self.certificates, core=core, log=self.log)

    def prepare(self, name: str, stack: contextlib.ExitStack, core: int) -> None:
        """A cluster for each with a set of policies; memory of both after the same requests."""
        here = self.folder / name
        here.mkdir()
        source = _source(name, here / "policies")
        prepared = gatekeeper.prepared(source, self.certificates, here, core=core)
        installed = self.installed[name] = stack.enter_context(prepared)
        installed.pin(self.cores.client)
        ours = here / "waddle"
        ours.mkdir()
        own = self.clusters[name] = stack.enter_context(site(ours, self.cores))
        own.enforce(*gatekeeper.read_policies(source))
        found: dict[str, float] = {"requests": self.plan.requests}
        answers = []
        for server_of in (self.replica(name, core), installed.gatekeeper(core)):
            with server_of as server:
                answers.append([ask(server, BODIES / f"{body}.json") for body in VERDICTS])
                found |= self._memory(server)
        for body, ours, theirs in zip(VERDICTS, *answers, strict=True):
            same(body, ours, theirs)
        self.memory[name] = found
        say(f"{name}: memory {found}")

    def prepare_all(self, stack: contextlib.ExitStack) -> None:
        """Prepare every set: the one that takes longest on one core, the others on the other.

        Nothing that is measured here depends on time.
        """
        *shorter, longest = self.plan.points
        clusters = contextlib.ExitStack()  # of the other thread; both end with the run
        stack.enter_context(clusters)
        with ThreadPoolExecutor(1) as pool:
            beside = pool.submit(self.prepare, longest, clusters, self.cores.client)
            for name in shorter:
                self.prepare(name, stack, self.cores.server)
            beside.result()
        self.memory = {name: self.memory[name] for name in self.plan.points}

    def run_set(self, name: str) -> None:
        """Measures the time-dependent figures of one set."""
        source = _source(name, self.folder / name / "policies")
        if name in START_SETS:
            self._start(name)
        with contextlib.ExitStack() as stack:
            peer = stack.enter_context(self.installed[name].gatekeeper(self.cores.server))
            server = stack.enter_context(self.ours(source))
            say(f"{name}: both serve")
            for one in (server, peer):
                warm(self.generator, one, WARM_UP[name])
            beside = [server, peer, *self._beside(name, stack)]
            points = [self._point(name, point, beside) for point in self.plan.points[name]]
            self.points += points
            scheduled = [one for one in beside if one.name != "waddle-p12"]
            self.schedule.append(self._schedule(name, scheduled, points))
        for trace in TRACES.get(name, ()):
            self.traces.append(self._trace(name, source, trace))

    def _trace(self, name: str, source: Path, trace: Trace) -> dict[str, Any]:
        """Measures requests that all differ, as shipped, beside the bare application."""
        rounds, core = self.plan.traces, self.cores.server
        count = TRACE_WARM_UP + (rounds + 1) * TRACE_REQUESTS
        bodies = write(trace, self.folder / f"{name}-{trace}.jsonl", count)
        with (
            self.ours(source, keeps_results=True) as server,
            floor(self.certificates, core=core, log=self.log) as bare,
        ):
            self.generator.count(
                server, bodies, connections=8, requests=TRACE_WARM_UP, expected="allowed"
            )
            taken = self.generator.compare(
                [server, bare],
                bodies,
                connections=JUDGED_CONNECTIONS,
                requests=TRACE_REQUESTS,
                rounds=rounds,
                expected="allowed",
                skip=TRACE_WARM_UP,
            )
        bodies.unlink()
        cpu = [[one[side]["own_cpu_us"] / 1000 for one in taken] for side in (0, 1)]
        ratios = [ours / least for ours, least in zip(*cpu, strict=True)]
        found = {
            "set": name,
            "trace": trace,
            "waddle": statistics.median(cpu[0]),
            "floor": statistics.median(cpu[1]),
            "ratio": statistics.median(ratios),
            "p99_ms": statistics.median(one[0]["p99_ms"] for one in taken),
        }
        say(
            f"{name} {trace}: {found['waddle']:.3f} ms, {found['ratio']:.2f} of the bare application"
        )
        return found

    def _start(self, name: str) -> None:
        """Measures each start until ready at the same API server, ours without compiled policies."""
        core = self.cores.server
        servers = {
            "waddle": lambda: self.replica(name, core),
            "gatekeeper": lambda: self.installed[name].gatekeeper(core),
        }
        self.started[name] = start.beside(servers)
        say(f"{name}: starts {self.started[name]}")

    def _beside(self, name: str, stack: contextlib.ExitStack) -> Iterator[Server]:
        """Yields the servers that a set is compared with besides Gatekeeper, in the same rounds."""
        if name == "p1":
            yield stack.enter_context(
                floor(self.certificates, core=self.cores.server, log=self.log)
            )
        if name == "p1000":
            twelve = stack.enter_context(self.ours(policies.POLICIES / "p12"))
            warm(self.generator, twelve, 1000)
            yield Server("waddle-p12", twelve.url, twelve.process, twelve.ready_seconds)

    def _memory(self, server: Server) -> dict[str, float]:
        """Memory before and after the requests, and then with processes that it started."""
        idle = server.rss_mib()
        warm(self.generator, server, self.plan.requests, MEMORY_BODY)
        return {
            f"{server.name}_idle": idle,
            server.name: server.rss_mib(),
            f"{server.name}_all": server.family_mib(),
        }

    def _point(self, name: str, point: Point, servers: list[Server]) -> dict[str, Any]:
        """Measures one body and number of connections, in alternated rounds."""
        body, connections = point
        rounds: dict[str, list[dict[str, Any]]] = {server.name: [] for server in servers}
        for number in range(self.plan.rounds):
            for server in servers if number % 2 == 0 else servers[::-1]:
                measured = self.generator.closed(
                    server,
                    BODIES / f"{body}.json",
                    connections=connections,
                    seconds=self.plan.seconds,
                    expected="" if server.name == "floor" else VERDICTS[body],
                )
                rounds[server.name].append(measured)
        medians = {server: report.median(measured) for server, measured in rounds.items()}
        found = {"set": name, "body": body, "connections": connections, **medians}
        say(_line(found))
        return {**found, "rounds": rounds}

    def _schedule(
        self, name: str, servers: list[Server], points: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """The latencies of all at the same offered load, which none can put off."""
        rate = points[0]["gatekeeper"]["requests_per_second"] / 2
        count, seconds = self.plan.schedule
        rounds: dict[str, list[dict[str, Any]]] = {server.name: [] for server in servers}
        for number in range(count):
            for server in servers if number % 2 == 0 else servers[::-1]:
                measured = self.generator.open(
                    server,
                    BODIES / "pod.json",
                    connections=JUDGED_CONNECTIONS,
                    seconds=seconds,
                    rate=rate,
                    expected="allowed",
                )
                rounds[server.name].append(measured)
        medians = {server: report.median(measured) for server, measured in rounds.items()}
        say(f"{name}: {rate:.0f} requests/s offered")
        return {"set": name, "body": "pod", "rate": rate, **medians, "rounds": rounds}


def measure(plan: Plan) -> dict[str, Any]:
    """All figures of a run."""
    began = datetime.now(UTC)
    compile_modules()
    with tempfile.TemporaryDirectory(prefix="waddle-bench-") as scratch:
        bench = Bench(plan, Path(scratch), Cores.of_this_machine())
        make_certificates(bench.certificates)
        with contextlib.ExitStack() as stack:
            bench.prepare_all(stack)
            for name in plan.points:
                bench.run_set(name)
        bench.floors = start.floors(bench.cores.server)
    return {
        "machine": describe(),
        "began": began.isoformat(timespec="seconds"),
        "minutes": round((datetime.now(UTC) - began).total_seconds() / 60, 1),
        "plan": asdict(plan),
        "points": bench.points,
        "schedule": bench.schedule,
        "traces": bench.traces,
        "memory": bench.memory,
        "floors": start.import_floors() | bench.floors,
        "start": bench.started,
    }


def _source(name: str, folder: Path) -> Path:
    """A set as a folder: those of the repository are there, the thousand are made."""
    if name == "p1000":
        return policies.write(folder, *policies.with_idle(1000))
    return policies.POLICIES / name


def warm(generator: Generator, server: Server, requests: int, body: str = "pod") -> None:
    """Sends so many Pods that are allowed."""
    generator.count(
        server, BODIES / f"{body}.json", connections=8, requests=requests, expected="allowed"
    )


def same_answer(servers: list[Server], body: Path) -> None:
    """Figures of servers that decide differently would compare nothing."""
    same(body.name, *(ask(server, body) for server in servers))


def same(name: str, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Raises RuntimeError if the responses to a review differ."""
    for part in ("uid", "allowed", "status"):
        if _shown(ours, part) != _shown(theirs, part):
            raise RuntimeError(f"{name}: {ours} is not Gatekeeper's {theirs}")


def _shown(answer: dict[str, Any], part: str) -> Any:
    """A field as far as users see it: of the status, its message."""
    return answer.get(part, {}).get("message", "") if part == "status" else answer[part]


def make_certificates(folder: Path) -> Path:
    """A pair for this run."""
    pair = self_signed(["localhost", "127.0.0.1"], datetime.now(UTC))
    folder.mkdir()
    (folder / "tls.crt").write_bytes(pair.certificate)
    (folder / "tls.key").write_bytes(pair.key)
    return folder


def _line(point: dict[str, Any]) -> str:
    cpu = {
        name: one["server_cpu_ms_per_request"]
        for name, one in point.items()
        if isinstance(one, dict)
    }
    cpu_text = ", ".join(f"{name} {value:.3f} ms" for name, value in cpu.items())
    ratio = cpu["waddle"] / cpu["gatekeeper"]
    return (
        f"{point['set']} {point['body']} {point['connections']}: CPU {cpu_text}, {ratio:.3f} times"
    )


def say(text: str) -> None:
    """A line for whoever waits."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)
