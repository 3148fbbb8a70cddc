"""What composed literals have found, each reduced to the policy that shows it."""

import pytest

from tests.differential.agreement import Question, difference, ours, theirs
from tests.differential.oracle import Oracle

FOUND = {
    "a number that only its text gives exactly, in a joined text": (
        'p contains sprintf("<%v|%v>", [x, 2.50]) if some x in [1.0, 1e3, -0.0, 1e-7, 5e20]'
    ),
    "the same in a text that is printed": 'p contains $"{x}" if some x in [1.0, 1e3, -0.0, 1e-7]',
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
}
OTHER = "package q\nr.s := 1"


@pytest.mark.parametrize("rule", FOUND.values(), ids=FOUND.keys())
def test_what_composed_literals_have_found_is_as_in_opa(rule: str, opa: Oracle):
    question = Question(
        (OTHER, f"package t\n{rule}"), "data.t.p = x", input={"a": "r"}, has_input=True
    )
    assert difference(question, ours(question), theirs(opa, question)) == ""
