"""`python -m loadtest.ways_in [--seconds N]`: exit code 1 where a violating object got in."""

import argparse
import sys
import time

from loadtest.ways_in.search import Found, replicas, search


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
    parser.add_argument(
        "--api-server",
        choices=("Ignore", "Fail"),
        help="ask through a real API server, by the shipped configurations with this failurePolicy",
    )
    options = parser.parse_args()
    began = time.monotonic()
    found = _search(options)
    print(f"seed {options.seed}: {found.attempts} attempts in {time.monotonic() - began:.0f} s")
    for answer, count in found.answers.most_common():
        print(f"  {answer}: {count}")
    for way in sorted(set(found.ways_in))[:50]:
        print(f"  WAY IN {way}")
    return 1 if found.ways_in else 0


def _search(options: argparse.Namespace) -> Found:
    chosen = options.seconds, options.seed
    guarded = not options.unguarded
    if options.api_server is None:
        with replicas(guarded=guarded) as running:
            return search(running, *chosen, first_only=not guarded)
    # The real API server is built where it is not yet there: only for whom asks for it.
    from loadtest.ways_in.api_server import installed, search_installed  # noqa: PLC0415

    with installed(policy=options.api_server, guarded=guarded) as (plane, given_up):
        found = search_installed(plane, *chosen, first_only=not guarded)
        calls = given_up()
        longest = max(calls.held_seconds, default=0.0)
        print("what the API server gave up:")
        print(f"  connections on which it had sent no call yet: {calls.unsent}")
        print(
            f"  calls: {len(calls.held_seconds)}, which a replica had for {longest:.1f} s at most"
        )
        return found


if __name__ == "__main__":
    sys.exit(main())
