"""What composed literals have found, each reduced to the policy that shows it."""

from collections import Counter
from typing import Any

import pytest

from tests.differential.agreement import Question, difference, ours, theirs
from tests.differential.composition.comparison import Asked, Batch, compared
from tests.differential.oracle import Oracle
from webhook.rego.engine import EvaluationContext, specialise_modules
from webhook.rego.run.values import RegoSet
from webhook.rego.syntax.parser import parse_module

FOUND = {
    "a number that only its text gives exactly, in a joined text": (
        'p contains sprintf("<%v|%v>", [x, 2.50]) if some x in [1.0, 1e3, -0.0, 1e-7, 5e20]'
    ),
    "the same in a text that is printed": 'p contains $"{x}" if some x in [1.0, 1e3, -0.0, 1e-7]',
    "a zero that is written with a sign": (
        'p contains [$"{x}", json.marshal(x), sprintf("%v %v", [x, [x]]), x == 0] if '
        'some x in [-0, to_number("-0"), json.unmarshal("-0"), min([0, -0]), abs(-0), -0 + 0]'
    ),
    "an empty text is found between bytes, not between characters": (
        'p contains hex.encode(replace(x, "", "-")) if some x in ["h\u00e9", "ab", "", input.a]'
    ),
    "a package named by the input": "p := x if x := data.q[input.a]",
    "a package's part named by the input": "p if { data.q[input.a].s; not data.q.r[input.a] }",
    "what a template string has shown may be anything": (
        'p if { v := null; t := $"<{v}>"; not startswith(v, "a"); t != "" }'
    ),
    "what it shows further down is what it was": 'p if { v := null; startswith(v, "a"); $"{v}" }',
    "a path that no rule's reference meets": (
        'p := {x | x := deep.b.c}\ndeep[k].a := 1 if some k in ["a", "b"]'
    ),
    "the same of what is replaced": (
        'p := {x | x := q with deep.b as {"c": 1}}\nq := deep.b.c\ndeep[k].a := 1 if some k in ["b"]'
    ),
    "what `every` goes through may be anything afterwards": (
        'p if { d({"a": 1}) }\n'
        "d(v) if { every e in v { e == 1 }; object.get(v, `b`, 1); trim(v, `a`) == `b` }"
    ),
    "a step that is computed before, in a body of its own": (
        "import future.keywords.not\nimport future.keywords.or\n"
        "p := {1 | not data.q[constant]; not {data.q.r[[1 | true]]}; {deep[constant]} or {true}}\n"
        "constant := {`a`: 1}\ndeep[k].a := 1 if some k in [`a`]"
    ),
    "objects that bind each other's variables, by names that are no strings": (
        'p contains [x, y, z] if { {1: x, "a": 2, null: [z]} = {1: 3, "a": y, null: [4]} }'
    ),
    "objects that bind each other's variables, by names that are variables": (
        'p contains [x, y, z] if { some x in ["a", "c", 1]; {x: 1, "b": z} = {"b": 2, x: y} }\n'
        "p contains [x, y] if { x := input.a; {x: y, 2: z} = {2: y, x: z}; y = 1 }"
    ),
    "an object's name that is a variable finds nothing in a constant": (
        'p contains x if { some k in ["a"]; {k: x} = {"a": 1} }'
    ),
    "the same within an array": 'p contains x if { [{k: x}, k] = [{"a": 1}, "a"] }',
    "both sides of an equation go through collections: the first around the second": (
        "p := [[a, b, c] | v := [`r`, `s`, `r`]; v[a] = v[b]; [v[c], 1] = [v[a], 1]]"
    ),
    "a literal that only prints has no `not` and no `with`": (
        "p contains v if { v := 1; not print(v) }\np contains 2 if print(input) with input as 3"
    ),
}
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
TOLD = {
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
"""What docs/compatibility/rego.md tells: nothing is found there, or a conflict, and here there is a value."""

OTHER = "package q\nr.s := 1"


def question(rule: str) -> Question:
    """A policy beside another package."""
    input_value = {"a": "r", "v": 2, "vs": [2], "xs": [1, 2]}
    modules = OTHER, f"package t\n{rule}"
    return Question(modules, "data.t.p = x", input=input_value, has_input=True)


@pytest.mark.parametrize("rule", FOUND.values(), ids=FOUND.keys())
def test_what_composed_literals_have_found_is_as_in_opa(rule: str, opa: Oracle):
    asked = question(rule)
    assert difference(asked, ours(asked), theirs(opa, asked)) == ""


@pytest.mark.parametrize("rule", ABOUT_VALUES.values(), ids=ABOUT_VALUES.keys())
def test_what_was_found_about_values_is_as_in_opa_in_each_way(rule: str, opa: Oracle):
    counted: Counter[str] = Counter()
    found = compared(opa, Batch([Asked("p", "body", rule)]), counted)
    assert [one.shown() for one in found] == []
    assert counted["asked"] == 1


@pytest.mark.parametrize("rule", TOLD.values(), ids=TOLD.keys())
def test_what_is_told_to_differ_does(rule: str, opa: Oracle):
    """Or the page is to say so no longer."""
    asked = question(rule)
    (kind, found), (there, told) = ours(asked), theirs(opa, asked)
    assert (kind, _members(found)) == ("results", 1)
    if _IN_CONFLICT in rule:
        assert [code for code, _ in told] == ["eval_conflict_error"]
    else:
        assert (there, _members(told)) == ("results", 0)


def test_a_conflict_for_what_is_not_sought_is_met_where_the_page_says_so(opa: Oracle):
    """In a loop over what the review holds, but not in code of a constraint over its parameters."""
    rule = (
        "p contains x if { some v in input.review.vs; "
        f"x := [j | some j, w in input.parameters.xs; w == v; f(w)] }}{_IN_CONFLICT}"
    )
    input_value = {"review": {"vs": [2]}, "parameters": {"xs": [1, 2]}}
    asked = Question((f"package t\n{rule}",), "data.t.p = x", input=input_value, has_input=True)
    mine = ours(asked)
    assert (mine[0], difference(asked, mine, theirs(opa, asked))) == ("eval", "")
    (module,) = (parse_module(source, "t.rego", "v1") for source in asked.modules)
    own = specialise_modules([module], input_value["parameters"])
    assert own is not None
    assert own.rule("data.t.p")(input_value, {}, EvaluationContext()) == RegoSet([[1]])


def _members(found: Counter[Any]) -> int:
    """Of the one set that is bound."""
    ((_, bindings),) = found
    ((_, (_, members)),) = bindings
    return len(members)
