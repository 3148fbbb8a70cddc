"""Comprehensions that bind what is around them are computed once for all of its values."""

import pytest

from tests.webhook.rego.written import written
from webhook.rego.engine import EvaluationContext
from webhook.rego.errors import EvaluationError
from webhook.rego.run.text import to_json

COUNT = 1000
INPUT = {
    "xs": [{"id": i} for i in range(COUNT)],
    "ys": [{"of": i % 7 if i < 7 else i, "n": i} for i in range(COUNT)],
}
PRODUCT_STEPS = COUNT * COUNT // 2
"""Fewer than going through all pairs is paid with."""


@pytest.mark.parametrize(
    "source",
    [
        "p contains x.id if { some x in input.xs; k := x.id; count([1 | some y in input.ys; y.of == k]) == 0 }",
        "p contains x.id if { some x in input.xs; k := x.id; ns := {y.n | some y in input.ys; y.of == k}; count(ns) == 0 }",
        (
            "p contains x.id if { some x in input.xs; none(x.id) }\n"
            "none(k) if { ns := [y.n | some y in input.ys; [y.of, 1] == [k, 1]]; count(ns) == 0 }"
        ),
        "p := {k: ns | some x in input.xs; k := x.id; ns := [y.n | some y in input.ys; y.of == k]; count(ns) == 0}",
    ],
)
def test_what_belongs_to_each_of_many_objects_is_sought_once(source):
    rule, _ = written(f"package a\n{source}", "data.a.p")
    budget = EvaluationContext(steps=PRODUCT_STEPS)

    assert to_json(rule(INPUT, {}, budget)) in ([], {})


@pytest.mark.parametrize(
    "made",
    [
        "[1 | some y in input.ys; y.of == x.id]",  # x is no value of the body's own
        "[1 | some y in input.ys; k != 3; y.of == k]",  # needed before it is bound
        "[1 | some y in input.ys; y[k] == y.of]",  # looked up, not gone through
        "[1 | some y in input.ys; y.of == k; every z in [1] { z != k }]",
        "{y.n: 1 | some y in input.ys; y.of == k}",  # two that conflict are another's fault
        "[k | some y in input.ys; y.of != 7]",
        "[w | walk(input.ys[0], [w, k])]",
    ],
)
def test_what_needs_the_values_around_it_is_computed_for_each(made):
    _, text = written(
        f"package a\np contains c if {{ some x in input.xs; k := x.id; c := {made} }}", "data.a.p"
    )
    assert "Groups" not in text


def test_what_stands_in_no_loop_is_computed_where_it_stands():
    _, text = written(
        "package a\np := c if { k := input.k; c := [1 | some y in input.ys; y.of == k] }",
        "data.a.p",
    )
    assert "Groups" not in text


def test_each_modified_input_has_groups_of_its_own():
    source = """package a
    counted(_) := [n | some x in [1, 2]; n := count([1 | some y in input.ys; y == x])]
    p := [a, b] if { a := counted(1) with input.ys as [1, 1]; b := counted(1) with input.ys as [2] }"""
    rule, text = written(source, "data.a.p")

    assert "Groups" in text
    assert rule({}, {}, EvaluationContext()) == [[2, 0], [0, 1]]


def test_what_is_kept_for_all_values_is_paid_for():
    source = "package a\np contains x if { some x in [1, 2]; c := [1 | some y in input.ys; y.of == x]; c == [] }"
    rule, _ = written(source, "data.a.p")

    with pytest.raises(EvaluationError, match="budget"):
        rule(INPUT, {}, EvaluationContext(steps=COUNT))


def test_solutions_for_all_values_together_are_no_more_than_those_of_one_collection():
    source = """package a
    p := [c | some x in [1, 2]; c := count([y.of | some y in input.ys; some z in input.ys; z.of == x])]"""
    rule, text = written(source, "data.a.p")
    many = {"ys": [{"of": 1}] * (COUNT + 1)}

    assert "Groups" in text
    with pytest.raises(EvaluationError, match="too large"):
        rule(many, {}, EvaluationContext())
