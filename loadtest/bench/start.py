"""How long a start takes, and how much of it is importing what the server is made of."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from loadtest.bench.servers import Server

STARTS = 5

# The cost of every start before its first line: the interpreter alone, and with the imports that
# `waddle serve` has.
FLOORS = {"interpreter": "pass", "imports": "import webhook.app.process, webhook.app.cluster"}


def floors(core: int) -> dict[str, float]:
    """Medians of five, in seconds: what every start pays before its first line runs."""
    return {
        f"{name}_seconds": statistics.median(_run(source, core) for _ in range(STARTS))
        for name, source in FLOORS.items()
    }


def beside(
    servers: dict[str, Callable[[], AbstractContextManager[Server]]],
) -> dict[str, float]:
    """Medians of five starts to ready of each server, in turns and one at a time.

    In seconds by the clock, and as NAME_cpu of its processor.
    """
    seconds: dict[str, list[float]] = {name: [] for name in servers}
    for _ in range(STARTS):
        for name, start in servers.items():
            with start() as server:
                seconds.setdefault(f"{name}_cpu", []).append(server.cpu_seconds())
                seconds[name].append(server.ready_seconds)
    return {name: statistics.median(found) for name, found in seconds.items()}


def _run(source: str, core: int) -> float:
    started = time.perf_counter()
    command = ["taskset", "--cpu-list", str(core), sys.executable, "-c", source]
    subprocess.run(command, stdin=subprocess.DEVNULL, timeout=300, check=True)
    return time.perf_counter() - started


def import_floors() -> dict[str, float]:
    """Resident MiB of the interpreter alone, and with what a replica imports."""
    rss = "; print(next(l for l in open('/proc/self/status') if l.startswith('VmRSS')).split()[1])"
    found = {}
    for name, source in FLOORS.items():
        finished = subprocess.run(
            [sys.executable, "-c", source + rss],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
        found[f"{name}_mib"] = int(finished.stdout) / 1024
    return found
