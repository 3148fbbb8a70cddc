"""External data beside Gatekeeper: ``python -m loadtest.external_data [--quick] [--save]``.

A provider that takes 20 ms, and 12 templates of which four ask it for three keys each, in the same
rounds to both: what asking adds to the median of an answer, and its CPU. Then, of each server
alone, the latencies of other requests while some ask, beside those while as many do not; and while
some ask a provider that never answers. Exit code 1 where a goal is missed; ``--save`` writes
``results/external_data.md``, and a JSON beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import json
import os
import socket
import ssl
import statistics
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import yaml

from loadtest.bench import gatekeeper
from loadtest.bench.gatekeeper import Installation
from loadtest.bench.load import Generator, ask, go_first
from loadtest.bench.machine import describe
from loadtest.bench.measurement import make_certificates, same_answer, say
from loadtest.bench.policies import POLICIES
from loadtest.bench.servers import Cores, Server, waddle
from loadtest.traces import BODIES
from tests import policies
from tests.cluster import Cluster
from tests.programs import ROOT, build
from tests.provider_process import make_authority

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.policies import Json
    from tests.provider_process import Authority

RESULTS: Final = ROOT / "loadtest" / "results" / "external_data.md"

PROVIDER_MS: Final = 20
TEMPLATES, ASKING, KEYS = 12, 4, 3
CONNECTIONS: Final = 8
BODIES_COUNT: Final = 64
"""Each with keys of its own, so that no two requests under way ask the same."""

ADDED_MAX: Final = 1.0
"""Of the median, in round trips to the provider of as many requests at once as a Pod's templates ask."""
CPU_MAX: Final = 0.1
"""Of a request, beside Gatekeeper's."""
OTHERS_MAX: Final = 1.2
"""The 99th percentile of other requests, beside that while nobody asks."""

GOOD, HANGING = "images", "silent"
ASKS: Final = "bench/asks"
"""The label by which a Pod's templates ask: `yes`, or `silent` for the provider that never answers."""


WARM_UP: Final = 4 * BODIES_COUNT
PACE: Final = 8.0
"""Requests a second, one at a time: Gatekeeper takes 90 ms for one that asks. All begin after the
same silence: asked without one, those that do not ask would find the processor's caches warm, and the
others cold."""
PACED_SECONDS: Final = 2.0
"""Of a round."""
TRIPS: Final = int(PACE * PACED_SECONDS)
"""Of each number of requests at once in a round, as many as requests to a server."""


BEGUN_SECONDS_MAX, BEGUN_POLL_SECONDS = 30, 0.1
"""The patience with a provider's first answer, and the interval of looks."""


class Plan(NamedTuple):
    """The numbers of a measurement."""

    rounds: int
    """In which each server is asked in turn."""
    paced_rounds: int
    """Of those with one request at a time."""
    windows: int
    """In which others' latencies are taken of Waddle, with and without."""
    peer_windows: int
    """Of Gatekeeper, whose ratio is no goal."""
    seconds: float
    """Of a window."""


FULL, QUICK = Plan(20, 10, 12, 2, 8), Plan(3, 3, 1, 1, 3)

LEAD_SECONDS: Final = 1.0
"""The lead of the asking clients before the measurement: all have their connections by then."""


# --- policies and bodies -----------------------------------------------------------------------------


def asking_template(number: int) -> Json:
    """A template that asks for three keys of each Pod that says so, and denies what is not known."""
    kind = f"BenchAsks{number}"
    rego = f"""
    package benchasks{number}
    violation[{{"msg": msg}}] {{
      input.review.object.metadata.labels["{ASKS}"] == "yes"
      answer := external_data({{"provider": "{GOOD}", "keys": keys}})
      said := {{pair[0] | pair := answer.responses[_]}}
      count(said) < {KEYS}
      msg := sprintf("the provider says %v", [answer])
    }}
    keys := [key | image := input.review.object.spec.containers[0].image
      n := [{", ".join(map(str, range(KEYS)))}][_]
      key := sprintf("%v-{number}-%v", [image, n])]
    """
    return policies.template(kind, rego)


SILENT_TEMPLATE: Final = policies.template(
    "BenchHangs",
    f"""
    package benchhangs
    violation[{{"msg": msg}}] {{
      input.review.object.metadata.labels["{ASKS}"] == "silent"
      key := sprintf("hang/%v", [input.review.object.spec.containers[0].image])
      answer := external_data({{"provider": "{HANGING}", "keys": [key]}})
      msg := sprintf("the provider says %v", [answer.system_error])
    }}
    """,
)


def policy_documents() -> list[Json]:
    """Eight templates of the library, four that ask, and one that asks whoever never answers."""
    texts = [
        (POLICIES / "p12" / name).read_text() for name in ("templates.yaml", "constraints.yaml")
    ]
    library = [document for text in texts for document in yaml.safe_load_all(text) if document]
    kept = {
        document["spec"]["crd"]["spec"]["names"]["kind"]
        for document in library
        if document["kind"] == "ConstraintTemplate"
    }
    kept = set(sorted(kept)[: TEMPLATES - ASKING])
    own = [*(asking_template(number) for number in range(ASKING)), SILENT_TEMPLATE]
    kinds = [one["spec"]["crd"]["spec"]["names"]["kind"] for one in own]
    return [
        *(
            document
            for document in library
            if document["kind"] in kept
            or document.get("spec", {}).get("crd", {}).get("spec", {}).get("names", {}).get("kind")
            in kept
        ),
        *own,
        *(policies.constraint(kind, f"{kind.lower()}-0", kinds=["Pod"]) for kind in kinds),
    ]


def make_bodies(folder: Path, asks: str) -> list[Path]:
    """Pods that differ in an image, with the label by which they ask."""
    folder.mkdir()
    made = []
    for number in range(BODIES_COUNT):
        body = json.loads((BODIES / "pod.json").read_bytes())
        request = body["request"]
        request["uid"] = f"705ab4f5-6393-11e8-b7cc-{number:012d}"
        request["userInfo"]["username"] = f"user-{number}"
        request["object"]["metadata"]["labels"][ASKS] = asks
        image = request["object"]["spec"]["containers"][0]["image"]
        request["object"]["spec"]["containers"][0]["image"] = f"{image}-{number}"
        made.append(folder / f"{asks}-{number}.json")
        made[-1].write_text(json.dumps(body, separators=(",", ":")))
    return made


# --- the run ------------------------------------------------------------------------------------------


class Taken(NamedTuple):
    """Of a request: CPU of the server, and the median of its latency."""

    cpu_ms: float
    p50_ms: float


class Run:
    """The folder, plan, cores and generator of a run."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder = folder
        self.plan = plan
        self.cores = Cores.of_this_machine()
        self.generator = Generator(self.cores.client, first=True)
        self.certificates = make_certificates(folder / "certificates")
        self.bodies = {asks: make_bodies(folder / asks, asks) for asks in ("yes", "no", "silent")}
        self.documents = policy_documents()

    @contextlib.contextmanager
    def providers(self) -> Iterator[list[Json]]:
        """Yields both providers, on the clients' core, as Provider objects."""
        authority = make_authority()
        certificate = self.folder / "provider.pem"
        certificate.write_bytes(authority.chain)
        command: list[str | Path] = [
            *("taskset", "--cpu-list", str(self.cores.client), build("provider")),
            *(f"-certificate={certificate}", f"-client-ca={self.certificates / 'tls.crt'}"),
        ]
        with contextlib.ExitStack() as stack:
            found = []
            for name, delay, timeout in ((GOOD, PROVIDER_MS, 5), (HANGING, 0, 3)):
                process = subprocess.Popen(
                    [*command, f"-delay={delay}ms"], stdout=subprocess.PIPE, text=True
                )
                stack.callback(ended, process)
                assert process.stdout is not None
                # One that has to wait for its core is late for reasons of its own.
                go_first(process.pid)
                found.append(provider(name, int(process.stdout.readline()), authority, timeout))
            self.good = found[0]
            self.trips = self.round_trips()
            say(f"to the provider: {self.trips}")
            yield found

    def round_trips(self) -> Trips:
        """The waits of a bare client on the servers' core."""
        return round_trips(self.good, self.certificates, self.cores.server)

    @contextlib.contextmanager
    def ours(self, providers: Sequence[Json], name: str, *flags: str) -> Iterator[Server]:
        """Our server with all policies."""
        folder = self.folder / name
        folder.mkdir()
        documents = [*self.documents, *providers]
        (folder / "all.yaml").write_text("\n---\n".join(map(json.dumps, documents)))
        log = self.folder / f"{name}.log"
        with waddle(
            folder, self.certificates, core=self.cores.server, log=log, flags=flags
        ) as server:
            go_first(server.process.pid)
            yield server

    @contextlib.contextmanager
    def theirs(self, installation: Installation, *flags: str) -> Iterator[Server]:
        """Gatekeeper with all policies."""
        with installation.gatekeeper(flags=flags) as server:
            go_first(server.process.pid)
            yield server

    @contextlib.contextmanager
    def installed(self, providers: Sequence[Json]) -> Iterator[Installation]:
        """A cluster that holds all policies, enforced once by a Gatekeeper."""
        folder = self.folder / "gatekeeper"
        folder.mkdir()
        (folder / "all.yaml").write_text("\n---\n".join(map(json.dumps, self.documents)))
        cluster = Cluster.start(build("testcluster"), self.folder / "cluster")
        try:
            gatekeeper.install(cluster.api)
            for provider in providers:
                path = "/apis/externaldata.gatekeeper.sh/v1beta1/providers"
                cluster.api.apply(f"{path}/{provider['metadata']['name']}", provider)
            log = self.folder / "gatekeeper.log"
            found = Installation(cluster, self.certificates, log, self.cores.server)
            with found.gatekeeper():
                gatekeeper.apply_policies(cluster.api, folder)
            found.pin(self.cores.client)
            yield found
        finally:
            cluster.stop()

    def begun(self, servers: Sequence[Server]) -> None:
        """Wait until both allow a Pod that asks: Gatekeeper is ready before it knows its providers."""
        body = self.bodies["yes"][0]
        end = time.monotonic() + BEGUN_SECONDS_MAX
        for server in servers:
            while not ask(server, body)["allowed"] and time.monotonic() < end:
                time.sleep(BEGUN_POLL_SECONDS)
        same_answer([*servers], body)

    def compared(self, servers: Sequence[Server], asks: str) -> list[Taken]:
        """Returns each server's cost of a request: the median latency of one alone, and CPU.

        Where they ask, the bare client asks in turn with them: what else is installed on the machine
        slows it down as it does the servers.
        """

        def taken(requests: int, rounds: int) -> list[list[dict[str, float]]]:
            return self.generator.compare(
                servers,
                self.bodies[asks],
                connections=CONNECTIONS,
                requests=requests,
                rounds=rounds,
                expected="allowed",
                apart=False,
            )

        taken(WARM_UP, 1)
        alone, trips = [], []
        for _ in range(self.plan.paced_rounds):
            alone.append([self.paced(server, asks) for server in servers])
            if asks == "yes":
                trips.append(self.round_trips())
        if trips:
            self.trips = Trips(*map(statistics.median, zip(*trips, strict=True)))
            say(f"to the provider: {self.trips}, the median of {trips}")
        beside = taken(BODIES_COUNT, self.plan.rounds)
        return [
            Taken(
                statistics.median(turns[place]["own_cpu_us"] / 1000 for turns in beside),
                statistics.median(turns[place] for turns in alone),
            )
            for place in range(len(servers))
        ]

    def paced(self, server: Server, asks: str) -> float:
        """The median of some requests, one at a time, in ms; raises RuntimeError at a wrong answer."""
        report = self.generator.mixed(
            server,
            dict.fromkeys(self.bodies[asks], "allowed"),
            connections=1,
            seconds=PACED_SECONDS,
            rate=PACE,
            samples=self.folder / "paced.samples",
        )
        if report["fault"]:
            raise RuntimeError(f"{server.name}: {report['fault']}")
        return float(report["p50_ms"])

    def others(self, server: Server, asks: str, rate: float, beside: float) -> float:
        """The 99th percentile of requests that do not ask, in ms.

        ``beside`` of them a second, others ask or do not. A wrong or missing answer to anybody is
        told, and ends the run where it is ours.
        """
        verdict = "denied" if asks == "silent" else "allowed"
        seconds = self.plan.seconds
        with ThreadPoolExecutor(1) as pool:
            load = pool.submit(
                self.generator.mixed,
                server,
                dict.fromkeys(self.bodies[asks], verdict),
                connections=ASKING_CONNECTIONS,
                seconds=LEAD_SECONDS + seconds,
                rate=beside,
                samples=self.folder / "asking.samples",
            )
            time.sleep(LEAD_SECONDS)
            measured = self.generator.mixed(
                server,
                dict.fromkeys(self.bodies["no"], "allowed"),
                connections=CONNECTIONS,
                seconds=seconds,
                rate=rate,
                samples=self.folder / "others.samples",
            )
            for report in (measured, load.result()):
                if report["fault"]:
                    say(f"{server.name}: {report['fault']}")
                    if server.name == "waddle":
                        raise RuntimeError(f"{server.name}: {report['fault']}")
        return float(measured["p99_ms"])


class Trips(NamedTuple):
    """Medians of round trips to the provider, in ms: of one request, and of as many as a Pod asks.

    Of the latter from the first that is sent to the last that is answered.
    """

    one: float
    together: float


def round_trips(provider: Json, certificates: Path, core: int) -> Trips:
    """Returns the waits of a bare client on a core, over connections that stay.

    The client waits for all answers in an event loop, as a server must: one that blocks in a read
    can wait for nobody else. Each request begins after the same silence as a paced request to a
    server. A provider and a client that never rest answer from warm caches, and no server's
    requests find these.
    """
    spec = provider["spec"]
    context = ssl.create_default_context(cadata=base64.b64decode(spec["caBundle"]).decode())
    context.load_cert_chain(certificates / "tls.crt", certificates / "tls.key")
    address, _, path = spec["url"].removeprefix("https://").partition("/")
    host, _, port = address.partition(":")
    head = f"POST /{path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n"
    with contextlib.ExitStack() as stack:
        stack.enter_context(on_core(core))
        connections = []
        for _ in range(ASKING):
            plain = socket.create_connection((host, int(port)), 30)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connections.append(
                stack.enter_context(context.wrap_socket(plain, server_hostname=host))
            )
        return asyncio.run(_trips(connections, head))


async def _trips(connections: Sequence[ssl.SSLSocket], head: str) -> Trips:
    """Returns the medians over some connections."""
    client = BareClient(connections)
    taken: dict[int, list[float]] = {1: [], ASKING: []}
    for number in range(TRIPS):
        for count, trips in taken.items():
            requests = []
            for place in range(count):
                keys = [f"trip-{number}-{place}-{key}" for key in range(KEYS)]
                body = json.dumps({"request": {"keys": keys}})
                requests.append(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
            await asyncio.sleep(1 / PACE)
            began = time.perf_counter()
            await client.send(requests)
            trips.append((time.perf_counter() - began) * 1000)
    return Trips(*(statistics.median(trips) for trips in taken.values()))


class BareClient:
    """Sends requests over open connections, one over each, and reads nothing of the answers."""

    def __init__(self, connections: Sequence[ssl.SSLSocket]) -> None:
        """The connections are read by the running loop until they are closed."""
        self._connections = connections
        self._missing = 0
        self._loop = asyncio.get_running_loop()
        self._answered: asyncio.Future[None] = self._loop.create_future()
        for one in connections:
            one.setblocking(False)
            self._loop.add_reader(one, self._readable, one)

    async def send(self, requests: Sequence[bytes]) -> None:
        """Sends all requests at once, and waits for all answers."""
        self._answered, self._missing = self._loop.create_future(), len(requests)
        for connection, request in zip(self._connections, requests, strict=False):
            connection.sendall(request)
        await self._answered

    def _readable(self, connection: ssl.SSLSocket) -> None:
        try:
            answer = connection.recv(65536)
        except ssl.SSLWantReadError:  # a message of TLS itself
            return
        assert answer.startswith(b"HTTP/1.1 200 OK")
        self._missing -= 1
        if not self._missing:
            self._answered.set_result(None)


@contextlib.contextmanager
def on_core(core: int) -> Iterator[None]:
    """Run this process on one core, before all else on it where that is allowed."""
    cores, policy = os.sched_getaffinity(0), os.sched_getscheduler(0)
    priority = os.sched_getparam(0)
    os.sched_setaffinity(0, {core})
    try:
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        yield
    finally:
        os.sched_setscheduler(0, policy, priority)
        os.sched_setaffinity(0, cores)


def provider(name: str, port: int, authority: Authority, timeout: int) -> Json:
    """A Provider object that is asked on a port of this machine."""
    return {
        "apiVersion": "externaldata.gatekeeper.sh/v1beta1",
        "kind": "Provider",
        "metadata": {"name": name},
        "spec": {
            "url": f"https://127.0.0.1:{port}/validate",
            "timeout": timeout,
            "caBundle": base64.b64encode(authority.certificate).decode(),
        },
    }


def ended(process: subprocess.Popen[str]) -> None:
    """End a process."""
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


class Row(NamedTuple):
    """A measurement and its goal."""

    title: str
    ours: str
    theirs: str
    ratio: float
    goal: float | None = None
    """At most; None for what is only shown."""

    @property
    def holds(self) -> bool:
        """Whether it is within its goal."""
        return self.goal is None or self.ratio <= self.goal


NO_CACHE: Final = "--external-data-provider-response-cache-ttl=0"
NO_ERRORS: Final = "--external-data-error-cache-ttl=0"

OTHERS_SHARE, ASKING_SHARE = 0.2, 0.1
"""Of what a server could do alone: the load of those who do not ask, and of those who may."""
SILENT_RATE_MAX: Final = 15.0
"""A second: each takes the provider's 3 seconds of one of 64 connections."""
ASKING_CONNECTIONS: Final = 64


PARTS: Final = ("uncached", "others", "cached")
"""The parts that can be measured alone."""


def measure(run: Run, parts: Sequence[str]) -> list[Row]:
    """The rows of some parts."""
    rows: list[Row] = []
    with run.providers() as providers, run.installed(providers) as installation:
        say(f"a round trip to the provider: {run.trips.one:.2f} ms")
        if {"uncached", "others"} & {*parts}:
            with (
                run.theirs(installation, NO_CACHE) as peer,
                run.ours(providers, "uncached", NO_CACHE, NO_ERRORS) as server,
            ):
                run.begun([server, peer])
                still = run.compared([server, peer], "no")
                asking = run.compared([server, peer], "yes")
                say(f"no cache: without asking {still}, asking {asking}")
                rows += uncached(run, still, asking)
                if "others" in parts:
                    rows += delays(run, [server, peer], still, asking)
        if "cached" in parts:
            with run.theirs(installation) as peer, run.ours(providers, "cached") as server:
                run.begun([server, peer])
                asking = run.compared([server, peer], "yes")
                say(f"cached: {asking}")
                row = cpu_row("CPU of a request that asks, keys in the cache", asking)
                rows.append(row)
    return rows


def uncached(run: Run, still: Sequence[Taken], asking: Sequence[Taken]) -> Iterator[Row]:
    """Each key is asked for anew."""
    added = [one.p50_ms - before.p50_ms for one, before in zip(asking, still, strict=True)]
    trips = (
        (run.trips.one, "a bare client's round trips of one request", None),
        (run.trips.together, f"a bare client's round trips of {ASKING} at once", ADDED_MAX),
        (added[1] / ASKING, "Gatekeeper's round trips, which it makes one after another", None),
    )
    for trip, of, goal in trips:
        yield Row(
            f"median, added by asking, no cache, in {of}, {trip:.1f} ms",
            f"{added[0]:.1f} ms",
            f"{added[1]:.1f} ms",
            added[0] / trip,
            goal,
        )
    yield cpu_row("CPU of a request that asks, no cache", asking)
    yield cpu_row("CPU of a request that does not ask", still)


def cpu_row(title: str, taken: Sequence[Taken]) -> Row:
    """Ours beside Gatekeeper's."""
    ours, theirs = (one.cpu_ms for one in taken)
    return Row(title, f"{ours:.3f} ms", f"{theirs:.3f} ms", ours / theirs, CPU_MAX)


def delays(
    run: Run, servers: Sequence[Server], still: Sequence[Taken], asking: Sequence[Taken]
) -> Iterator[Row]:
    """Yields the delays of others by requests that ask providers, for each server in turn."""
    for asks, title in (("yes", "while some ask"), ("silent", "while some ask who never answers")):
        shown, ratios = [], []
        for server, quiet, busy in zip(servers, still, asking, strict=True):
            rate = OTHERS_SHARE * 1000 / quiet.cpu_ms
            beside = ASKING_SHARE * 1000 / busy.cpu_ms
            if asks == "silent":
                beside = min(beside, SILENT_RATE_MAX)
            windows: dict[str, list[float]] = {"no": [], asks: []}
            count = run.plan.windows if server.name == "waddle" else run.plan.peer_windows
            for number in range(count):
                for mode in sorted(windows, reverse=number % 2 == 1):
                    windows[mode].append(run.others(server, mode, rate, beside))
            before, after = (statistics.median(windows[mode]) for mode in ("no", asks))
            shown.append(f"{before:.2f} → {after:.2f} ms")
            ratios.append(after / before)
            say(f"{server.name}, {title}: {rate:.0f} and {beside:.0f} a second: {windows}")
        yield Row(
            f"99th percentile of the others, {title} (ratio: with and without; "
            f"Gatekeeper's is {ratios[1]:.2f})",
            shown[0],
            shown[1],
            ratios[0],
            OTHERS_MAX,
        )


def page(rows: Sequence[Row]) -> str:
    """The result for people."""
    machine = "".join(f"| {name} | {value} |\n" for name, value in describe().items())
    table = "\n".join(
        f"| {row.title} | {row.ours} | {row.theirs} | {row.ratio:.3f} "
        + (
            "| | |"
            if row.goal is None
            else f"| {row.goal:g} | {'holds' if row.holds else 'missed'} |"
        )
        for row in rows
    )
    return f"""# External data

Written by `make bench-external-data`.

| machine | |
|---|---|
{machine}
One provider, in Go, over mutual TLS 1.3, that takes {PROVIDER_MS} ms; a bare client of it is on the servers' core; {TEMPLATES} templates, of which {ASKING} ask for {KEYS} keys each. Both servers on one core with one certificate, {BODIES_COUNT} Pods with keys of their own in turn. Rounds ask each server in turn, and the bare client with those that ask: one request at a time for the median, {PACE:g} a second, so that all begin after the same silence; {CONNECTIONS} for CPU. Waddle keeps no results of earlier reviews (`--memo-bytes=0`). Servers, providers and clients go before all else on their cores where that is allowed. The others' latencies are taken of each server alone, on a fixed schedule at {OTHERS_SHARE:.0%} of what it could do; as many requests beside them, at {ASKING_SHARE:.0%}, ask or do not, and begin {LEAD_SECONDS:g} s before.

| what | Waddle | Gatekeeper | ratio | goal, at most | |
|---|---|---|---|---|---|
{table}
"""


def main() -> int:
    """Measure, print, and with ``--save`` keep; 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", action="store_true", help="write results/external_data.md")
    parser.add_argument(
        "--quick", action="store_true", help="few rounds, a minute beside the start of a cluster"
    )
    parser.add_argument("--part", choices=PARTS, action="append", help="one alone; may be repeated")
    options = parser.parse_args()
    if options.save and options.part:
        parser.error("--save is for all parts together")
    with tempfile.TemporaryDirectory(prefix="waddle-external-data-") as scratch:
        run = Run(Path(scratch), QUICK if options.quick else FULL)
        rows = measure(run, options.part or PARTS)
    text = page(rows)
    print(text)
    if options.save:
        RESULTS.write_text(text)
        documents = [row._asdict() for row in rows]
        RESULTS.with_suffix(".json").write_text(
            json.dumps(
                {"machine": describe(), "trips_ms": run.trips._asdict(), "rows": documents},
                indent=1,
            )
        )
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
