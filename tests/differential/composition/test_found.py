"""Differences found by composed literals, each reduced to the policy that shows it."""

from collections import Counter
from typing import Any

import pytest

from tests.differential.agreement import Question, difference, ours, theirs
from tests.differential.composition.comparison import Batch, ComposedRule, compared
from tests.differential.composition.found import FOUND, question
from tests.differential.oracle import Oracle
from webhook.rego.engine import EvaluationContext, specialise_modules
from webhook.rego.run.values import RegoSet
from webhook.rego.syntax.parser import parse_module

ABOUT_VALUES = {
    "object.subset of what is no collection": (
        "p contains i if { some i, v in input.parameters.vs; object.subset(v, v) }\n"
        "p contains [i] if { some i, v in input.parameters.vs; object.subset({1}, v) }"
    ),
    "a comprehension that compares a variable from around it, in code for one constraint": (
        "p contains [i, made] if {\n"
        "\tsome i, v in input.parameters.vs\n"
        "\tmade := [1 | v == null; not is_string(v)]\n}"
    ),
    "a comprehension in a function that is written for other operands each time": (
        "p contains [i, f(v, 1), f(v, 2)] if some i, v in input.parameters.vs\n"
        "f(u, w) := x if { z := [e | some e in [1, 2, 3]; e != w]; x := [u, z] }"
    ),
}
_IN_CONFLICT = "\nf(w) := 1 if w != 3\nf(w) := 2 if w == 1"
DIFFERENCES = {
    "names of an object that turn out equal, compared": (
        'p contains v if { v := input.a; {"r": 1} == {v: 1, "r": 1} }'
    ),
    "the same in an equation": 'p contains v if { v := input.a; w := {"r": 1}; w = {v: 1, "r": 1} }',
    **{
        f"a conflict for what is not sought, {where}": f"p contains x if {{ {body} }}{_IN_CONFLICT}"
        for where, body in {
            "outside of a loop": "v := input.v; x := [j | some j, w in input.xs; w == v; f(w)]",
            "of an object": (
                "some v in input.vs; x := {j: 1 | some j, w in input.xs; w == v; f(w)}"
            ),
            "with walk": "some v in input.vs; x := [1 | walk(input.xs, [_, w]); w == v; f(w)]",
            "with print": (
                "some v in input.vs; x := [j | some j, w in input.xs; w == v; print(w); f(w)]"
            ),
            "with a template string": (
                'some v in input.vs; x := [$"{v}" | some j, w in input.xs; w == v; f(w)]'
            ),
        }.items()
    },
}
"""The differences of docs/compatibility/rego.md: OPA finds nothing or a conflict, and we find a
value."""


@pytest.mark.parametrize("rule", FOUND.values(), ids=FOUND.keys())
def test_what_composed_literals_have_found_is_as_in_opa(rule: str, opa: Oracle):
    query = question(rule)
    assert difference(query, ours(query), theirs(opa, query)) == ""


@pytest.mark.parametrize("rule", ABOUT_VALUES.values(), ids=ABOUT_VALUES.keys())
def test_what_was_found_about_values_is_as_in_opa_in_each_way(rule: str, opa: Oracle):
    counted: Counter[str] = Counter()
    found = compared(opa, Batch([ComposedRule("p", "body", rule)]), counted)
    assert [one.shown() for one in found] == []
    assert counted["asked"] == 1


@pytest.mark.parametrize("rule", DIFFERENCES.values(), ids=DIFFERENCES.keys())
def test_what_is_reported_to_differ_does(rule: str, opa: Oracle):
    """Or the page is to say so no longer."""
    query = question(rule)
    (kind, found), (there, answer) = ours(query), theirs(opa, query)
    assert (kind, _members(found)) == ("results", 1)
    if _IN_CONFLICT in rule:
        assert [code for code, _ in answer] == ["eval_conflict_error"]
    else:
        assert (there, _members(answer)) == ("results", 0)


def test_a_conflict_for_what_is_not_sought_is_met_where_the_page_says_so(opa: Oracle):
    """In a loop over what the review holds, but not in code of a constraint over its parameters."""
    rule = (
        "p contains x if { some v in input.review.vs; "
        f"x := [j | some j, w in input.parameters.xs; w == v; f(w)] }}{_IN_CONFLICT}"
    )
    input_value = {"review": {"vs": [2]}, "parameters": {"xs": [1, 2]}}
    query = Question((f"package t\n{rule}",), "data.t.p = x", input=input_value, has_input=True)
    mine = ours(query)
    assert (mine[0], difference(query, mine, theirs(opa, query))) == ("eval", "")
    (module,) = (parse_module(source, "t.rego", "v1") for source in query.modules)
    own = specialise_modules([module], input_value["parameters"])
    assert own is not None
    assert own.rule("data.t.p")(input_value, {}, EvaluationContext()) == RegoSet([[1]])


def _members(found: Counter[Any]) -> int:
    """Of the one set that is bound."""
    ((_, bindings),) = found
    ((_, (_, members)),) = bindings
    return len(members)
