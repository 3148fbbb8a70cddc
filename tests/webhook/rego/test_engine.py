"""The engine's door: what callers of compile_modules, rules and queries rely on."""

from typing import Any

import pytest

from webhook.rego.builtins.registry import make_builtin
from webhook.rego.engine import (
    UNDEFINED,
    CompileOptions,
    EvaluationContext,
    Program,
    compile_modules,
)
from webhook.rego.errors import EvaluationError, RegoErrors
from webhook.rego.run.text import to_json
from webhook.rego.syntax.parser import parse_module, parse_query
from webhook.rego.types import ANY, NUMBER, STRING
from webhook.rego.write import inline as inline_forms


def program(*sources: str, version: Any = "v1", **options) -> Program:
    modules = [parse_module(source, f"m{i}.rego", version) for i, source in enumerate(sources)]
    return compile_modules(modules, options=CompileOptions(**options))


def value(source: str, path: str, input_value=UNDEFINED, data=None, **context):
    found = program(source).rule(path)(input_value, data or {}, EvaluationContext(**context))
    return found if found is UNDEFINED else to_json(found)


def test_a_rule_gives_its_value():
    assert value("package a\np := input.x + 1", "data.a.p", {"x": 2}) == 3


def test_a_rule_that_does_not_hold_is_undefined():
    assert value("package a\np if input.x", "data.a.p", {}) is UNDEFINED


def test_a_missing_input_is_undefined_and_no_error():
    assert value("package a\np if not input.x", "data.a.p") is True


def test_a_package_is_the_object_of_its_defined_rules():
    source = "package a\np := 1\nq := 2 if input.x\ns contains 3"
    assert value(source, "data.a", {}) == {"p": 1, "s": [3]}


def test_base_documents_and_rules_are_merged():
    source = "package a.b\np := 1"
    assert value(source, "data.a", {}, {"a": {"b": {"q": 2}, "c": 3}}) == {
        "b": {"p": 1, "q": 2},
        "c": 3,
    }


def test_a_path_without_rule_or_package_is_a_key_error():
    with pytest.raises(KeyError):
        program("package a\np := 1").rule("data.b.p")


def test_a_path_may_have_quoted_parts():
    found = program('package q["b-c"].d\np := 1\nr["e f"] := 2')
    assert found.rule('data.q["b-c"].d.p')(UNDEFINED, {}, EvaluationContext()) == 1
    assert found.rule('data.q["b-c"].d.r["e f"]')(UNDEFINED, {}, EvaluationContext()) == 2


def test_has_rule_knows_rules_from_packages():
    found = program("package a.b\np := 1")
    assert found.has_rule("data.a.b.p")
    assert not found.has_rule("data.a.b")
    assert not found.has_rule("data.a.b.q")


def test_a_query_gives_every_solution_without_wildcards():
    query = program("package a\ns contains x if some x in [1, 2]").query(
        parse_query("data.a.s[x]; _ = x")
    )
    found = query(UNDEFINED, {}, EvaluationContext())
    assert sorted(solution["x"] for solution in found) == [1, 2]
    assert all(solution.keys() == {"x"} for solution in found)


def test_evaluations_of_one_program_do_not_share_documents():
    rule = program("package a\np := q\nq := input.x").rule("data.a.p")
    context = EvaluationContext()
    assert [rule({"x": n}, {}, context) for n in (1, 2)] == [1, 2]


def test_the_input_is_not_changed():
    document = {"items": [{"a": 1}, {"b": {"c": 2}}]}
    source = """package a
p contains x if some x in input.items
q := object.union(input.items[0], {"z": 1})
r if p with input.items as []
"""
    program(source).rule("data.a")(document, {}, EvaluationContext())
    assert document == {"items": [{"a": 1}, {"b": {"c": 2}}]}


def test_a_disabled_builtin_is_an_undefined_function():
    with pytest.raises(RegoErrors, match=r"rego_type_error: undefined function http\.send"):
        program("package a\np := http.send({})", disabled_builtins=frozenset({"http.send"}))


def test_a_builtin_of_the_caller_is_called():
    double = make_builtin("double", [NUMBER], NUMBER, lambda x: 2 * x)
    found = program("package a\np := double(21)", builtins={"double": double})
    assert found.rule("data.a.p")(UNDEFINED, {}, EvaluationContext()) == 42


def test_a_builtin_of_the_caller_gets_the_evaluation_s_services():
    def ask(context, name):
        return context.services["answers"][name]

    builtin = make_builtin("ask", [STRING], ANY, ask, context=True)
    found = program('package a\np := ask("x")', builtins={"ask": builtin})
    context = EvaluationContext(services={"answers": {"x": [1]}})
    assert found.rule("data.a.p")(UNDEFINED, {}, context) == [1]


def test_a_complaint_of_a_builtin_is_undefined_unless_strict():
    source = "package a\np := 1 / input.x"
    assert value(source, "data.a.p", {"x": 0}) is UNDEFINED
    with pytest.raises(EvaluationError, match="eval_builtin_error: div: divide by zero") as info:
        value(source, "data.a.p", {"x": 0}, strict=True)
    assert (info.value.location.file, info.value.location.row) == ("m0.rego", 2)


def test_an_operand_of_the_wrong_type_is_a_type_error_when_strict():
    with pytest.raises(EvaluationError) as info:
        value('package a\np if startswith(input.x, "a")', "data.a.p", {"x": 1}, strict=True)
    assert info.value.code == "eval_type_error"
    assert "operand 1 must be string but got number" in str(info.value)


@pytest.mark.parametrize(
    ("level", "message"),
    [
        ("1.22", "rule data.a.p produced conflicting values"),
        ("1.17.1", "complete rules must not produce multiple outputs"),
    ],
)
def test_conflicting_values_are_reported_in_the_words_of_the_level(level, message):
    rule = program("package a\np := x if some x in [1, 2]", level=level).rule("data.a.p")
    with pytest.raises(EvaluationError, match=f"eval_conflict_error: {message}"):
        rule(UNDEFINED, {}, EvaluationContext())


@pytest.mark.parametrize(
    ("level", "message"),
    [
        ("1.22", "function data.a.f produced conflicting values for the same inputs"),
        ("1.17.1", "functions must not produce multiple outputs for same inputs"),
    ],
)
def test_a_function_with_two_values_is_reported_in_the_words_of_the_level(level, message):
    source = "package a\nf(x) := y if some y in x\np := f([1, 2])"
    rule = program(source, level=level).rule("data.a.p")
    with pytest.raises(EvaluationError, match=message):
        rule(UNDEFINED, {}, EvaluationContext())


def test_prints_go_to_the_sink_with_their_place():
    lines = []
    source = 'package a\np if {\n\tprint("x is", input.x, input.y)\n}'
    value(
        source,
        "data.a.p",
        {"x": {"k": [1]}},
        print_=lambda place, text: lines.append((place.row, text)),
    )
    assert lines == [(3, 'x is {"k": [1]} <undefined>')]


def test_every_query_has_one_time_and_the_seed_decides_chance():
    source = 'package a\np := [time.now_ns(), rand.intn("x", 1000000)]'
    first = value(source, "data.a.p", now_ns=5, seed=1)
    assert first == value(source, "data.a.p", now_ns=5, seed=1)
    assert first[0] == 5


# --- meanings that broke other engines ---------------------------------------------------------


def test_what_is_hoisted_out_of_not_must_be_defined():
    source = """package a
f(x) if x > 1
inside if not input.x > 1
call if not f(input.x)
nested if not f(f2(input.y))
f2(x) := x if x > 100
"""
    assert value(source, "data.a", {"y": 1}) == {}
    assert value(source, "data.a", {"x": 0, "y": 101}) == {
        "inside": True,
        "call": True,
    }


def test_a_reference_under_not_may_be_undefined():
    assert value("package a\np if not input.x.y.z", "data.a.p", {"x": [1]}) is True


def test_a_key_and_a_value_of_one_name_are_one_variable():
    source = "package a\np := [x | some x, x in [0, 2, 2]]\nq contains x if some [x, x] in [[1, 1], [1, 2]]"
    assert value(source, "data.a.p") == [0, 2]
    assert to_json(value(source, "data.a.q")) == [1]


def test_true_is_no_number():
    source = """package a
p contains x if some x in [1, true, 0, false, 1.0]
s := {1: "a", true: "b"}[true]
q if input.b == 1
"""
    assert value(source, "data.a", {"b": True}) == {"p": [False, True, 0, 1], "s": "b"}


def test_undefined_false_and_null_are_three_things():
    source = """package a
names := {"f", "n", "u"}
p contains k if {
	some k in names
	input[k]
}
q contains k if {
	some k in names
	not input[k]
}
r contains k if {
	some k in names
	is_null(input[k])
}
"""
    found = value(source, "data.a", {"f": False, "n": None})
    assert (found["p"], found["q"], found["r"]) == (["n"], ["f", "u"], ["n"])


def test_an_array_made_from_an_object_or_a_set_is_in_order():
    source = """package a
p := [v | some v in input.o]
q := [k | some k, _ in input.o]
r := [x | some x in {"b", 3, "a", null}]
"""
    assert value(source, "data.a", {"o": {"z": 1, "b": 2, "a": 3}}) == {
        "p": [3, 2, 1],
        "q": ["a", "b", "z"],
        "r": [None, 3, "a", "b"],
    }


def test_equal_members_found_twice_count_once():
    source = """package a
s contains {"k": x} if some x in input.x
s contains {"k": x} if some x in input.y
all := [m.k | some m in s]
total := sum([m.k | some m in s])
"""
    found = value(source, "data.a", {"x": [1, 2], "y": [2, 1]})
    assert found["all"] == [1, 2]
    assert found["total"] == 3


def test_members_are_sought_by_what_is_known_of_them():
    source = """package a
general contains {"field": f, "value": v} if some v in input[f]
general contains {"field": "fixed", "value": 9}
containers contains v if general[{"field": "containers", "value": v}]
fixed contains v if general[{"field": "fixed", "value": v}]
"""
    found = value(source, "data.a", {"containers": [1, 2], "volumes": [3]})
    assert found["containers"] == [1, 2]
    assert found["fixed"] == [9]


def test_modifiers_replace_and_then_give_back():
    source = """package a
x := input.x
p := [x, y] if {
	y := x with input.x as 2
}
f(_) := "f"
g(_) := "g"
q := [f(1), z] if z := f(1) with f as g
r := n if n := count([1]) with count as 7
base := data.d.e
s := [base, b] if b := base with data.d.e as 1
"""
    assert value(source, "data.a", {"x": 1}, {"d": {"e": 0}}) == {
        "x": 1,
        "p": [1, 2],
        "q": ["f", "g"],
        "r": 7,
        "base": 0,
        "s": [0, 1],
    }


def test_a_conflict_in_an_object_matters_only_to_those_who_ask_for_that_key():
    source = """package a
o[k] := v if some v, k in input.o
one := o.x
both := o
nested[a][b] := v if some [a, b, v] in input.n
inner := nested.p.q
"""
    document = {
        "o": {"1": "x", "2": "y", "3": "y"},
        "n": [["p", "q", 1], ["r", "s", 1], ["r", "s", 2]],
    }
    assert value(source, "data.a.one", document) == "1"
    assert value(source, "data.a.inner", document) == 1
    with pytest.raises(EvaluationError, match="eval_conflict_error: object keys must be unique"):
        value(source, "data.a.both", document)


def test_base_documents_are_found_by_number_as_opa_reads_them_from_storage():
    source = """package a
p := data.d[2]
q := [data.d[k] | some k in [1, 2]]
r := data.l[1]
"""
    data = {"d": {"2": "two"}, "l": ["zero", "one"]}
    assert value(source, "data.a", {}, data) == {"p": "two", "q": ["two"], "r": "one"}


@pytest.mark.parametrize("inline", [0, 4])
@pytest.mark.parametrize(
    ("template", "operands"),
    [
        ("plain", "[]"),
        ("%v and %v", "[input.s, input.n]"),
        ("%s|%s", "[input.s, input.n]"),
        ("%d %v", "[input.n, input.f]"),
        ("100%% of %v{braces}'quotes'", "[input.l]"),
        ("%v %v %s", "[input.o]"),
        ("%v", "[input.s, input.n]"),
        ("%5v|%q", "[input.s, input.s]"),
        ("%v%v%v", "[input.t, input.u, count(input.l)]"),
        ("%v-%v%%-%v-%v.", "[input.o, input.s, input.l, input.n]"),
        ("%v{%s}%v of %v", "['it', input.s, 3, input.n]"),
        ("%s%v%s", "[5, input.l, input.f]"),
        ("%v%%%v", "['a%sb', '{}']"),
    ],
)
def test_a_text_made_inline_is_the_one_that_the_builtin_makes(
    template, operands, inline, monkeypatch
):
    monkeypatch.setattr(inline_forms, "MAX_INLINE_TEXTS", inline)
    operands = operands.replace("'", '"')
    document = {
        "s": 'a\n"b"',
        "n": 12345678901234567890,
        "f": 1.5,
        "l": ["x", {"y": None}],
        "o": {"k": [True, {"z": "\\"}]},
        "t": False,
        "u": None,
        "template": template,
    }
    source = f"""package a
p := [
	sprintf("{template}", {operands}) == sprintf(input.template, {operands}),
	sprintf("{template}", {operands}),
]
"""
    same, text = value(source, "data.a.p", document)
    assert same, text
