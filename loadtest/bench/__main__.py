"""`python -m loadtest.bench [--quick]`: measure, print the page and write it to results/."""

import argparse
import json
import sys
from pathlib import Path

from loadtest import readme
from loadtest.bench import pictures, report
from loadtest.bench.goals import verdicts
from loadtest.bench.measurement import FULL, QUICK, measure
from tests.programs import ProgramUnavailableError

RESULTS = Path(__file__).resolve().parent.parent / "results"


def main() -> int:
    """Run the benchmark; 1 when it cannot be run here."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder")
    options = parser.parse_args()
    plan, name = (QUICK, "serving-quick") if options.quick else (FULL, "serving")
    command = "make bench-quick" if options.quick else "make bench"
    try:
        measured = measure(plan)
    except ProgramUnavailableError as unavailable:
        print(f"the peer cannot be built here: {unavailable}", file=sys.stderr)
        return 1
    judged = verdicts(measured)
    result = {"command": command, **measured, "verdicts": [one.as_json() for one in judged]}
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    drawn = pictures.draw(result)
    for picture, text in drawn.items():
        (options.output / f"{name}-{picture}.svg").write_text(text)
    page = report.markdown(result, [f"{name}-{picture}.svg" for picture in drawn])
    (options.output / f"{name}.md").write_text(page)
    if options.output == RESULTS:
        readme.write()
    print(page)
    print(report.verdict_lines(result["verdicts"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
