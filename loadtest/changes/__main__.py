"""`python -m loadtest.changes [--save]`: load while policies change, beside Gatekeeper.

Exit code 1 when a bound is broken.
"""

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loadtest.bench.load import may_go_first
from loadtest.bench.machine import describe
from loadtest.bench.measurement import say
from loadtest.changes import report
from loadtest.changes.measurement import QUICK, Plan, measure
from tests.programs import ProgramUnavailableError

RESULTS = Path(__file__).parents[1] / "results"


def main() -> int:
    """Measure, print and, if wanted, keep."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.changes", description=__doc__)
    parser.add_argument("--save", action="store_true", help="write results/changes.{json,md}")
    parser.add_argument("--quick", action="store_true", help="one round of 15 seconds")
    options = parser.parse_args()
    plan = QUICK if options.quick else Plan()
    began = datetime.now(UTC)
    with tempfile.TemporaryDirectory(prefix="waddle-changes-") as scratch:
        try:
            measured = measure(plan, Path(scratch), say)
        except ProgramUnavailableError as unavailable:
            print(f"a program cannot be built here: {unavailable}", file=sys.stderr)
            return 1
    result = report.judged(
        {
            "command": "make bench-changes",
            "machine": describe(),
            "began": began.isoformat(timespec="seconds"),
            "minutes": round((datetime.now(UTC) - began).total_seconds() / 60, 1),
            "plan": asdict(plan),
            "generator_first": may_go_first(),
            **measured,
        }
    )
    page = report.markdown(result)
    print(page)
    if options.save:
        (RESULTS / "changes.json").write_text(json.dumps(_kept(result), indent=1) + "\n")
        (RESULTS / "changes.md").write_text(page)
    return 0 if result["passed"] else 1


def _kept(result: dict[str, Any]) -> dict[str, Any]:
    """Without every request's own figures, of which there are thousands."""
    left_out = ("latencies_us", "late_us", "change_seconds")
    rounds = {
        name: [
            {
                state: {key: value for key, value in window.items() if key not in left_out}
                for state, window in one.items()
            }
            for one in found
        ]
        for name, found in result["rounds"].items()
    }
    return {**result, "rounds": rounds}


if __name__ == "__main__":
    sys.exit(main())
