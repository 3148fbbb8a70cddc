"""The search for a difference between our engine and OPA: ``python -m tests.differential.search``.

Questions are known ones with inputs and data changed a little, and small policies
made up of parts. The seed is printed, and each difference with all that shows it.
"""

import argparse
import dataclasses
import random
import secrets
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from tests.differential.agreement import Question, difference, ours, theirs
from tests.differential.grammar import policy
from tests.differential.known import reason
from tests.differential.mutation import mutated
from tests.differential.oracle import Oracle
from tests.differential.policies import of_cases, of_library
from tests.programs import build


def variations(chance: random.Random) -> Iterator[Question]:
    """Questions without end."""
    questions = [question for _, question in of_cases() if question.has_input or question.data]
    reviews = [question for _, question in of_library()]
    while True:
        kind = chance.random()
        if kind < 0.3:
            yield policy(chance)
            continue
        question = chance.choice(reviews if kind < 0.6 else questions)
        for _ in range(chance.choice((1, 1, 2, 4))):
            question = _varied(question, chance)
        yield question


def _varied(question: Question, chance: random.Random) -> Question:
    if question.has_input and (not question.data or chance.random() < 0.7):
        return dataclasses.replace(question, input=mutated(question.input, chance))
    data = mutated(question.data, chance)
    return dataclasses.replace(question, data=data if isinstance(data, dict) else {})


def search(
    oracle: Oracle,
    seed: int,
    seconds: float,
    report: Callable[[Question, str], Any],
    *,
    questions: int = sys.maxsize,
    known: Counter[str],
) -> int:
    """Ask for so long, or so many; ``report`` gets each difference not known; how many asked.

    ``known`` counts those that are passed over, by the reason.
    """
    chance = random.Random(seed)
    deadline = time.monotonic() + seconds
    for count, question in enumerate(variations(chance)):
        if count >= questions or time.monotonic() > deadline:
            return count
        mine, real = ours(question), theirs(oracle, question)
        found = difference(question, mine, real)
        if found and (why := reason(oracle, question, mine, real)):
            known[why] += 1
        elif found:
            report(question, found)
    raise AssertionError("variations end")


def shown(question: Question, found: str) -> str:
    """A difference with all that is needed to see it again."""
    modules = "\n---\n".join(question.modules)
    rest = dataclasses.replace(question, modules=())
    return f"{found}\n{modules}\n{rest}"


def main(arguments: list[str]) -> int:
    """Search, and print what is found; 1 if there is anything."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.search")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args(arguments)
    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    differences: list[str] = []
    known: Counter[str] = Counter()

    def report(question: Question, found: str) -> None:
        differences.append(found)
        print(f"==== {shown(question, found)}", flush=True)

    with Oracle(build("tests/oracles/opa")) as oracle:
        request_count = search(oracle, seed, options.seconds, report, known=known)
    for why, count in known.most_common():
        print(f"{count} passed over: {why}")
    print(f"{request_count} questions, {len(differences)} differences")
    return int(bool(differences))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
