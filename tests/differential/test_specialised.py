"""Code written for one constraint answers as the general code and as OPA do."""

import dataclasses
import random

import pytest

from tests.conformance.gatekeeper import require
from tests.differential import specialised
from tests.differential.agreement import NOW_NS, Answer, Question, difference, frozen_value, theirs
from tests.differential.mutation import mutated
from tests.differential.oracle import Oracle
from tests.differential.policies import of_library
from webhook.rego.engine import Query, specialise_modules
from webhook.rego.errors import EvaluationError
from webhook.rego.run.limits import EvaluationContext
from webhook.rego.syntax.parser import parse_module, parse_query

require("opa", "gatekeeper-library")

SEED = 20261121
REVIEWS = 6
"""Reviews for each set of parameters: code that is used again must not remember."""


@pytest.mark.slow(15)
def test_every_case_of_opa_gives_the_same_with_its_input_or_its_documents_known():
    """Values computed while code is written or before an evaluation equal those of a review."""
    compared = written = 0
    for name, question in specialised.movable():
        code = specialised.compiled(question)
        general = specialised.general(code, question)
        own = specialised.specialised(question)
        if own is not None:
            assert own == general, name
            written += 1
        assert specialised.general(code, question, known=True) == general, name
        compared += 1
    assert compared > 2000
    assert written > 0.98 * compared


@pytest.mark.slow
def test_other_parameters_give_the_same_too():
    """Strange values where policies expect others: undefined, and errors, stay what they are."""
    chance = random.Random(SEED)
    reviews_made = 0
    for name, question in specialised.movable():
        if question.input["parameters"] is None:
            continue
        code = specialised.compiled(question)
        for _ in range(3):
            other = specialised.varied(question, chance)
            own, general = specialised.specialised(other), specialised.general(code, other)
            assert own in (None, general), f"{name}: {other}"
            assert specialised.general(code, other, known=True) == general, f"{name}: {other}"
            reviews_made += 1
    assert reviews_made > 500


@pytest.mark.slow
def test_reviews_that_share_a_constraint_s_code_get_what_opa_gives(opa: Oracle):
    """Each set of parameters, the library's and strange ones, against several objects."""
    chance = random.Random(SEED)
    answered = 0
    for name, question in of_library():
        for parameters in (
            question.input["parameters"],
            mutated(question.input["parameters"], chance),
        ):
            reviewed = dataclasses.replace(
                question, input={**question.input, "parameters": parameters}
            )
            program = specialise_modules(
                [
                    parse_module(source, f"test-{number}.rego", reviewed.version)
                    for number, source in enumerate(reviewed.modules)
                ],
                parameters,
            )
            assert program is not None, name
            query = program.query(parse_query(reviewed.query))
            for number in range(REVIEWS):
                review = reviewed.input["review"]
                if number:
                    review = mutated(review, chance)
                one = dataclasses.replace(reviewed, input={**reviewed.input, "review": review})
                mine = _answer(query, one)
                assert difference(one, mine, theirs(opa, one)) == "", f"{name}: {one.input}"
                answered += mine[0] == "results"
    assert answered > 1000


def _answer(query: Query, question: Question) -> Answer:

    try:
        found = query(question.input, question.data, EvaluationContext(now_ns=NOW_NS))
    except EvaluationError as error:
        return "eval", [(error.code, error.message)]
    return "results", frozenset(frozen_value(bindings) for bindings in found)
