"""`python -m loadtest.decisions [--quick]`: measure, print the page and write it to results/."""

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from loadtest.bench.load import Generator
from loadtest.bench.machine import describe
from loadtest.bench.servers import Cores, Server, running
from loadtest.telemetry.review import interval
from tests.decisions.process import Sidecar
from tests.ports import free_port, free_ports
from tests.programs import ProgramUnavailableError
from webhook.certificates.pairs import self_signed

LOADTEST = Path(__file__).resolve().parent.parent
BODIES = {"pod": "allowed", "pod_bad": "denied"}
CONFIGURATIONS = ("off", "off again", "on", "hung")
CONNECTIONS = 8
REQUESTS = 400
"""To one server before it is the next one's turn: some 0.2 s, much longer than a decision stays in
the exporter, and short beside what the machine's speed takes to change."""
WARM_UP = 6000
"""A constraint has code of its own from its 5,000th evaluation on."""

SETTLING = 5
"""Rounds that are not counted: the last servers to be warmed up make that code meanwhile."""

SETS = 5
"""Times that all servers are started anew: where a process' memory lies makes two of the same code
differ by some hundredths for as long as they run."""

HUNG_RECORDS = 1000
"""Half of what is asked while servers settle."""

GOAL = 1.03
"""Of the CPU of a request that is not recorded."""


class Counter:
    """An HTTP sink that reads, answers 200, or 503 while it is out, and does nothing else."""

    def __init__(self) -> None:
        self.out = False
        counter = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(503 if counter.out else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def sinks(counter: Counter) -> list[dict[str, Any]]:
    """The one HTTP sink."""
    batch = {"maxRecords": 2000, "maxBytes": 2 * 1024 * 1024, "backoffMaxSeconds": 1}
    return [{"name": "http", "type": "http", "settings": {"url": counter.url}, "batch": batch}]


def main() -> int:
    """Run the benchmark; 1 when it cannot be run here."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.decisions", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--output", type=Path, default=LOADTEST / "results", help="folder")
    options = parser.parse_args()
    name = "decisions-quick" if options.quick else "decisions"
    rounds, count = (20, 30_000) if options.quick else (150, 100_000)
    with tempfile.TemporaryDirectory(prefix="waddle-decisions-") as scratch:
        try:
            result = {
                "machine": describe(),
                "admission": admission(Path(scratch), rounds),
                "stream": [stream(Path(scratch), scheme, count) for scheme in ("unix", "grpc")],
                "outage": outage(Path(scratch), count // 2),
            }
        except ProgramUnavailableError as unavailable:
            print(f"the generator cannot be built here: {unavailable}", file=sys.stderr)
            return 1
    page = markdown(result, rounds)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    (options.output / f"{name}.md").write_text(page)
    print(page)
    return 0


Turns = list[list[dict[str, float]]]
"""Of each round what each configuration took, in their order."""


def admission(folder: Path, rounds: int) -> list[dict[str, Any]]:
    """Four servers that differ only in their decision log, in turn, at 12 policies."""
    certificates = folder / "certificates"
    certificates.mkdir()
    pair = self_signed(["localhost"], datetime.now(UTC))
    (certificates / "tls.crt").write_bytes(pair.certificate)
    (certificates / "tls.key").write_bytes(pair.key)
    sets: dict[str, list[Turns]] = {body: [] for body in BODIES}
    spent: dict[str, float] = dict.fromkeys(BODIES, 0.0)
    for number in range(SETS):
        place = folder / f"set-{number}"
        place.mkdir()
        # The last server to be started is not always the same one.
        order = [*CONFIGURATIONS[number % 4 :], *CONFIGURATIONS[: number % 4]]
        for body, turns, seconds in one_set(place, certificates, order, rounds // SETS):
            sets[body].append(turns)
            spent[body] += seconds * 1e6 / (REQUESTS * (rounds + (SETTLING + 1) * SETS))
    return [
        summary(body, name, found) | ({"sidecar_cpu_us": spent[body]} if name == "on" else {})
        for body, found in sets.items()
        for name in CONFIGURATIONS
    ]


def one_set(
    folder: Path, certificates: Path, order: list[str], rounds: int
) -> Iterator[tuple[str, Turns, float]]:
    """Start the servers, and compare them: of each body the rounds, and the sidecar's seconds."""
    cores = Cores.of_this_machine()
    generator = Generator(cores.client)
    counter = Counter()
    request_count = 0
    with contextlib.ExitStack() as stack:
        healthy = stack.enter_context(Sidecar(folder / "healthy", sinks(counter)))
        hung = stack.enter_context(Sidecar(folder / "hung", sinks(counter)))
        for sidecar in (healthy, hung):
            # The server's core is for servers: what a neighbour does to its caches is not asked.
            assert sidecar.process is not None
            os.sched_setaffinity(sidecar.process.pid, {cores.client})
        logs = {"on": healthy, "hung": hung}
        servers = [
            stack.enter_context(server(folder, name, certificates, cores.server, logs.get(name)))
            for name in order
        ]
        for body, expected in BODIES.items():
            path = LOADTEST / "bodies" / f"{body}.json"
            for one in servers:
                generator.count(
                    one, path, connections=CONNECTIONS, requests=WARM_UP, expected=expected
                )
            before = healthy.cpu_seconds()
            assert hung.process is not None
            os.kill(hung.process.pid, signal.SIGSTOP)
            try:
                taken = generator.compare(
                    servers,
                    path,
                    connections=CONNECTIONS,
                    requests=REQUESTS,
                    rounds=SETTLING + rounds,
                    expected=expected,
                )
            finally:
                os.kill(hung.process.pid, signal.SIGCONT)
            places = [order.index(name) for name in CONFIGURATIONS]
            turns = [[turn[place] for place in places] for turn in taken[SETTLING:]]
            yield body, turns, healthy.cpu_seconds() - before
            request_count += WARM_UP + REQUESTS * (SETTLING + 1 + rounds)
            await_recorded(healthy, request_count)


def await_recorded(sidecar: Sidecar, count: int) -> None:
    """Wait until so many decisions have arrived: a log that drops them is no cheaper one."""
    for _ in waits():
        if sidecar.metric("received_total") >= count:
            break
    if (lost := sidecar.metric("gaps_total")) != 0:
        raise RuntimeError(f"{lost:.0f} decisions were not recorded")


def summary(body: str, name: str, sets: list[Turns]) -> dict[str, Any]:
    """Medians of the rounds, and of the ratios to servers without a log in the same round.

    Those are both for a log, and the other one for each of them.
    """
    place = CONFIGURATIONS.index(name)
    turns = [turn for found in sets for turn in found]
    figures = ("cpu_us", "p50_ms", "p99_ms")
    medians = {one: statistics.median(turn[place][one] for turn in turns) for one in figures}
    ratios = [[ratio(turn, place) for turn in found] for found in sets]
    first, middle, last = interval([each for found in ratios for each in found])
    return {
        "body": body,
        "log": name,
        **medians,
        "cpu_ratio": middle,
        "cpu_ratio_interval": [first, last],
        "cpu_ratio_sets": [statistics.median(found) for found in ratios],
    }


def ratio(turn: list[dict[str, float]], place: int) -> float:
    """CPU of one server in a round, of that of those without a log."""
    without = [turn[other]["cpu_us"] for other in (0, 1) if other != place]
    return turn[place]["cpu_us"] / statistics.fmean(without)


def verdict(one: dict[str, Any]) -> str:
    """Whether the goal is held, as far as the noise lets it be said."""
    first, last = one["cpu_ratio_interval"]
    if one["log"] not in {"on", "hung"}:
        return "noise"
    return "held" if last <= GOAL else "missed" if first > GOAL else "within the noise"


def server(
    folder: Path, name: str, certificates: Path, core: int, sidecar: Sidecar | None
) -> contextlib.AbstractContextManager[Server]:
    """Our server, with or without a log."""
    port, health, metrics = free_ports(3)
    command: list[str | Path] = [
        *(sys.executable, "-m", "webhook", "serve"),
        f"--policies={LOADTEST / 'policies' / 'p12'}",
        *("--host=127.0.0.1", f"--port={port}", f"--health-addr=127.0.0.1:{health}"),
        *("--prometheus-host=127.0.0.1", f"--prometheus-port={metrics}"),
        *(f"--cert-dir={certificates}", "--shutdown-delay=0", "--decision-log-grace=0"),
        "--memo-bytes=0",  # One body is sent again and again: a kept result would decide it.
    ]
    if sidecar is not None:
        config = folder / f"{name}.yaml"
        # A queue that is full before it is measured, where nobody empties it.
        queue = {"queue": {"maxRecords": HUNG_RECORDS}} if name == "hung" else {}
        config.write_text(json.dumps({"sidecarURL": sidecar.url, **queue}))
        command.append(f"--decision-log-config={config}")
    log = folder / f"{name}.log"
    return running(name, command, port=port, health_port=health, core=core, log=log)


def stream(folder: Path, scheme: str, count: int) -> dict[str, Any]:
    """Records a second from offer to durable, and what the sidecar spends on each."""
    counter = Counter()
    listen = None if scheme == "unix" else [{"url": f"grpc://127.0.0.1:{free_port()}"}]
    with Sidecar(folder / scheme, sinks(counter), listen=listen) as sidecar:
        url = sidecar.url if listen is None else listen[0]["url"]
        before = sidecar.cpu_seconds()
        finished = subprocess.run(
            [sys.executable, "-m", "loadtest.decisions.flood", url, str(count)],
            capture_output=True,
            text=True,
            check=True,
            timeout=600,
        )
        flooded: dict[str, float] = json.loads(finished.stdout)
        await_drained(sidecar)
        return {
            "transport": scheme,
            "durable_per_second": count / flooded["seconds"],
            "client_cpu_us": flooded["client_cpu_us"],
            "sidecar_cpu_us": (sidecar.cpu_seconds() - before) / count * 1e6,
            "sidecar_rss_mib": sidecar.memory_kib() / 1024,
            "sidecar_rss_max_mib": sidecar.memory_kib("VmHWM") / 1024,
        }


def outage(folder: Path, count: int) -> dict[str, float]:
    """Records a second from a full queue to a sink that has come back."""
    counter = Counter()
    counter.out = True
    with Sidecar(folder / "outage", sinks(counter)) as sidecar:
        command = [sys.executable, "-m", "loadtest.decisions.flood", sidecar.url, str(count)]
        subprocess.run(command, capture_output=True, check=True, timeout=600)
        began = time.perf_counter()
        counter.out = False
        await_drained(sidecar)
        return {"drained_per_second": count / (time.perf_counter() - began)}


def await_drained(sidecar: Sidecar) -> None:
    """Wait until the sink has everything."""
    for _ in waits():
        if sidecar.metric('sink_lag_records{sink="http"}') == 0:
            return
    raise RuntimeError(f"not drained: {sidecar.log.read_text()[-1000:]}")


def waits() -> Iterator[None]:
    """Ten minutes of looks, fifty a second."""
    for _ in range(30_000):
        yield
        time.sleep(0.02)


def markdown(result: dict[str, Any], rounds: int) -> str:
    """The whole result as a page."""
    machine = "".join(f"| {name} | {value} |\n" for name, value in result["machine"].items())
    admissions = "".join(
        f"| {one['body']} | {one['log']} | {one['cpu_us']:.0f} | {one['cpu_ratio']:.3f} | "
        f"{one['cpu_ratio_interval'][0]:.3f} to {one['cpu_ratio_interval'][1]:.3f} | "
        f"{', '.join(f'{each:.3f}' for each in one['cpu_ratio_sets'])} | {verdict(one)} | "
        f"{one['p50_ms']:.2f} | {one['p99_ms']:.2f} | {one.get('sidecar_cpu_us', 0):.0f} |\n"
        for one in result["admission"]
    )
    streams = "".join(
        f"| {one['transport']} | {one['durable_per_second']:,.0f} | {one['client_cpu_us']:.1f} | "
        f"{one['sidecar_cpu_us']:.1f} | {one['sidecar_rss_mib']:.1f} | "
        f"{one['sidecar_rss_max_mib']:.1f} |\n"
        for one in result["stream"]
    )
    return f"""# The decision log

Written by `make bench-decisions`.

| machine | |
|---|---|
{machine}
## What an admission pays

12 policies, {CONNECTIONS} connections over TLS, {rounds} rounds of {REQUESTS} requests to each server in
turn, on connections that stay; all servers were started anew {SETS} times meanwhile, since where a
process' memory lies differs from start to start. CPU is that of a server's whole process from round
to round: the exporter's work after the answers is in it, the sidecar's is not and has a column of its
own. Figures are medians. The ratio is to both servers without a log in the same round; for each of
these it is to the other one, which shows the noise. Beside it are the interval that holds its median
in 95 of 100 runs, by ranks alone, and the medians of each start. The goal is at most {GOAL}. It is held
where the whole interval is below, missed where it is above. `hung` has a sidecar that was stopped
with SIGSTOP. That of `on` received every decision, or else there would be no figures.

| body | log | CPU, µs a request | CPU, ratio | 95 % | of each start | goal | p50, ms | p99, ms | sidecar CPU, µs |
|---|---|---|---|---|---|---|---|---|---|
{admissions}
## From offer to durable

| transport | records a second | client CPU, µs | sidecar CPU, µs | sidecar resident, MiB | at most |
|---|---|---|---|---|---|
{streams}
Sidecar CPU includes the delivery to an HTTP sink.

## After an outage

A queue that filled while its HTTP sink was out drained {result["outage"]["drained_per_second"]:,.0f} records a second.
"""


if __name__ == "__main__":
    sys.exit(main())
