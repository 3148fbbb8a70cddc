"""`python -m loadtest.cluster [--save] [--quick]`: starts, memory and rest on clusters of three sizes."""

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from loadtest.bench.machine import describe
from loadtest.cluster import report
from loadtest.cluster.stages import Stage, measure
from tests.programs import ProgramUnavailableError

RESULTS = Path(__file__).resolve().parent.parent / "results"

# About 25 minutes, most of them for 500 kinds to be made and for Gatekeeper to come up with them.
FULL = (
    Stage(12, 100, 0, rounds=5, quiet_seconds=60),
    Stage(500, 2_000, 0, rounds=3, quiet_seconds=60),
    Stage(12, 100, 10_000, rounds=3, quiet_seconds=60),
)
QUICK = (
    Stage(12, 100, 0, rounds=1, quiet_seconds=10),
    Stage(100, 400, 0, rounds=1, quiet_seconds=10),
    Stage(12, 100, 2_000, rounds=1, quiet_seconds=10),
)


def main() -> int:
    """Run the benchmark; 1 when it cannot be run here, 2 when what it saw is not right."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.cluster", description=__doc__)
    parser.add_argument("--save", action="store_true", help="write the page to loadtest/results/")
    parser.add_argument("--quick", action="store_true", help="smaller clusters, each start once")
    options = parser.parse_args()
    began = datetime.now(UTC)
    try:
        with tempfile.TemporaryDirectory(prefix="waddle-cluster-") as folder:
            found = measure(QUICK if options.quick else FULL, Path(folder), _say)
    except ProgramUnavailableError as unavailable:
        print(f"the peer cannot be built here: {unavailable}", file=sys.stderr)
        return 1
    result = {
        "command": "make bench-cluster",
        "machine": describe(),
        "began": began.isoformat(timespec="seconds"),
        "minutes": round((datetime.now(UTC) - began).total_seconds() / 60, 1),
        "plan": [asdict(stage) for stage in (QUICK if options.quick else FULL)],
        "stages": found,
    }
    page = report.markdown(result)
    if options.save:
        RESULTS.mkdir(parents=True, exist_ok=True)
        name = "cluster-quick" if options.quick else "cluster"
        (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
        (RESULTS / f"{name}.md").write_text(page)
    print(page)
    faults = report.faults(result)
    for fault in faults:
        print(fault, file=sys.stderr)
    return 2 if faults else 0


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
