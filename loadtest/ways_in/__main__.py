"""`python -m loadtest.ways_in [--seconds N]`: exit code 1 where a violating object got in."""

import argparse
import sys
import time

from loadtest.ways_in.search import replicas, search


def main() -> int:
    """Search, and say what was found."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.ways_in", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="repeat a run's choices")
    parser.add_argument(
        "--unguarded",
        action="store_true",
        help="replicas leave to failurePolicy what is slow by its own doing: ends at the first way",
    )
    options = parser.parse_args()
    began = time.monotonic()
    with replicas(guarded=not options.unguarded) as running:
        found = search(running, options.seconds, options.seed, first_only=options.unguarded)
    print(f"seed {options.seed}: {found.attempts} attempts in {time.monotonic() - began:.0f} s")
    for answer, count in found.answers.most_common():
        print(f"  {answer}: {count}")
    for way in sorted(set(found.ways_in))[:50]:
        print(f"  WAY IN {way}")
    return 1 if found.ways_in else 0


if __name__ == "__main__":
    sys.exit(main())
