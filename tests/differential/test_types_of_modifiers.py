"""Refusals of literals with modifiers at load equal OPA's."""

import pytest

from tests.differential.agreement import Question, ours, theirs
from tests.differential.oracle import Oracle

RULES = {
    "a rule's document": 'p if o.a == "b" with data.t.o as {"a": "b"}',
    "another input": 'p if o.a == "b" with input as {}',
    "another input, negated": 'p if not o.a == "b" with input as 1',
    "what depends on it": 'q := o.a\np if q == "b" with data.t.o as {"a": "b"}',
    "what it depends on": 'q := o.a\np if q == "b" with data.t.q as {"a": "b"}',
    "a property that only the replacement has": 'p if o.b == "b" with data.t.o as {"b": "b"}',
    "a property that none has": 'p if o.b == "b" with input.x as {"b": "b"}',
    "operands of a replaced built-in": "p if count(o.a) == 1 with count as 1",
    "what depends on a replaced function": 'f(x) := 1\nq := f(1)\np if q == "b" with f as "b"',
    "a replaced function": 'f(x) := 1\np if f(1) == "b" with f as "b"',
    "the input itself": 'p if input.x == 1 with input.x as "b"',
    "a member of a replaced set": 's contains 1\np if s["a"] with data.t.s as {"a"}',
    "a member, with another input": 's contains 1\np if s["a"] with input.s as {"a"}',
    "a base document": 'p if data.u.x == "b" with data.u as {"x": "b"}',
    "every": 'p if every x in [1] { o.a == "b" } with data.t.o as {"a": "b"}',
    "a comprehension": 'p if [1 | o.a == "b"] == [1] with data.t.o as {"a": "b"}',
    "a function's operand": 'f(x) if x == o.a\np if f("b") with data.t.o as {"a": "b"}',
    "a package that holds the rule": 'p if data.t.o.a == "b" with data.t as {"o": {"a": "b"}}',
    "a built-in's operand": 'p if upper(1) == "b" with input as 1',
    "a variable that goes on": 'x := 1\np if y := upper(x) with data.t.x as "b"',
}


@pytest.mark.parametrize("subject", RULES)
def test_a_literal_with_modifiers_loads_where_opa_loads_it(subject: str, opa: Oracle):
    """The same refusals in the same words; and where it loads, the same results."""
    question = Question((f'package t\no := {{"a": 1}}\n{RULES[subject]}',), "data.t.p = x")
    mine, real = ours(question), theirs(opa, question)
    assert mine[0] == real[0]
    if mine[0] == "load":
        messages = [message.splitlines()[0] for _, message in mine[1]]
        assert messages == [message.splitlines()[0] for _, message in real[1]]
    else:
        assert set(mine[1]) == set(real[1])
