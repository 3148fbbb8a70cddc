"""`python -m loadtest.enforcement`: from a change to its enforcement, beside Gatekeeper.

Nothing is kept without `--save`; with it, loadtest/results/enforcement.json and .md.
"""

import argparse
import json
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from loadtest.bench import machine
from loadtest.enforcement import report, systems
from loadtest.enforcement.changes import CHANGES, Times, constraint_round, template_round
from loadtest.enforcement.requests import Ledger
from loadtest.enforcement.systems import Peer, System, Waddle
from loadtest.enforcement.writes import medians, per_change

RESULTS = Path(__file__).resolve().parent.parent / "results"

SETTLE_SECONDS = 0.7
"""After a change its statuses are written, and byPod 0.2 s later: no part of the next change."""

WARM_UP_ROUNDS = 3
"""Discarded: connections are made and code is compiled."""


def main() -> None:
    """Measure, print and, if wanted, keep."""
    options = _options()
    with systems.both(options.replicas) as pair:
        result = measure(*pair, options)
    print(report.markdown(result))
    if options.save:
        (RESULTS / "enforcement.json").write_text(json.dumps(result, indent=2) + "\n")
        (RESULTS / "enforcement.md").write_text(report.markdown(result))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m loadtest.enforcement")
    parser.add_argument("--replicas", type=int, default=3, help="of Waddle")
    parser.add_argument("--rounds", type=int, default=40, help="of changes of a constraint")
    parser.add_argument("--template-rounds", type=int, default=7)
    parser.add_argument("--write-rounds", type=int, default=3)
    parser.add_argument("--steady-seconds", type=float, default=60.0)
    parser.add_argument("--save", action="store_true", help="keep in loadtest/results")
    return parser.parse_args()


def measure(ours: Waddle, theirs: Peer, options: argparse.Namespace) -> dict[str, Any]:
    """Returns all results."""
    pair: tuple[System, System] = (ours, theirs)
    changes = _alternate(pair, constraint_round, options.rounds, WARM_UP_ROUNDS)
    templates = _alternate(pair, template_round, options.template_rounds, 1)
    for rounds in templates.values():
        for one in rounds:
            one["excess"] = [max(one["enforced"]) - one["floor"][0]]
    return {
        "command": shlex.join(["python", "-m", "loadtest.enforcement", *sys.argv[1:]]),
        "machine": machine.describe(),
        "replicas": options.replicas,
        "constraints": systems.CONSTRAINTS,
        "templates": systems.TEMPLATES,
        "rounds": options.rounds,
        "template_rounds": options.template_rounds,
        "write_rounds": options.write_rounds,
        "milliseconds": _summaries(changes, CHANGES),
        "template_milliseconds": _summaries(templates, ("enforced", "floor", "excess")),
        "steady": _steady(pair, options.steady_seconds),
        "writes": _writes(ours, theirs, options),
        # Every change on every replica, as `waddle simulate --measured` takes them.
        "rounds_ms": [one[change] for one in changes[ours.name] for change in CHANGES],
        "every_round": {"changes": changes, "templates": templates},
    }


Round = Callable[[System, Callable[[], None]], Times]
Rounds = dict[str, list[Times]]


def _alternate(pair: tuple[System, System], run: Round, rounds: int, discarded: int) -> Rounds:
    """Rounds of both in turn, each first as often as the other."""
    found: Rounds = {system.name: [] for system in pair}
    for number in range(discarded + rounds):
        for system in pair if number % 2 else reversed(pair):
            figures = run(system, lambda: time.sleep(SETTLE_SECONDS))
            if number >= discarded:
                found[system.name].append(figures)
            shown = " ".join(f"{name} {max(times):.0f}" for name, times in figures.items())
            print(f"{run.__name__} {number} {system.name}: {shown}", file=sys.stderr, flush=True)
    return found


def _summaries(rounds: Rounds, parts: tuple[str, ...]) -> dict[str, dict[str, dict[str, float]]]:
    return {
        name: {part: report.summary(max(one[part]) for one in figures) for part in parts}
        for name, figures in rounds.items()
    }


def _steady(pair: tuple[System, System], seconds: float) -> dict[str, Any]:
    """Writes while nothing changes, both watched at once."""
    for system in pair:
        Ledger(system).wait_quiet()
    ledgers = {system.name: Ledger(system) for system in pair}
    time.sleep(seconds)
    counts = {name: sum(ledger.writes().values()) for name, ledger in ledgers.items()}
    return {"seconds": seconds, **counts}


def _writes(ours: Waddle, theirs: Peer, options: argparse.Namespace) -> list[dict[str, Any]]:
    """By each system, and by ours with one replica too: what one more costs is the difference."""
    found = [_counts(theirs, options.write_rounds), _counts(ours, options.write_rounds)]
    ours.keep(1)
    return [*found, _counts(ours, options.write_rounds)]


def _counts(system: System, rounds: int) -> dict[str, Any]:
    every = per_change(system, rounds)
    return {
        "system": system.name,
        "replicas": system.replicas,
        "median": medians(every),
        "rounds": every,
    }


if __name__ == "__main__":
    main()
