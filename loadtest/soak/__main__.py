"""`python -m loadtest.soak [--seconds N]`: exit code 1 when something does not hold."""

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from loadtest.bench.machine import describe
from loadtest.bench.measurement import say
from loadtest.soak.run import Outcome, Plan, soak
from tests.programs import ProgramUnavailableError, build

RESULTS = Path(__file__).resolve().parent.parent / "results"


def main() -> int:
    """Run a soak and write what came of it."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1200)
    parser.add_argument("--seed", type=int, help="repeat a run's choices")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder")
    options = parser.parse_args()
    plan = (
        Plan(options.seconds) if options.seed is None else Plan(options.seconds, seed=options.seed)
    )
    try:
        program = build("testcluster")
    except ProgramUnavailableError as unavailable:
        print(f"the API server cannot be built here: {unavailable}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="waddle-soak-") as scratch:
        outcome = soak(plan, program, Path(scratch), say)
    result = as_json(outcome)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "soak.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps({name: result[name] for name in result if name != "memory"}, indent=1))
    print("\n".join(outcome.broken) or "everything holds")
    return 1 if outcome.broken else 0


def as_json(outcome: Outcome) -> dict[str, object]:
    """The result: counts, and memory once a half minute."""
    growth = outcome.memory.growth()
    return {
        "command": "make soak",
        "began": datetime.now(UTC).isoformat(timespec="minutes"),
        "plan": asdict(outcome.plan),
        "answered": outcome.tally.answered,
        "killed": outcome.tally.killed,
        "refused": outcome.tally.refused,
        "wrong": outcome.tally.wrong[:20],
        "failed": outcome.tally.failed[:20],
        "changes": outcome.changes,
        "kills": outcome.kills,
        "stops": outcome.stops,
        "memory_growth": None if growth is None else round(growth, 4),
        "memory": [(round(at), round(mib, 1)) for at, mib in outcome.memory.samples[::6]],
        "broken": outcome.broken,
        "machine": describe(),
    }


if __name__ == "__main__":
    sys.exit(main())
