"""What tracing costs a replica: ``python -m loadtest.telemetry [SETS] [--save]``.

Whole servers (uvicorn, TLS, HTTP, 12 policies) that differ only in tracing get the same requests in
turn; the CPU of each one's whole process is counted, so that what its thread for telemetry does is
in it. The places of a process in memory make it some hundredths faster or slower for as long as it
lives: all are started anew SETS times, those of a set with the same seed of Python's hashes. What
is told is the mean over sets with the interval that holds it in 95 of 100 runs, beside the two
servers that do not trace. By what these two differ, the measure itself errs. Exit code 1 when a
goal is missed, or the machine is too busy to tell; ``--save`` writes ``results/telemetry.md``.
``python -m loadtest.telemetry.review`` looks at a review alone.
"""

import argparse
import contextlib
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from loadtest.bench.load import Generator
from loadtest.bench.machine import describe
from loadtest.bench.measurement import make_certificates
from loadtest.bench.servers import Cores, Server, waddle
from tests.collector import Collector
from tests.programs import ROOT, ProgramUnavailableError

POLICIES: Final = ROOT / "loadtest" / "policies" / "p12"
BODY: Final = ROOT / "loadtest" / "bodies" / "pod.json"
RESULTS: Final = ROOT / "loadtest" / "results" / "telemetry.md"
CONNECTIONS: Final = 8
REQUESTS: Final = 64
"""To one server before it is the next one's turn: some 20 ms, so that whatever else the machine does,
it does to all of them."""
ROUNDS: Final = 100
WARM_UP: Final = 5500
"""A constraint has code of its own from its 5,000th evaluation on."""
IDLE_SECONDS: Final = 0.02
"""Of CPU in half a second: a look for changed files, a sweep of connections."""
SETTLED_SECONDS_MAX: Final = 120
SETS: Final = 24
"""Two servers of a set differ by 2 % either way, whatever they do: the mean then by half a percent."""

OFF: Final = ("off", "off again")
GOALS: Final = {"off again": 0.01, "1 in 100": 0.03}
"""More CPU than ``off``, at most. Off is what all servers were before there was tracing: nothing of
it is imported, and what is left in everybody's way are three looks at an attribute."""

REACH_MAX: Final = 0.015
"""Of the interval, either way: a busy machine tells nothing of a hundredth."""

Shares = dict[str, list[float]]
"""Of each configuration, how much more CPU it took in each set than those that are off."""


def configurations(collector: str) -> dict[str, list[str]]:
    """Flags by name; the first is what the others are compared with."""
    tracing = [f"--otlp-endpoint={collector}", "--enable-tracing"]
    return {
        "off": [],
        "off again": [],
        "1 in 100": [*tracing, "--trace-samples-per-million=10000"],
    }


def measure(sets: int, folder: Path) -> tuple[Shares, dict[str, float]]:
    """Returns the shares of each set, and the CPU of a request in microseconds."""
    cores = Cores.of_this_machine()
    generator = Generator(cores.client)
    certificates = make_certificates(folder / "certificates")
    shares: Shares = {}
    absolute: dict[str, list[float]] = {}
    with Collector("--silent") as collector:
        names = list(configurations(collector.grpc).items())
        for number in range(sets):
            with contextlib.ExitStack() as stack:
                servers = {
                    name: stack.enter_context(
                        waddle(
                            POLICIES,
                            certificates,
                            core=cores.server,
                            log=folder / "log",
                            flags=flags,
                            environment={"PYTHONHASHSEED": str(number + 1)},
                        )
                    )
                    # Another one begins each set: whoever comes first finds memory otherwise.
                    for name, flags in turned(names, number)
                }
                taken = in_turn(generator, servers)
            for name, found in taken.items():
                absolute.setdefault(name, []).append(statistics.fmean(found))
            for name, share in compared(taken).items():
                shares.setdefault(name, []).append(share)
            text = ", ".join(f"{name} {found[-1]:+.2%}" for name, found in shares.items())
            print(f"set {number + 1} of {sets}: {text}", flush=True)
    return shares, {name: statistics.median(found) for name, found in absolute.items()}


def in_turn(generator: Generator, servers: dict[str, Server]) -> dict[str, list[float]]:
    """CPU of a request in microseconds, of each server in each round."""
    for requests in (WARM_UP, REQUESTS):
        for server in servers.values():
            generator.count(
                server, BODY, connections=CONNECTIONS, requests=requests, expected="allowed"
            )
        for server in servers.values():
            settle(server)
    taken = generator.compare(
        list(servers.values()),
        BODY,
        connections=CONNECTIONS,
        requests=REQUESTS,
        rounds=ROUNDS,
        expected="allowed",
    )
    return {name: [turn[place]["cpu_us"] for turn in taken] for place, name in enumerate(servers)}


def settle(server: Server) -> None:
    """Wait until a server that nobody asks does nothing: code of constraints' own is made beside."""
    before, end = -1.0, time.monotonic() + SETTLED_SECONDS_MAX
    while (spent := server.cpu_seconds()) - before > IDLE_SECONDS:
        if time.monotonic() > end:
            raise RuntimeError(f"{server.name} does not come to rest")
        before = spent
        time.sleep(0.5)


def compared(taken: dict[str, list[float]]) -> dict[str, float]:
    """Returns the additional costs: the second "off" over the first, the others over both.

    Of sums: what is sent every two seconds is in a few rounds alone, and in no median.
    """
    sums = {name: sum(values) for name, values in taken.items()}
    first, second = (sums[name] for name in OFF)
    both = (first + second) / 2
    return {
        name: found / (first if name == OFF[1] else both) - 1
        for name, found in sums.items()
        if name != OFF[0]
    }


def turned(items: list[tuple[str, list[str]]], number: int) -> list[tuple[str, list[str]]]:
    """The same in another order, from this one on."""
    place = number % len(items)
    return items[place:] + items[:place]


def interval(shares: Sequence[float]) -> tuple[float, float, float]:
    """The mean, and the bounds between which it lies with a probability of 95 % (by Student's t)."""
    middle = statistics.fmean(shares)
    if len(shares) < 2:
        return -math.inf, middle, math.inf
    # Student's quantile, by Cornish and Fisher's expansion: within 0.02 from six sets on.
    free, normal = len(shares) - 1, 1.96
    quantile = (
        normal
        + (normal**3 + normal) / (4 * free)
        + (5 * normal**5 + 16 * normal**3) / (96 * free**2)
    )
    reach = quantile * statistics.stdev(shares) / math.sqrt(len(shares))
    return middle - reach, middle, middle + reach


def page(shares: Shares, absolute: dict[str, float], machine: dict[str, str]) -> str:
    """The result for people."""
    described = "".join(f"| {name} | {value} |\n" for name, value in machine.items())
    rows = []
    for name, microseconds in absolute.items():
        if name not in shares:
            rows.append(f"| {name} | {microseconds:.0f} | | | | |")
            continue
        low, middle, high = interval(shares[name])
        rows.append(
            f"| {name} | {microseconds:.0f} | {middle:+.2%} | {low:+.2%} to {high:+.2%} | "
            f"at most {GOALS[name]:.0%} | {verdict(shares[name], GOALS[name])} |"
        )
    return f"""# Traces

Written by `make bench-telemetry`.

| machine | |
|---|---|
{described}
Whole servers with 12 policies, {CONNECTIONS} connections over TLS that stay, {ROUNDS} rounds of {REQUESTS} requests to each in turn, all started anew {len(next(iter(shares.values())))} times. CPU (user and system) is that of a server's whole process, its thread for telemetry in it. More than `off` is the mean over the starts, beside both that are off, with the interval that holds it in 95 of 100 runs. `off again` is a second server that does not trace: what it differs by is the measure's own error.

| tracing | CPU, µs a request | more than `off` | 95 % | goal | |
|---|---|---|---|---|---|
{chr(10).join(rows)}
"""


def verdict(shares: Sequence[float], goal: float) -> str:
    """Whether a goal holds, or that this machine cannot tell."""
    low, middle, high = interval(shares)
    if high - low > 2 * REACH_MAX:
        return "not told: the machine is too busy"
    return "met" if middle <= goal else "missed"


def main() -> int:
    """Measure and print; 0 when each goal is met."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.telemetry", description=__doc__)
    parser.add_argument("sets", nargs="?", type=int, default=SETS)
    parser.add_argument("--save", action="store_true", help="write results/telemetry.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="waddle-telemetry-") as folder:
        try:
            shares, absolute = measure(options.sets, Path(folder))
        except ProgramUnavailableError as unavailable:
            print(f"the generator cannot be built here: {unavailable}", file=sys.stderr)
            return 1
    text = page(shares, absolute, describe())
    print(text)
    if options.save:
        RESULTS.write_text(text)
    return 0 if all(verdict(shares[name], goal) == "met" for name, goal in GOALS.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
