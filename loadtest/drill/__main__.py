"""`python -m loadtest.drill [--row PATTERN] [ATTACK …]`: carry out attacks and print what came of them."""

import argparse
import math
import sys

from loadtest.drill.attacks import (
    api_server,
    audited_objects,
    bytes_in_flight,
    console,
    crowding,
    forged_revisions,
    handshakes,
    large_bodies,
    large_objects,
    review_memory,
    shipped_manifests,
    slow_reviews,
    stored_objects,
    undecided,
    validation,
    written_sizes,
)
from loadtest.drill.drill import ROW, Attack, Row, Verdict, is_chosen

ATTACKS = (
    Attack("validation", validation.run),
    Attack("bytes", bytes_in_flight.run),
    Attack("large-objects", large_objects.run),
    Attack("crowding", crowding.run),
    Attack("large-bodies", large_bodies.run),
    Attack("review-memory", review_memory.run),
    Attack("console", console.run),
    Attack("shipped", shipped_manifests.run),
    Attack("undecided", undecided.run),
    Attack("slow-reviews", slow_reviews.run),
    Attack("handshakes", handshakes.run),
    Attack("stored-objects", stored_objects.run),
    Attack("audited-objects", audited_objects.run),
    Attack("api-server", api_server.run),
    Attack("forged-revisions", forged_revisions.run),
    Attack("written-sizes", written_sizes.run),
)

EXIT_CODES: dict[Verdict, int] = {"broken": 1, "machine": 3, "holds": 0}
"""Of a run, by the worst of its rows, which is first."""

SWITCH_SECONDS = 0.0001
"""The interpreter's switch interval, in seconds. A thread reads the server's log: thousands of
lines beside a flood of denials, of which the bare server writes none."""


def main() -> int:
    """Carry out the attacks named, or all; 1 where a bound does not hold, 3 where the machine is at fault."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.drill", description=__doc__)
    parser.add_argument("attack", nargs="*", choices=[[], *(attack.name for attack in ATTACKS)])
    parser.add_argument(
        "--row", default="", help="print only rows in whose name this regular expression is found"
    )
    arguments = parser.parse_args()
    attacks = arguments.attack
    ROW.set(arguments.row)
    print("| attack | figure | result | bound | |")
    print("|---|---|---|---|---|")
    sys.setswitchinterval(SWITCH_SECONDS)
    verdicts: set[Verdict] = {"holds"}
    for attack in ATTACKS:
        if attacks and attack.name not in attacks:
            continue
        for row in filter(lambda row: is_chosen(row.attack), attack.run()):
            verdicts.add(row.verdict)
            print(line(row), flush=True)
    return next(code for verdict, code in EXIT_CODES.items() if verdict in verdicts)


def line(row: Row) -> str:
    """A row as Markdown has it."""
    unit = f" {row.unit}" if row.unit else ""
    if row.bound == math.inf:
        bound = verdict = ""
    else:
        words = {
            "holds": "holds",
            "broken": "**BROKEN**",
            "machine": f"the machine: the floor is {row.floor:.4g}{unit}",
        }
        bound, verdict = f"{row.bound:g}{unit}", words[row.verdict]
    return f"| {row.attack} | {row.figure} | {row.result:.4g}{unit} | {bound} | {verdict} |"


if __name__ == "__main__":
    sys.exit(main())
