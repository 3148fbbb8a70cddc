"""A bounded part of all compositions of CEL's forms, and that a difference would be found."""

import itertools
import random
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.differential.cel import composition
from tests.differential.cel.composition import FORMS, ComposedQuestion, compare, compositions
from tests.differential.cel.oracle import CelOracle
from tests.programs import Programs

# The same questions in every run, so that a failure is a change's; `make fuzz-cel` asks others.
SEED = 20261122
PAIRS = 2500
"""The number of pairs, for about 20 s of CPU."""


@pytest.fixture(scope="module")
def oracle(program: Programs) -> Iterator[CelOracle]:
    """Kubernetes' CEL."""
    with CelOracle(program("cel-oracle")) as running:
        yield running


def differences(
    oracle: CelOracle, questions: Iterator[ComposedQuestion]
) -> tuple[list[str], Counter[str]]:
    """Returns the differences, and counts of the questions."""
    found: list[str] = []
    counted: Counter[str] = Counter()
    compare(oracle, questions, lambda one, why: found.append(f"{one}: {why}"), counted)
    return found, counted


@pytest.mark.slow(30)
@pytest.mark.timeout(900)
def test_pairs_of_forms_in_every_place_give_what_kubernetes_gives(oracle: CelOracle) -> None:
    questions = itertools.islice(compositions(random.Random(SEED)), PAIRS)
    found, counted = differences(oracle, questions)
    assert found == []
    assert counted["value"] > 0.2 * PAIRS
    assert counted["error"] > 0.2 * PAIRS
    assert counted["refused"] < 0.2 * PAIRS


def test_each_form_is_accepted_somewhere_and_has_a_value() -> None:
    chance = random.Random(1)
    for form in FORMS:
        tried = (composition.operands(chance, form) for _ in range(400))
        assert any(composition.has_value(composition.written(form, names)) for names in tried), form


def test_an_answer_of_another_value_is_a_difference(
    oracle: CelOracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = composition.answers_there

    def wrong(oracle: CelOracle, questions: list[ComposedQuestion]) -> list[str]:
        return [answer.replace("is 3", "is 4") for answer in real(oracle, questions)]

    monkeypatch.setattr(composition, "answers_there", wrong)
    found, counted = differences(
        oracle, iter([ComposedQuestion("object.i + 2"), ComposedQuestion("object.i + 3")])
    )
    assert counted.total() == 2
    assert found == ["object.i + 2: 'is 3' instead of 'is 4'"]


def test_a_variable_whose_order_is_gos_is_no_difference_and_another_value_is(
    oracle: CelOracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within one policy a variable has one value: asked again it must be another variable."""
    by_chance = ComposedQuestion(
        "variables.x.join('')", (("x", "{'a': 1, 'b': 2, 'c': 3}.map(k, k)"),)
    )
    certain = ComposedQuestion("variables.x[0]", (("x", "[3, 4].map(i, i)"),))
    mine = [*composition.answers_here([by_chance, certain], ["", ""])]

    def otherwise(_questions: list[ComposedQuestion], expected: list[str]) -> list[str]:
        return ["is abc" if expected[0] != "is abc" else "is bca", mine[1] + "!"]

    monkeypatch.setattr(composition, "answers_here", otherwise)
    found, counted = differences(oracle, iter([by_chance, certain]))
    assert counted["passed over: the order in which Go goes through a map"] == 1
    (difference,) = found
    assert difference.endswith(": 'is 3!' instead of 'is 3'")
