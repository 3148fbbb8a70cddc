"""Our engine beside OPA: the same results and errors for known questions and varied ones."""

import os
from collections import Counter

import pytest

from tests.conformance.gatekeeper import require
from tests.differential.agreement import Question, difference, ours, theirs
from tests.differential.known import reason
from tests.differential.oracle import Oracle
from tests.differential.policies import of_cases, of_library
from tests.differential.search import search, shown

require("opa", "gatekeeper-library")

SECONDS = float(os.environ.get("FUZZ_SECONDS", "40"))
# The same questions in every run, so that a failure is a change's; `make fuzz` asks new ones.
SEED = int(os.environ.get("FUZZ_SEED", "20261121"))
QUESTIONS = 1000


@pytest.mark.slow(20)
def test_every_case_of_opa_gives_what_opa_gives(opa: Oracle):
    """Values with their types, and messages of errors: more than the cases expect."""
    found = []
    known: Counter[str] = Counter()
    for name, question in of_cases():
        mine, real = ours(question), theirs(opa, question)
        different = difference(question, mine, real)
        if different and (why := reason(opa, question, mine, real)):
            known[why] += 1
        elif different:
            found.append(f"{name}: {different}")
    print(dict(known))
    assert found == []


@pytest.mark.slow
def test_every_case_of_the_library_gives_what_opa_gives(opa: Oracle):
    """Violations with message and details."""
    questions = of_library()
    assert len(questions) > 100
    answered = 0
    for name, question in questions:
        mine, real = ours(question), theirs(opa, question)
        assert difference(question, mine, real) == "", name
        answered += mine[0] == "results"
    assert answered == len(questions)


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 600)
def test_varied_questions_give_what_opa_gives(opa: Oracle):
    """FUZZ_SEED chooses other questions, FUZZ_SECONDS says how long they may take."""
    found: list[str] = []

    def report(question: Question, different: str) -> None:
        found.append(f"seed {SEED}: {shown(question, different)}")

    known: Counter[str] = Counter()
    assert search(opa, SEED, SECONDS, report, questions=QUESTIONS, known=known) > 10
    print(dict(known))
    assert found == []
