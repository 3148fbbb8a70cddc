"""Expressions by chance and by table, to our CEL and to Kubernetes' own: the same, word for word."""

import itertools
import random
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.differential.cel.__main__ import questions
from tests.differential.cel.agreement import Question, compare, shown
from tests.differential.cel.macros import macros
from tests.differential.cel.mutations import mutations, written
from tests.differential.cel.numbers import numbers
from tests.differential.cel.operands import arities, calls, readings
from tests.differential.cel.oracle import CelOracle
from tests.differential.cel.paths import identities, optionals, paths
from tests.programs import Programs


@pytest.fixture(scope="module")
def oracle(program: Programs) -> Iterator[CelOracle]:
    """Kubernetes' CEL."""
    with CelOracle(program("cel-oracle")) as running:
        yield running


def differences(oracle: CelOracle, questions: Iterator[Question]) -> tuple[list[str], Counter[str]]:
    """Returns the differences, and counts of the questions."""
    found: list[str] = []
    counted: Counter[str] = Counter()

    def report(one: Question, text: str) -> None:
        found.append(f"{one.expression}: {shown(text)}")

    compare(oracle, questions, report, counted)
    return found, counted


@pytest.mark.slow(40)
def test_every_function_with_operands_of_every_kind(oracle: CelOracle) -> None:
    """Each overload as it should be, and with each operand in turn a wrong one."""
    questions = dict.fromkeys((*calls(), *arities()))
    found, counted = differences(oracle, map(Question, questions))
    assert found == []
    assert counted["eval"] > 2000
    assert counted["value"] > 500


@pytest.mark.slow(60)
def test_every_function_that_reads_a_text(oracle: CelOracle) -> None:
    """Texts that are right and that are not, known before they are read or not, and their parts."""
    found, counted = differences(oracle, map(Question, dict.fromkeys(readings())))
    assert found == []
    assert counted["value"] > 2000
    assert counted["eval"] > 500
    assert counted["compile"] > 100


def test_every_form_that_can_be_written(oracle: CelOracle) -> None:
    """Literals, names, macros, messages, brackets and commas, right and wrong; idioms of policies."""
    found, counted = differences(oracle, map(Question, written()))
    assert found == []
    assert counted["value"] > 250
    assert counted["compile"] > 150


def test_what_is_written_wrongly(oracle: CelOracle) -> None:
    """Both engines accept and refuse the same texts."""
    found, counted = differences(
        oracle, map(Question, itertools.islice(mutations(random.Random(3)), 600))
    )
    assert found == []
    assert counted["compile"] > 50
    assert counted["value"] > 20


def test_macros_with_names_of_everything(oracle: CelOracle) -> None:
    """Macros with variables of any name, and any use of them."""
    found, counted = differences(
        oracle, map(Question, itertools.islice(macros(random.Random(4)), 600))
    )
    assert found == []
    assert counted["compile"] > 300
    assert counted["value"] > 20


def test_keys_behind_operands_of_every_form(oracle: CelOracle) -> None:
    """Fields and items of paths, conditionals, macros and optionals, one after the other."""
    questions = list(dict.fromkeys(paths()))
    random.Random(5).shuffle(questions)
    found, counted = differences(oracle, map(Question, questions[:900]))
    assert found == []
    assert counted["value"] > 300
    assert counted["eval"] > 200


def test_lists_and_maps_as_keys(oracle: CelOracle) -> None:
    """Each is found by itself alone: what is read twice is two, and what was made is one."""
    questions = list(dict.fromkeys(identities()))
    random.Random(6).shuffle(questions)
    found, counted = differences(oracle, map(Question, questions[:600]))
    assert found == []
    assert counted["value"] > 400


def test_optionals_in_every_place(oracle: CelOracle) -> None:
    """Values that are there, are not, are within others or were lost, of functions and operators."""
    questions = list(dict.fromkeys(optionals()))
    random.Random(7).shuffle(questions)
    found, counted = differences(oracle, map(Question, questions[:900]))
    assert found == []
    assert counted["value"] > 300
    assert counted["eval"] > 50


@pytest.mark.slow(30)
def test_numbers_and_spans_of_time(oracle: CelOracle) -> None:
    """Numbers and durations are shown, converted, compared and computed with any other value."""
    found, counted = differences(oracle, map(Question, dict.fromkeys(numbers())))
    assert found == []
    assert counted["value"] > 1000
    assert counted["eval"] > 500


@pytest.mark.parametrize("seed", [11, 12])
def test_random_expressions(oracle: CelOracle, seed: int) -> None:
    """Of every type, over JSON of every kind, a Pod, a request and a Namespace."""
    found, counted = differences(oracle, itertools.islice(questions(seed), 400))
    assert found == []
    assert counted["value"] > 80
