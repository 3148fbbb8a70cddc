"""The search for a difference, a question for each number: ``python -m tests.differential.mutators``."""

import json
import random
import time
from collections import Counter
from collections.abc import Callable

from tests.differential.mutators.agreement import difference, ours, theirs
from tests.differential.mutators.known import reason
from tests.differential.mutators.questions import Question, question
from tests.differential.oracle import Oracle


def search(
    oracle: Oracle, seed: int, seconds: float, questions: int, report: Callable[[str], object]
) -> Counter[str]:
    """Ask for so long, or so many; what was asked and passed over, counted.

    ``report`` gets each difference that is not known, with all that shows it.
    """
    counted: Counter[str] = Counter()
    end = time.monotonic() + seconds
    for number in range(questions):
        if time.monotonic() > end:
            break
        case = question(random.Random(f"{seed}/{number}"))
        mine, real = ours(case), theirs(oracle, case)
        counted[_kind(case, bool(real["error"]))] += 1
        if different := difference(case, mine, real):
            if why := reason(oracle, case):
                counted[why] += 1
            else:
                report(shown(f"{seed}/{number}", case, different))
    return counted


def _kind(question: Question, failed: bool) -> str:
    kind = (
        "location"
        if "location" in question
        else "expansion"
        if "expand" in question
        else "mutation"
    )
    return f"{kind}, {'an error' if failed else 'answered'}"


def shown(name: str, question: Question, different: str) -> str:
    """A difference with its question."""
    return f"question {name}: {different}\n  {json.dumps(question)}"
