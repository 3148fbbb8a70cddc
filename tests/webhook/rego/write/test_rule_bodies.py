"""Rules that begin alike share the writing of their beginning, and nothing else."""

import ast

import pytest

from tests.webhook.rego.written import written
from webhook.rego.check import ir
from webhook.rego.engine import EvaluationContext, compile_modules
from webhook.rego.errors import RegoError
from webhook.rego.location import NOWHERE
from webhook.rego.run.text import to_json
from webhook.rego.syntax.parser import parse_module
from webhook.rego.write import alike


def evaluated(source, given, path="data.p.bad"):
    rule = compile_modules([parse_module(source, "m.rego", "v1")]).rule(path)
    return to_json(rule(given, {}, EvaluationContext()))


def loops_of(source, path="data.p.bad"):
    """Returns the number of loops written for a rule."""
    _, text = written(source, path)
    return sum(isinstance(node, ast.For) for node in ast.walk(ast.parse(text)))


CONTAINERS = """package p
bad contains msg if {
	some c in input.containers
	not exempt(c)
	not c.limits
	msg := sprintf("%s has no limits", [c.name])
}
bad contains text if {
	some container in input.containers
	not exempt(container)
	container.limits.cpu > 4
	text := sprintf("%s has too much", [container.name])
}
bad contains name if {
	some c in input.others
	name := c.name
}
exempt(c) if startswith(c.image, "trusted/")
"""


def test_rules_that_go_through_the_same_containers_go_through_them_once():
    assert loops_of(CONTAINERS) == 2


def test_each_rule_finds_what_it_found_alone():
    containers = [
        {"name": "a", "image": "x"},
        {"name": "b", "image": "x", "limits": {"cpu": 9}},
        {"name": "c", "image": "trusted/x"},
        {"name": "d", "image": "x", "limits": {"cpu": 1}},
    ]
    found = evaluated(CONTAINERS, {"containers": containers, "others": [{"name": "o"}]})
    assert sorted(found) == ["a has no limits", "b has too much", "o"]


def test_what_a_rule_is_called_by_another_name_in_does_not_leak_into_it():
    source = """package p
bad contains [x, y] if { some x in input.xs; x > 1; y := x + 1 }
bad contains [y, x] if { some y in input.xs; y > 1; x := y * 10 }
"""
    assert sorted(evaluated(source, {"xs": [1, 2, 3]})) == [[2, 3], [2, 20], [3, 4], [3, 30]]


def test_a_key_that_only_a_later_rule_wants_is_there_for_it():
    source = """package p
bad contains value if { value := input.xs[i]; value > 1 }
bad contains j if { value := input.xs[j]; value > 1; j > 0 }
"""
    assert sorted(evaluated(source, {"xs": [5, 1, 7]})) == [2, 5, 7]


def test_two_variables_of_a_rule_are_not_one_of_another():
    source = """package p
bad contains 1 if { input.a[x] == input.b[x]; x > 5 }
bad contains 2 if { input.a[x] == input.b[y]; x > 5 }
bad contains 3 if { input.a[x] == input.b[_]; x > 5 }
"""
    given = {"a": {"7": 1}, "b": [1]}
    source = source.replace("x > 5", 'x == "7"')
    assert sorted(evaluated(source, given)) == [2, 3]


def test_a_rule_that_can_never_hold_leaves_the_others():
    source = """package p
bad contains "never" if { some x in input.xs; x > 1; 1 == 2 }
bad contains x if { some x in input.xs; x > 1; 2 == 2 }
"""
    assert evaluated(source, {"xs": [1, 2]}) == [2]
    never = """package p
bad contains "never" if { some x in input.xs; x > 1; 1 == 2 }
bad contains "nor" if { some x in input.xs; x > 1; 3 == 2 }
"""
    assert evaluated(never, {"xs": [1, 2]}) == []


@pytest.mark.parametrize("depth", [3, 14, 16, 17, 20, 40])
def test_beginnings_of_many_loops_and_conditions_end_where_they_should(depth):
    """CPython's bounds of blocks and indentation are met inside of what is shared."""
    loops = "\n".join(f"some x{i} in input.xs; x{i} > 0" for i in range(min(depth, 20)))
    conditions = "\n".join(f"input.y[{i}] != {i + 1}" for i in range(depth))
    source = f"""package p
bad contains 1 if {{ {loops}
{conditions}
input.a > 1 }}
bad contains 2 if {{ {loops}
{conditions}
input.b > 1 }}
bad contains 3 if {{ {loops}
{conditions}
some z in input.xs
z == input.c }}
"""
    given = {"xs": [1], "y": [0] * depth, "a": 1, "b": 2, "c": 1}
    assert sorted(evaluated(source, given)) == [2, 3]
    assert sorted(evaluated(source, given | {"a": 2, "b": 1})) == [1, 3]
    assert sorted(evaluated(source, given | {"a": 2, "y": [1] * depth})) == []


def test_functions_share_what_their_bodies_begin_with_and_agree_on_a_value():
    source = """package p
bad contains f(x) if { some x in input.xs }
f(v) := 1 if { not is_number(v); v == "one" }
f(v) := 2 if { not is_number(v); v == "two" }
f(v) := v if { is_number(v) }
"""
    assert sorted(evaluated(source, {"xs": ["one", "two", 7, "three"]})) == [1, 2, 7]
    disagreeing = source + "f(v) := 3 if { is_number(v); v == 7 }"
    with pytest.raises(RegoError, match="eval_conflict_error"):
        evaluated(disagreeing, {"xs": [7]})


def test_each_rule_prints_what_it_prints():
    source = """package p
bad contains 1 if { print("a", input.x); input.x == 1 }
bad contains 2 if { print("a", input.x); input.x == 2 }
"""
    rule = compile_modules([parse_module(source, "m.rego", "v1")]).rule("data.p.bad")
    lines = []
    rule({"x": 1}, {}, EvaluationContext(print_=lambda _, text: lines.append(text)))
    assert len(lines) == 2


def test_a_turn_of_a_shared_loop_is_paid_for_by_each_rule():
    assert ") * 2" in written(CONTAINERS, "data.p.bad")[1]


def call(name, *args):
    return ir.Call(name, list(args), NOWHERE)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ir.Const(1), ir.Const(1.0)),
        (ir.Const(1), ir.Const(True)),
        (ir.Const([1]), ir.Const([True])),
        (ir.Const({"a": 1}), ir.Const({"a": 2})),
        (ir.Var("input"), ir.Var("x")),
        (ir.Var("x"), ir.Var("$1")),
        (ir.Ref(ir.Var("x"), [ir.Const("a")]), ir.Ref(ir.Var("x"), [ir.Const("b")])),
        (ir.Array([ir.Var("x"), ir.Var("y")]), ir.Array([ir.Var("x"), ir.Var("x")])),
        (ir.Array([ir.Var("x"), ir.Var("x")]), ir.Array([ir.Var("x"), ir.Var("y")])),
        (ir.Array([ir.Var("x")]), ir.Set([ir.Var("x")])),
        (ir.Given("v1"), ir.Given("v1")),
        (ir.Template(["a"]), ir.Template(["a"])),
    ],
)
def test_terms_that_differ_are_not_alike(one, other):
    assert not alike.terms(one, other, {})


def test_literals_that_are_seen_from_outside_or_changed_by_with_are_never_alike():
    modifier = ir.With(("input",), "input", ir.Const(1), None, NOWHERE)
    assert alike.literals(call("f", ir.Var("x")), call("f", ir.Var("y")), {})
    assert not alike.literals(call("trace", ir.Const("x")), call("trace", ir.Const("x")), {})
    changed = call("f", ir.Var("x"))
    changed.withs = [modifier]
    assert not alike.literals(changed, changed, {})
    negated = call("f", ir.Var("x"))
    negated.negated = True
    assert not alike.literals(negated, call("f", ir.Var("x")), {})
    assert not alike.literals(ir.Print([], NOWHERE), ir.Print([], NOWHERE), {})
