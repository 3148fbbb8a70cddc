"""Ask both about random expressions, what is written wrongly, and pairs of forms, for a while.

``python -m tests.differential.cel``: a half of the time is for the first, where macros with names of
other things are asked about, too, and a tenth for the second.
Differences are printed with what shows them, the smallest of each kind; 1 if there is any.
"""

import argparse
import itertools
import random
import re
import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import TypeVar

from tests.differential.cel import composition
from tests.differential.cel.agreement import Question, compare, shown
from tests.differential.cel.grammar import Grammar
from tests.differential.cel.macros import macros
from tests.differential.cel.mutations import mutations
from tests.differential.cel.oracle import CelOracle
from tests.programs import build

EACH = 3
"""Differences of one kind that are printed."""


def questions(seed: int, *, strange: float = 0.06) -> Iterator[Question]:
    """Expressions without end, of one seed."""
    chance = random.Random(seed)
    grammar = Grammar(chance, strange=strange)
    while True:
        yield Question(grammar.expression(chance.choice((1, 2, 2, 3, 3, 4))))


_QuestionT = TypeVar("_QuestionT")


def until(questions: Iterator[_QuestionT], seconds: float) -> Iterator[_QuestionT]:
    """Yields questions until the time is over."""
    deadline = time.monotonic() + seconds
    return itertools.takewhile(lambda _: time.monotonic() < deadline, questions)


def main(arguments: list[str]) -> int:
    """Ask, and print what differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.cel")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--strange", type=float, default=0.06)
    options = parser.parse_args(arguments)
    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    counted: Counter[str] = Counter()
    found: list[tuple[int, str]] = []
    kinds: Counter[str] = Counter()

    def report(question: Question, text: str) -> None:
        kind = re.sub(r"\d+|'[^']*'", "", shown(text))[:80]
        kinds[kind] += 1
        if kinds[kind] <= EACH:
            found.append((len(question.expression), f"{question.expression}\n    {shown(text)}"))

    def report_pair(text: str, why: str) -> None:
        report(Question(text), why)

    with CelOracle(build("cel-oracle")) as oracle:
        asking = until(questions(seed, strange=options.strange), options.seconds * 0.55)
        compare(oracle, asking, report, counted)
        named = until(map(Question, macros(random.Random(seed))), options.seconds * 0.1)
        compare(oracle, named, report, counted)
        changed = until(map(Question, mutations(random.Random(seed))), options.seconds * 0.1)
        compare(oracle, changed, report, counted)
        pairs = until(composition.compositions(random.Random(seed)), options.seconds / 4)
        composition.compare(oracle, pairs, report_pair, counted)
    for _, text in sorted(found):
        print(f"==== {text}")
    for outcome, count in counted.most_common():
        print(f"{count} {outcome}")
    print(f"{kinds.total()} differences of {len(kinds)} kinds")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
