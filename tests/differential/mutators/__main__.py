"""``python -m tests.differential.mutators``: random mutators to our code and Gatekeeper's."""

import argparse
import secrets
import sys

from tests.differential.mutators.search import search
from tests.differential.oracle import Oracle
from tests.programs import build


def main() -> int:
    """Search; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--questions", type=int, default=sys.maxsize)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    options = parser.parse_args()
    found: list[str] = []

    def report(text: str) -> None:
        found.append(text)
        print(text, flush=True)

    print(f"seed {options.seed}", flush=True)
    with Oracle(build("tests/oracles/mutation")) as oracle:
        counted = search(oracle, options.seed, options.seconds, options.questions, report)
    for outcome, count in counted.most_common():
        print(f"{count:8} {outcome}")
    print(f"{len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
