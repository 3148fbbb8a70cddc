"""How long a start takes, and how much of it is importing what the server is made of."""

import statistics
import subprocess
import sys
import time
from pathlib import Path

from loadtest.bench.servers import waddle

STARTS = 5

# What every start pays before its first line runs: the interpreter alone, and with it importing what
# `waddle serve` imports.
FLOORS = {"interpreter": "pass", "imports": "import webhook.app.process"}


def measure(policies: Path, certificates: Path, *, core: int, log: Path) -> dict[str, float]:
    """Medians of five, in seconds: start to ready, and the floors beside it."""
    starts = []
    for _ in range(STARTS):
        with waddle(policies, certificates, core=core, log=log) as server:
            starts.append(server.ready_seconds)
    floors = {
        f"{name}_seconds": statistics.median(_run(source, core) for _ in range(STARTS))
        for name, source in FLOORS.items()
    }
    return {"ready_seconds": statistics.median(starts), **floors}


def _run(source: str, core: int) -> float:
    started = time.perf_counter()
    command = ["taskset", "--cpu-list", str(core), sys.executable, "-c", source]
    subprocess.run(command, stdin=subprocess.DEVNULL, timeout=300, check=True)
    return time.perf_counter() - started


def import_floors() -> dict[str, float]:
    """Resident MiB of the interpreter alone, and with what a server without a cluster imports."""
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
