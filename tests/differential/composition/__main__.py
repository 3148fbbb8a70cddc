"""Ask both engines about composed literals: ``python -m tests.differential.composition``.

All ordered pairs in all places and as many random bodies, or for ``--seconds``. Differences are
printed with the rules that show them, then what was asked and what was passed over and why.
"""

import argparse
import itertools
import secrets
import sys
import time
from collections import Counter

from tests.differential.composition.comparison import batches, compared
from tests.differential.composition.known import reason
from tests.differential.composition.questions import every_pair, some_bodies
from tests.differential.oracle import Oracle
from tests.programs import build

BODIES: int = 100_000


def main(arguments: list[str]) -> int:
    """Ask, and print what differs; 1 if anything does."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.composition")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--count", type=int, default=None, help="ask so many pairs and bodies")
    parser.add_argument("--bodies", action="store_true", help="random bodies alone")
    options = parser.parse_args(arguments)
    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    pairs = iter(()) if options.bodies else every_pair(seed)
    bodies = some_bodies(seed, BODIES)
    questions = itertools.chain.from_iterable(itertools.zip_longest(pairs, bodies))
    agreed_questions = itertools.islice(
        (one for one in questions if one is not None), options.count
    )
    counted: Counter[str] = Counter()
    different = 0
    deadline = time.monotonic() + options.seconds
    with Oracle(build("tests/oracles/opa")) as oracle:
        for batch in batches(agreed_questions):
            for found in compared(oracle, batch, counted):
                if why := reason(found):
                    counted[f"known: {why}"] += 1
                else:
                    different += 1
                    print(f"==== {found.shown()}", flush=True)
            if time.monotonic() > deadline:
                break
    for outcome, count in counted.most_common():
        print(f"{count} {outcome}")
    print(f"{different} differences")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
