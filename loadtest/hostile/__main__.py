"""`python -m loadtest.hostile [--save]`: requests beside hostile policies, and without them.

Rounds alternate. Each has a server of its own, on one core, with the same
policies; in every other one requests that the hostile policies match begin with
the window. The rate is fixed, at 30 % of what the server can do, and a latency
counts from the scheduled time.
"""

import argparse
import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from loadtest.bench.load import Generator
from loadtest.bench.machine import describe
from loadtest.bench.servers import Cores, Server, running
from loadtest.hostile.policies import BODIES, REGO, write
from tests.ports import free_ports
from tests.programs import build
from webhook.certificates.pairs import self_signed

POLICIES = Path(__file__).parents[1] / "policies"
RESULTS = Path(__file__).parents[1] / "results"

LOAD = 0.3
P99_RATIO_MAX = 2.0
RSS_MORE_MIB_MAX = 128
"""Memory with hostile policies beyond that without."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The measurements and their durations."""

    rounds: int = 5
    seconds: float = 60
    saturation_seconds: float = 10
    warm_up: int = 3000
    hostile_per_second: float = 20
    policies: str = "p12"


QUICK = Plan(rounds=1, seconds=10, saturation_seconds=3, warm_up=500)


def main() -> int:
    """Measure; 1 when a bound is broken."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.hostile", description=__doc__)
    parser.add_argument("--save", action="store_true", help="write results/hostile.{json,md}")
    parser.add_argument("--quick", action="store_true", help="one round of 10 seconds")
    options = parser.parse_args()
    result = measure(QUICK if options.quick else Plan())
    page = markdown(result)
    print(page)
    if options.save:
        (RESULTS / "hostile.json").write_text(json.dumps(result, indent=1) + "\n")
        (RESULTS / "hostile.md").write_text(page)
    return 0 if result["passed"] else 1


def measure(plan: Plan) -> dict[str, Any]:
    """All figures of a run."""
    cores = Cores.of_this_machine()
    generator = Generator(cores.client)
    began = datetime.now(UTC)
    rounds: dict[str, list[dict[str, Any]]] = {"quiet": [], "hostile": []}
    with tempfile.TemporaryDirectory(prefix="waddle-hostile-") as scratch:
        folder = Path(scratch)
        policies = folder / "policies"
        policies.mkdir()
        for file in (POLICIES / plan.policies).glob("*.yaml"):
            (policies / file.name).write_bytes(file.read_bytes())
        bodies = write(policies)
        certificates = _certificates(folder / "certificates")
        with _serving(policies, certificates, cores.server, folder / "saturation.log") as started:
            server, _ = started
            _warm(generator, server, plan)
            closed = generator.closed(
                server,
                BODIES / "pod.json",
                connections=8,
                seconds=plan.saturation_seconds,
                expected="allowed",
            )
        rate = closed["requests_per_second"] * LOAD
        for number in range(plan.rounds):
            order = ("quiet", "hostile") if number % 2 == 0 else ("hostile", "quiet")
            for name in order:
                log = folder / f"{name}-{number}.log"
                with _serving(policies, certificates, cores.server, log) as started:
                    hostile = bodies if name == "hostile" else []
                    found = _window(generator, started, plan, rate, hostile)
                rounds[name].append({**found, "named": _named(log)})
                _say(f"{name}: p99 {found['p99_ms']:.2f} ms, {found['server_rss_mib']:.0f} MiB")
    return _judged(
        {
            "command": "make bench-hostile",
            "machine": describe(),
            "began": began.isoformat(timespec="seconds"),
            "minutes": round((datetime.now(UTC) - began).total_seconds() / 60, 1),
            "plan": asdict(plan),
            "saturation": closed["requests_per_second"],
            "rate": rate,
            "rounds": rounds,
        }
    )


def _serving(policies: Path, certificates: Path, core: int, log: Path) -> Any:
    """A server and the port of its metrics, as a context."""
    port, health, metrics = free_ports(3)
    command: list[str | Path] = [sys.executable, "-m", "webhook", "serve"]
    command += [f"--policies={policies}", f"--cert-dir={certificates}", "--shutdown-delay=0"]
    command += ["--memo-bytes=0"]  # One body is sent again and again.
    command += ["--host=127.0.0.1", f"--port={port}", f"--health-addr=127.0.0.1:{health}"]
    command += ["--prometheus-host=127.0.0.1", f"--prometheus-port={metrics}"]
    return _Started(
        running("waddle", command, port=port, health_port=health, core=core, log=log), metrics
    )


@dataclass(slots=True)
class _Started:
    """A server's context that gives its metrics' port too."""

    context: Any
    metrics: int

    def __enter__(self) -> tuple[Server, int]:
        return self.context.__enter__(), self.metrics

    def __exit__(self, *error: object) -> None:
        self.context.__exit__(*error)


def _warm(generator: Generator, server: Server, plan: Plan) -> None:
    generator.count(
        server, BODIES / "pod.json", connections=8, requests=plan.warm_up, expected="allowed"
    )


def _window(
    generator: Generator,
    started: tuple[Server, int],
    plan: Plan,
    rate: float,
    bodies: Sequence[Path],
) -> dict[str, Any]:
    """Measures a window of requests on schedule, with hostile ones from its beginning on."""
    server, metrics = started
    _warm(generator, server, plan)
    hostile = None
    peak = [server.rss_mib()]
    done = threading.Event()
    watcher = threading.Thread(target=_watch_memory, args=(server, peak, done))
    watcher.start()
    if bodies:
        hostile = _send_hostile(server, plan, bodies, generator.core)
    try:
        found = generator.open(
            server,
            BODIES / "pod.json",
            connections=32,
            seconds=plan.seconds,
            rate=rate,
            expected="allowed",
        )
    finally:
        done.set()
        watcher.join()
        answered = _hostile_report(hostile)
    found["rss_peak_mib"] = max(peak)
    found["hostile"] = answered
    found["suspended"] = _suspended(metrics)
    return found


def _send_hostile(
    server: Server, plan: Plan, bodies: Sequence[Path], core: int
) -> subprocess.Popen[bytes]:
    """Requests that match, each policy in turn, at a rate of their own."""
    url = urlsplit(server.url)
    return subprocess.Popen(
        [
            *("taskset", "--cpu-list", str(core), build("loadgen")),
            f"-url={url.scheme}://{url.netloc}{url.path}?timeout=25s",
            f"-body={','.join(map(str, bodies))}",
            f"-expect={','.join(['denied'] * len(bodies))}",
            f"-rate={plan.hostile_per_second}",
            f"-d={plan.seconds}s",
            "-c=32",
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _hostile_report(process: subprocess.Popen[bytes] | None) -> dict[str, Any]:
    """Returns the answers to hostile requests: refusals, or no answer within their time."""
    if process is None:
        return {}
    output, errors = process.communicate(timeout=90)
    report: dict[str, Any] = json.loads(output)
    if report["wrong"]:
        raise RuntimeError(f"hostile requests: {errors.decode().strip()}")
    return report


def _watch_memory(server: Server, peak: list[float], done: threading.Event) -> None:
    while not done.wait(0.1):
        peak.append(server.rss_mib())


def _suspended(port: int) -> list[str]:
    """The constraints whose breaker is open."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    finally:
        connection.close()
    return sorted(
        line.partition('constraint_name="')[2].partition('"')[0]
        for line in text.splitlines()
        if line.startswith("waddle_constraint_suspended{")
    )


def _named(log: Path) -> dict[str, str]:
    """For each suspended constraint what the log says is the cause."""
    found = {}
    for line in log.read_text().splitlines():
        if line.startswith("{"):
            event = json.loads(line)
            if event.get("breaker") == "open":
                found[event["constraint_name"]] = event["error"]
    return found


def _judged(result: dict[str, Any]) -> dict[str, Any]:
    """The result with its medians, and whether it is within its bounds."""
    medians = {
        name: {
            figure: statistics.median(one[figure] for one in found)
            for figure in ("p50_ms", "p99_ms", "max_ms", "rss_peak_mib")
        }
        for name, found in result["rounds"].items()
    }
    quiet, hostile = medians["quiet"], medians["hostile"]
    ratios = {
        "p99": hostile["p99_ms"] / quiet["p99_ms"],
    }
    more_mib = hostile["rss_peak_mib"] - quiet["rss_peak_mib"]
    passed = (
        ratios["p99"] <= P99_RATIO_MAX
        and more_mib <= RSS_MORE_MIB_MAX
        and all(
            one["suspended"] == sorted(REGO) and set(one["named"]) == set(REGO)
            for one in result["rounds"]["hostile"]
        )
    )
    return {**result, "medians": medians, "ratios": ratios, "more_mib": more_mib, "passed": passed}


def markdown(result: dict[str, Any]) -> str:
    """The result as a page."""
    machine = "".join(f"| {name} | {value} |\n" for name, value in result["machine"].items())
    rows = "".join(
        f"| {name} | {one['p50_ms']:.2f} | {one['p99_ms']:.2f} | {one['max_ms']:.1f} "
        f"| {one['rss_peak_mib']:.0f} |\n"
        for name, one in result["medians"].items()
    )
    causes = "".join(
        f"| {name} | {cause} |\n"
        for name, cause in sorted(result["rounds"]["hostile"][0]["named"].items())
    )
    plan = result["plan"]
    return f"""# Beside hostile policies

Written by `{result["command"]}`. The server on one core, the clients on another; `pod.json` to the
policies of `{plan["policies"]}` at {result["rate"]:.0f} requests a second, 30 % of the {result["saturation"]:.0f} that it can
answer; {plan["rounds"]} alternated rounds of {plan["seconds"]:.0f} s, each with a server of its own; medians. In hostile rounds
{plan["hostile_per_second"]:.0f} requests a second match one of five hostile policies each, from the round's first moment on.

| machine | |
|---|---|
{machine}
| round | p50 ms | p99 ms | slowest ms | peak MiB |
|---|---|---|---|---|
{rows}
p99 {result["ratios"]["p99"]:.2f} times the quiet one (bound {P99_RATIO_MAX:g}), {result["more_mib"]:.0f} MiB more at most (bound {RSS_MORE_MIB_MAX}):
**{"within" if result["passed"] else "NOT within"} the bounds**. Of {sum(one["hostile"]["requests"] for one in result["rounds"]["hostile"])} hostile requests {sum(one["hostile"]["failed"] for one in result["rounds"]["hostile"])} had no answer within their 25 s, all others were refused; every breaker
opened. What the log named as the cause:

| policy | cause |
|---|---|
{causes}"""


def _certificates(folder: Path) -> Path:
    pair = self_signed(["localhost"], datetime.now(UTC))
    folder.mkdir()
    (folder / "tls.crt").write_bytes(pair.certificate)
    (folder / "tls.key").write_bytes(pair.key)
    return folder


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
