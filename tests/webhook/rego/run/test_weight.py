"""The weight of a value: shared parts count as often as they occur, and are computed once."""

from __future__ import annotations

from itertools import pairwise

import pytest

from webhook.rego.engine import EvaluationContext, compile_modules
from webhook.rego.errors import EvaluationError
from webhook.rego.run.values import RegoObject, RegoSet, lazy_set
from webhook.rego.run.weight import (
    MAX_STEPS,
    PAID_STEPS,
    PLAIN_PARTS,
    WALKED_STEPS,
    _shared_steps,
    afford_tree,
    text_steps,
    tree_steps,
)
from webhook.rego.syntax.parser import parse_module


def doubled(value, times):
    """A value that names itself twice, so many times."""
    for _ in range(times):
        value = [value, value]
    return value


@pytest.mark.parametrize("weigh", [tree_steps, text_steps])
@pytest.mark.parametrize(
    "first",
    [["a"], {"a": "b"}, {"a": ["b", 1, None]}, RegoSet(["a", "b"]), RegoObject([(1, "b")])],
    ids=repr,
)
def test_shared_parts_weigh_as_often_as_they_occur(weigh, first):
    """Nearly twice as much each time, whether the parts are followed or remembered."""
    weights = [weigh(doubled(first, times)) for times in range(14)]
    assert weights[13] > PLAIN_PARTS * 8
    steps = [b - 2 * a for a, b in pairwise(weights)]
    assert max(steps) - min(steps) <= 64


@pytest.mark.parametrize("weigh", [tree_steps, text_steps])
def test_what_is_too_heavy_is_found_soon(weigh):
    """2^10000 parts, of which there are ten thousand."""
    for value in (doubled(["a"], 10_000), [0] * MAX_STEPS, lazy_set([doubled(["a"], 30)])):
        with pytest.raises(EvaluationError, match="too large to be compared or written"):
            weigh(value)


def test_text_weighs_what_is_written():
    """A long string named often, and numbers of many digits."""
    text = "x" * 1000
    assert text_steps([text] * 100) > 100_000 // 8
    assert tree_steps([text] * 100) < 100_000 // 8
    assert text_steps([1 << 5000]) > 5000
    with pytest.raises(EvaluationError):
        text_steps(["x" * 1_000_000] * 1000)


@pytest.mark.parametrize(
    "condition",
    [
        "a := input.x; b := input.y; x := numbers.range(1, 3000)[_]; a == b; x < 0",
        "a := input.x; b := input.y; x := numbers.range(1, 3000)[_]; a < b; x < 0",
        "a := input.x; x := numbers.range(1, 3000)[_]; {a} == {[x]}",
        'a := input.x; x := numbers.range(1, 3000)[_]; json.marshal([a, x]) == "1"',
        'a := input.x; x := numbers.range(1, 3000)[_]; sprintf("%v%v", [a, x]) == "1"',
        "a := input.x; x := numbers.range(1, 3000)[_]; max([a, [x]]) == 1; x < 0",
    ],
)
def test_an_evaluation_pays_for_what_it_compares_and_writes(condition):
    """Five hundred numbers each time: 4,000 steps of the million that it has for all."""
    program = compile_modules([parse_module(f"package p\nr if {{ {condition} }}", "p.rego", "v1")])
    numbers = list(range(500))
    given = {"x": [*numbers, 1], "y": [*numbers, 1]}
    with pytest.raises(EvaluationError, match="budget of steps"):
        program.rule("data.p.r")(given, {}, EvaluationContext(steps=1_000_000))


def test_collections_in_a_list_are_counted_before_any_is_visited():
    """A million empty lists took 0.3 s without one look at the clock."""

    class Unvisited(list):
        def __iter__(self):
            raise AssertionError("it was visited")

    members = [[]] * 100_000
    members[-1] = Unvisited()
    with pytest.raises(EvaluationError, match="too large to be compared or written"):
        tree_steps(members)


def test_a_large_value_is_paid_for_while_it_is_weighed():
    """Else the clock would be looked at, and others let on, only when all of it is weighed."""
    value, paid = [[number] for number in range(20_000)], []
    afford_tree(value)
    steps = _shared_steps(value, WALKED_STEPS, texts=False, pay=paid.append)
    assert sum(paid) == steps == tree_steps(value)
    many = [[[number, number]] for number in range(20_000)]
    paid.clear()
    _shared_steps(many, WALKED_STEPS, texts=False, pay=paid.append)
    assert len(paid) > 5
    assert max(paid[1:-1]) < 2 * PAID_STEPS


def test_a_long_list_is_paid_for_while_it_is_gone_through():
    """Of a million empty lists nothing was paid: no thread rested for 36 ms."""
    paid: list[int] = []
    with pytest.raises(EvaluationError):
        _shared_steps([[]] * 300_000, WALKED_STEPS // 2, texts=False, pay=paid.append)
    assert paid
