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
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from loadtest.bench.load import Generator
from loadtest.bench.machine import describe
from loadtest.bench.servers import Cores, Server, running
from tests.decisions.process import Sidecar
from tests.ports import free_port, free_ports
from tests.programs import ProgramUnavailableError
from webhook.certificates.pairs import self_signed

LOADTEST = Path(__file__).resolve().parent.parent
BODIES = {"pod": "allowed", "pod_bad": "denied"}
CONFIGURATIONS = ("off", "off again", "on", "hung")
CONNECTIONS = 8


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
    rounds, requests, count = (3, 2000, 30_000) if options.quick else (5, 5000, 100_000)
    with tempfile.TemporaryDirectory(prefix="waddle-decisions-") as scratch:
        try:
            result = {
                "machine": describe(),
                "admission": admission(Path(scratch), rounds, requests),
                "stream": [stream(Path(scratch), scheme, count) for scheme in ("unix", "grpc")],
                "outage": outage(Path(scratch), count // 2),
            }
        except ProgramUnavailableError as unavailable:
            print(f"the generator cannot be built here: {unavailable}", file=sys.stderr)
            return 1
    page = markdown(result, rounds, requests)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    (options.output / f"{name}.md").write_text(page)
    print(page)
    return 0


def admission(folder: Path, rounds: int, requests: int) -> list[dict[str, Any]]:
    """Four servers that differ only in their decision log, in turn, at 12 policies."""
    cores = Cores.of_this_machine()
    generator = Generator(cores.client)
    certificates = folder / "certificates"
    certificates.mkdir()
    pair = self_signed(["localhost"], datetime.now(UTC))
    (certificates / "tls.crt").write_bytes(pair.certificate)
    (certificates / "tls.key").write_bytes(pair.key)
    counter = Counter()
    with contextlib.ExitStack() as stack:
        healthy = stack.enter_context(Sidecar(folder / "healthy", sinks(counter)))
        hung = stack.enter_context(Sidecar(folder / "hung", sinks(counter)))
        for sidecar in (healthy, hung):
            # The server's core is for servers: what a neighbour does to its caches is not asked.
            assert sidecar.process is not None
            os.sched_setaffinity(sidecar.process.pid, {cores.client})
        logs = {"on": healthy, "hung": hung}
        servers: dict[str, Server] = {}
        for name in CONFIGURATIONS:
            servers[name] = stack.enter_context(
                server(folder, name, certificates, cores.server, logs.get(name))
            )
        found: list[dict[str, Any]] = []
        for body, expected in BODIES.items():
            path = LOADTEST / "bodies" / f"{body}.json"

            def send(name: str, number: int, path: Path = path, expected: str = expected) -> Any:
                return generator.count(
                    servers[name],
                    path,
                    connections=CONNECTIONS,
                    requests=number,
                    expected=expected,
                )

            for name in CONFIGURATIONS:
                send(name, requests)
            assert hung.process is not None
            os.kill(hung.process.pid, signal.SIGSTOP)
            try:
                found += compare(body, send, rounds, requests)
            finally:
                os.kill(hung.process.pid, signal.SIGCONT)
    return found


def compare(
    body: str, send: Callable[[str, int], dict[str, Any]], rounds: int, requests: int
) -> list[dict[str, Any]]:
    """Medians, and medians of each round's ratio to `off`."""
    taken: dict[str, list[dict[str, Any]]] = {name: [] for name in CONFIGURATIONS}
    for turn in range(rounds):
        # Another one begins each time: the place within a round must not matter.
        for place in range(len(CONFIGURATIONS)):
            name = CONFIGURATIONS[(turn + place) % len(CONFIGURATIONS)]
            taken[name].append(send(name, requests))
    return [
        {
            "body": body,
            "log": name,
            **{
                figure: statistics.median(one[figure] for one in reports)
                for figure in ("server_cpu_ms_per_request", "p50_ms", "p99_ms")
            },
            **{
                f"{short}_ratio": statistics.median(
                    one[figure] / off[figure]
                    for one, off in zip(reports, taken["off"], strict=True)
                )
                for short, figure in (("cpu", "server_cpu_ms_per_request"), ("p99", "p99_ms"))
            },
        }
        for name, reports in taken.items()
    ]


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
    ]
    if sidecar is not None:
        config = folder / f"{name}.yaml"
        config.write_text(json.dumps({"sidecarURL": sidecar.url}))
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


def markdown(result: dict[str, Any], rounds: int, requests: int) -> str:
    """The whole result as a page."""
    machine = "".join(f"| {name} | {value} |\n" for name, value in result["machine"].items())
    admissions = "".join(
        f"| {one['body']} | {one['log']} | {one['server_cpu_ms_per_request'] * 1000:.0f} | "
        f"{one['cpu_ratio']:.3f} | {one['p50_ms']:.2f} | {one['p99_ms']:.2f} | {one['p99_ratio']:.2f} |\n"
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

12 policies, {CONNECTIONS} connections over TLS, {rounds} alternated rounds of {requests} requests;
medians; ratios to `off` within the same round. `off again` is a second identical server: what it
differs by is noise. `hung` has a sidecar that was stopped with SIGSTOP.

| body | log | CPU, µs a request | CPU, ratio | p50, ms | p99, ms | p99, ratio |
|---|---|---|---|---|---|---|
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
