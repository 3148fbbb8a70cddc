"""`python -m loadtest.flame`: where a replica under load spends its time, as flame graphs.

py-spy, of the load tests' environment, looks at the process from outside, so that it slows nothing
and sees what holds the interpreter.

A second picture of each set is a trace of the slowest 0.1 % of answers at half of saturation, with what
made them (:mod:`loadtest.tail`). Meanwhile the replica is scraped and its policies change each second,
and every decision goes to a sidecar. ``--slowest`` draws these alone, and needs no py-spy.
"""

import argparse
import contextlib
import http.client
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from loadtest.bench.load import Generator
from loadtest.bench.measurement import make_certificates, warm
from loadtest.bench.policies import POLICIES
from loadtest.bench.servers import Cores, Server, running, waddle
from loadtest.plots.flame import flame_graph, tree
from loadtest.tail import Slow, causes, drawing, read, slowest, table
from loadtest.traces import BODIES
from tests.decisions.process import Sidecar
from tests.ports import free_ports
from tests.programs import ProgramUnavailableError

ROOT = Path(__file__).resolve().parent.parent
PY_SPY = ROOT / ".venv-load" / "bin" / "py-spy"
RATE = 250
ADMISSION = "Runner.run (asyncio/runners.py"
_CHANGED = re.compile(r"metadata:\n  annotations: {changed: .*}\n  ")
OTHER_THREADS = "Thread._bootstrap (threading.py"


class ForbiddenError(Exception):
    """The kernel lets no process look at another."""


def main() -> int:
    """Draws a graph for each set of policies; returns 1 if it cannot be done here."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.flame", description=__doc__)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--sets", default="p1,p12,p100", help="separated by commas")
    parser.add_argument("--output", type=Path, default=ROOT / "loadtest" / "results", help="folder")
    parser.add_argument("--slowest", action="store_true", help="only traces of the slowest")
    options = parser.parse_args()
    if not PY_SPY.exists() and not options.slowest:
        print("there is no py-spy: `make .venv-load/.done` installs it", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="waddle-flame-") as scratch:
        folder = Path(scratch)
        certificates = make_certificates(folder / "certificates")
        for name in options.sets.split(","):
            try:
                if not options.slowest:
                    stacks = list(profile(name, certificates, folder, options.seconds))
                    title = f"A replica under load, policies {name} (make flame)"
                    drawn = flame_graph(title, tree(admission(stacks), below=ADMISSION))
                    (options.output / f"flame-{name}.svg").write_text(drawn)
                    print(options.output / f"flame-{name}.svg")
                found = trace(name, certificates, folder / f"slowest-{name}", options.seconds)
            except ProgramUnavailableError as unavailable:
                print(f"the generator cannot be built here: {unavailable}", file=sys.stderr)
                return 1
            title = f"The slowest 0.1 % at half of saturation, policies {name} (make flame)"
            (options.output / f"slowest-{name}.svg").write_text(drawing(title, found))
            print(options.output / f"slowest-{name}.svg")
            print("\n".join(table(found)))
    return 0


def trace(name: str, certificates: Path, folder: Path, seconds: int) -> list[Slow]:
    """The slowest requests at half of what the replica can do, with what it did meanwhile."""
    cores = Cores.of_this_machine()
    generator, notes, samples = Generator(cores.client), folder / "notes", folder / "samples"
    shutil.copytree(POLICIES / name, folder / "policies")
    with Sidecar(folder / "sidecar", [{"name": "none", "type": "stdout"}]) as sidecar:
        with _noting(certificates, folder, sidecar, cores.server) as (server, metrics):
            warm(generator, server, 1000)
            body = BODIES / "pod.json"
            full = generator.closed(server, body, connections=8, seconds=3, expected="allowed")
            changing = folder / "policies" / "constraints.yaml"
            with _each_second(lambda number: _disturb(changing, metrics, number)):
                report = generator.mixed(
                    server,
                    {body: "allowed"},
                    connections=32,
                    seconds=seconds,
                    rate=full["requests_per_second"] / 2,
                    samples=samples,
                )
        return causes(slowest(samples, report["started_unix_s"]), read(notes))


@contextlib.contextmanager
def _noting(
    certificates: Path, folder: Path, sidecar: Sidecar, core: int
) -> Iterator[tuple[Server, int]]:
    """A replica that notes what it does, and the port of its metrics."""
    configuration = folder / "decisions.yaml"
    configuration.write_text(json.dumps({"sidecarURL": sidecar.url}))
    port, health, metrics = free_ports(3)
    command: list[str | Path] = [
        *(sys.executable, "-m", "loadtest.tail", folder / "notes", "serve"),
        f"--policies={folder / 'policies'}",
        *("--host=127.0.0.1", f"--port={port}", f"--health-addr=127.0.0.1:{health}"),
        *("--prometheus-host=127.0.0.1", f"--prometheus-port={metrics}"),
        *(f"--cert-dir={certificates}", "--shutdown-delay=0", "--decision-log-grace=0"),
        f"--decision-log-config={configuration}",
    ]
    log = folder / "waddle.log"
    with running("waddle", command, port=port, health_port=health, core=core, log=log) as server:
        yield server, metrics


@contextlib.contextmanager
def _each_second(do: Callable[[int], None]) -> Iterator[None]:
    """Have something done each second, by its number, until the context ends."""
    ended = threading.Event()

    def repeat() -> None:
        number = 0
        while not ended.wait(1.0):
            do(number)
            number += 1

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _disturb(constraints: Path, metrics: int, number: int) -> None:
    """Change a constraint, and scrape."""
    text = _CHANGED.sub("metadata:\n  ", constraints.read_text(), count=1)
    mark = f"metadata:\n  annotations: {{changed: 'for the {number}th time'}}\n  "
    constraints.write_text(text.replace("metadata:\n  ", mark, 1))
    connection = http.client.HTTPConnection("127.0.0.1", metrics, timeout=10)
    try:
        connection.request("GET", "/metrics")
        connection.getresponse().read()
    finally:
        connection.close()


def profile(name: str, certificates: Path, folder: Path, seconds: int) -> Iterator[str]:
    """Folded stacks of all threads of a replica that has as much to do as it can."""
    cores = Cores.of_this_machine()
    generator, raw = Generator(cores.client), folder / f"{name}.raw"
    log = folder / "waddle.log"
    with waddle(POLICIES / name, certificates, core=cores.server, log=log) as server:
        warm(generator, server, 1000)
        command: list[str | Path] = [PY_SPY, "record", "--pid", str(server.process.pid)]
        command += ["--duration", str(seconds), "--rate", str(RATE), "--function"]
        command += ["--format", "raw", "--output", raw]
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as watching:
            generator.closed(
                server,
                BODIES / "pod.json",
                connections=8,
                seconds=seconds + 1,
                expected="allowed",
            )
            if watching.wait(30) != 0:
                raise ForbiddenError("py-spy may not look at another process here: try as root")
        yield from raw.read_text().splitlines()


def admission(stacks: Iterable[str]) -> Iterator[str]:
    """The stacks of the thread that answers admission."""
    return (line for line in stacks if OTHER_THREADS not in line)


if __name__ == "__main__":
    sys.exit(main())
