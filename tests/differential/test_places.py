"""Places of a policy's faults: OPA's line and column."""

import pytest

from tests.differential.oracle import Oracle
from webhook.rego.builtins.registry import GATEKEEPER, LATEST
from webhook.rego.engine import CompileOptions, EvaluationContext, compile_modules
from webhook.rego.errors import EvaluationError, RegoErrors
from webhook.rego.syntax.parser import parse_module

BY_NAME = """package t
named[c.name] := c if some c in input.a
named[c.name] := c if some c in input.b
named[c.name] := c if some c in input.c
nested.in[c.name] := c if some c in input.a
nested[x][c.name] := c if { some x in ["in", "out"]; some c in input.b }
nested[x][c.name] := c if {
	x := "out"
	some c in input.c
}
f(c) := 1 if c.z > 0
f(c) := 2 if c.z > 1
g(c) := 1 if { c.z > 5 } else := 2
g(c) := 3 if c.z > 2
h(c) := v if some v in c
"""
QUESTIONS = {
    "whole": "named",
    "one name": "named.x",
    "each": "[v | v := named[_]]",
    "of two depths": "nested",
    "of two depths, a part": "nested.out",
    "an object of a comprehension": '{concat("", [n]): c | n := "a"; some c in [1, 2]}',
    "the same over lines": "{\n\tinput.a[0].name: c |\n\tsome c in [1, 2]}",
    "a function": "f({`z`: 3})",
    "a function with else": "g({`z`: 3})",
    "one body": "h([1, 2])",
}
INPUTS = {
    "in two rules": {"a": [{"name": "x"}], "b": [{"name": "x", "z": 1}], "c": []},
    "in one, and again": {
        "a": [{"name": "x"}, {"name": "x", "z": 1}],
        "b": [{"name": "x", "z": 2}],
        "c": [],
    },
    "of another name first": {
        "a": [{"name": "y"}],
        "b": [{"name": "x", "z": 1}, {"name": "x"}],
        "c": [{"name": "y", "z": 2}],
    },
    "of both": {
        "a": [{"name": "y"}, {"name": "y", "z": 3}],
        "b": [{"name": "x", "z": 1}, {"name": "x"}],
        "c": [{"name": "x"}, {"name": "y", "z": 2}],
    },
}


@pytest.mark.parametrize("input_value", INPUTS.values(), ids=INPUTS.keys())
@pytest.mark.parametrize("value", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_a_conflict_is_reported_where_opa_tells_it(value: str, input_value: dict, opa: Oracle):
    mine, real = conflicts(value, input_value, opa, LATEST)
    assert mine == real


@pytest.mark.parametrize("input_value", INPUTS.values(), ids=INPUTS.keys())
@pytest.mark.parametrize("value", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_a_conflict_is_reported_in_gatekeeper_s_words_and_where_it_tells_it(
    value: str, input_value: dict, older_opa: Oracle
):
    mine, real = conflicts(value, input_value, older_opa, GATEKEEPER)
    assert mine == real


def conflicts(
    value: str, input_value: dict, oracle: Oracle, level: str
) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Code, place and message of the conflict, without the values that newer ones list below."""
    source = f"{BY_NAME}q := {value}\n"
    real = oracle.ask(
        op="eval", modules=[source], version="v1", query="data.t.q = x", input=input_value
    )
    options = CompileOptions(level=level)
    program = compile_modules([parse_module(source, "t.rego", "v1")], options=options)
    found: list[tuple[str, ...]] = []
    try:
        program.rule("data.t.q")(input_value, {}, EvaluationContext())
    except EvaluationError as error:
        place = str(error.location.row), str(error.location.col)
        found = [(error.code, *place, error.message)]
    return found, [
        (one["code"], one["row"], one["col"], one["message"].partition(":\n")[0])
        for one in real.get("errors", [])
    ]


UNSAFE = (
    "p := x if true",
    "p := [1, y] if { true }",
    "p contains z if true",
    "p[k] := v if { true }",
    'f(x) := {\n\t"a": u,\n} if x',
    "h[i].b[j] := 1 if true",
    "p := count(m) if true",
    "p := {x | zz} if true",
    "p if true else := q",
)


@pytest.mark.parametrize("rule", UNSAFE)
def test_an_unsafe_variable_of_a_head_is_reported_where_it_stands(rule: str, opa: Oracle):
    source = f"package t\n{rule}\n"
    real = opa.ask(op="eval", modules=[source], version="v1", query="true")
    with pytest.raises(RegoErrors) as refused:
        compile_modules([parse_module(source, "t.rego", "v1")])
    assert {
        (error.message, str(error.location.row), str(error.location.col))
        for error in refused.value.errors
    } == {(error["message"], error["row"], error["col"]) for error in real["errors"]}


REFERENCES = (
    "p := [][0]",
    "p := f(1).foo",
    'p := split(input.x, "/")[0].foo',
    "p if { x := 1; not [x, {2}][0].foo }",
    'p := {\n\t"a": q,\n\t"b": q.foo,\n}',
    "p := [1, 2][count([\n\t1])].foo",
    "p contains q[_]",
    "p if { every x in [1] {\n\tx == q.foo } }",
)


@pytest.mark.parametrize("rule", REFERENCES)
def test_a_reference_to_nothing_is_reported_where_it_stands_and_as_it_was_written(
    rule: str, opa: Oracle
):
    source = f"package t\n{rule}\nq := 1\nf(_) := 1\n"
    real = opa.ask(op="eval", modules=[source], version="v1", query="true")
    with pytest.raises(RegoErrors) as refused:
        compile_modules([parse_module(source, "t.rego", "v1")])
    assert {
        (error.message, str(error.location.row), str(error.location.col))
        for error in refused.value.errors
    } == {(error["message"], error["row"], error["col"]) for error in real["errors"]}
