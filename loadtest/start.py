"""`python -m loadtest.start`: a start over many policies, compiled by one process and by two in turn.

Both have all cores and compile everything anew. The order changes from round to round, and a ratio
is of one round, so that what else the machine does meets both. CPU is that of all processes.

With ``--cluster`` the policies are in a real API server, and a replica starts as it does in a
cluster: on all cores, of which the API server has one. Making 500 kinds takes some minutes.
"""

import argparse
import os
import resource
import statistics
import sys
import tempfile
from pathlib import Path

import yaml

from loadtest.bench.measurement import make_certificates
from loadtest.bench.servers import Cores, waddle
from loadtest.bytecode import compile_modules
from loadtest.cluster import servers
from loadtest.cluster.content import policies
from loadtest.cluster.stages import Stage, site
from loadtest.telemetry.review import interval

GOAL_SECONDS = 5.0
"""To ready with 500 templates and 2,000 constraints."""

WAYS = {"one process": "--compile-in-parallel=false", "two": "--compile-in-parallel"}


def main() -> int:
    """Print both side by side; exit code 1 where two processes are not ready in time."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.start", description=__doc__)
    parser.add_argument("--templates", type=int, default=500)
    parser.add_argument("--constraints", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--cluster", action="store_true", help="at a real API server")
    options = parser.parse_args()
    compile_modules()
    if options.cluster:
        return _judged(at_an_api_server(options.templates, options.constraints, options.rounds))
    found: dict[str, list[tuple[float, float, float]]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory(prefix="waddle-start-") as scratch:
        folder = Path(scratch)
        certificates = make_certificates(folder / "certificates")
        write(folder / "policies", options.templates, options.constraints)
        for number in range(options.rounds):
            for way in list(WAYS)[:: 1 if number % 2 else -1]:
                found[way].append(start(folder, certificates, WAYS[way]))
    print(f"{options.templates} templates, {options.constraints} constraints, over files")
    for way, starts in found.items():
        ready, cpu, mib = (statistics.median(column) for column in zip(*starts, strict=True))
        print(f"{way}: ready after {ready:.2f} s, {cpu:.2f} s of CPU, {mib:.0f} MiB")
    for number, name in enumerate(("ready", "CPU")):
        pairs = zip(*found.values(), strict=True)
        first, middle, last = interval([two[number] / one[number] for one, two in pairs])
        print(f"{name}, two to one: {middle:.2f} (95 %: {first:.2f} to {last:.2f})")
    return _judged(statistics.median(one[0] for one in found["two"]))


def _judged(ready: float) -> int:
    """Say whether a start was in time; return the exit code."""
    print(f"at most {GOAL_SECONDS} s: {'held' if ready <= GOAL_SECONDS else 'missed'}")
    return int(ready > GOAL_SECONDS)


def at_an_api_server(templates: int, constraints: int, rounds: int) -> float:
    """Print the starts of a replica of a cluster with so many policies; the median's seconds."""
    found: list[float] = []
    with (
        tempfile.TemporaryDirectory(prefix="waddle-start-") as scratch,
        site(Path(scratch), Cores.of_this_machine()) as made,
    ):
        made.fill(Stage(templates, constraints, 0, rounds, 0.0))
        print(f"{templates} templates, {constraints} constraints, at an API server")
        for number in range(rounds):
            pod, log = f"started-{number}", Path(scratch) / "waddle.log"
            with servers.waddle(made.plane, pod, core=cores(), log=log) as server:
                server.wait_ready()
                found.append(server.ready_seconds)
                print(
                    f"ready after {server.ready_seconds:.2f} s, {server.ready_cpu_seconds:.2f} s of "
                    f"CPU, {server.rss_mib:.0f} MiB",
                    flush=True,
                )
    return statistics.median(found)


def write(folder: Path, templates: int, constraints: int) -> None:
    """Write a file for each policy."""
    folder.mkdir()
    content = policies(templates, constraints)
    for one in (*content.templates, *content.constraints):
        file = folder / f"{one['kind'].lower()}-{one['metadata']['name']}.yaml"
        file.write_text(yaml.safe_dump(one))


def cores() -> str:
    """Two of this machine's, as taskset lists them; one where there is no other."""
    return ",".join(map(str, sorted(os.sched_getaffinity(0))[-2:]))


def start(folder: Path, certificates: Path, flag: str) -> tuple[float, float, float]:
    """Start once: seconds to ready, seconds of CPU of all processes to the end, and MiB then."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    log = folder / "waddle.log"
    place = folder / "policies"
    with waddle(place, certificates, core=cores(), log=log, flags=[flag]) as server:
        ready, mib = server.ready_seconds, server.rss_mib()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return ready, cpu, mib


if __name__ == "__main__":
    sys.exit(main())
