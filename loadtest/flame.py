"""`python -m loadtest.flame`: where a replica under load spends its time, as flame graphs.

py-spy, of the load tests' environment, looks at the process from outside, so that it slows nothing
and sees what holds the interpreter.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from loadtest.bench.load import Generator
from loadtest.bench.measurement import BODIES, make_certificates, warm
from loadtest.bench.policies import POLICIES
from loadtest.bench.servers import Cores, waddle
from loadtest.plots.flame import flame_graph, tree
from tests.programs import ProgramUnavailableError

ROOT = Path(__file__).resolve().parent.parent
PY_SPY = ROOT / ".venv-load" / "bin" / "py-spy"
RATE = 250
ADMISSION = "Runner.run (asyncio/runners.py"
OTHER_THREADS = "Thread._bootstrap (threading.py"


class ForbiddenError(Exception):
    """The kernel lets no process look at another."""


def main() -> int:
    """One graph for each set of policies; 1 when it cannot be done here."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.flame", description=__doc__)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--sets", default="p1,p12,p100", help="separated by commas")
    parser.add_argument("--output", type=Path, default=ROOT / "loadtest" / "results", help="folder")
    options = parser.parse_args()
    if not PY_SPY.exists():
        print("there is no py-spy: `make .venv-load/.done` installs it", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="waddle-flame-") as scratch:
        folder = Path(scratch)
        certificates = make_certificates(folder / "certificates")
        for name in options.sets.split(","):
            try:
                stacks = list(profile(name, certificates, folder, options.seconds))
            except ProgramUnavailableError as unavailable:
                print(f"the generator cannot be built here: {unavailable}", file=sys.stderr)
                return 1
            title = f"A replica under load, policies {name} (make flame)"
            drawn = flame_graph(title, tree(admission(stacks), below=ADMISSION))
            (options.output / f"flame-{name}.svg").write_text(drawn)
            print(options.output / f"flame-{name}.svg")
    return 0


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
