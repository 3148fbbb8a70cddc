"""The Python that is generated: nothing of a policy's text in it, and no bound of CPython's met."""

import ast
import re

import pytest

from tests.webhook.rego.written import written
from webhook.rego.engine import UNDEFINED, EvaluationContext, compile_modules
from webhook.rego.run.text import to_json
from webhook.rego.syntax.parser import parse_module, parse_query
from webhook.rego.write.generate import NAMESPACE

HOSTILE = [
    "__import__",
    "S",
    "U",
    "X",
    "E",
    "path",
    "index",
    "out",
    "v1",
    "p0",
    "k0",
    "b0",
    "lambda",
    "None",
    "class",
    "__builtins__",
    "d0",
]
GENERATED = re.compile(r"[a-zA-Z]\d+(?:[exyz]\d*)*|[A-Z]")


def names_in(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name


def hostile_policy(name):
    return f"""package evil
import data.lib.{name} as other{name}
{name}_rule contains {name} if {{
	some {name} in input.items
	{name} != "x"
	f{name}({name})
}}
f{name}({name}) if {name} != "\\"\\"\\"'''\\n__import__('os')"
f{name}({name}) := x if {{
	x := [{name} | {name}]
	false
}}
p[{name}] := {name} if some {name} in input.items
q if every {name} in input.items {{ {name} != 5 }}
r := $"{{input.items}} \\{{__import__}}"
"""


@pytest.mark.parametrize("name", [n for n in HOSTILE if n not in {"None", "lambda", "class"}])
def test_names_of_a_policy_never_become_names_in_the_source(name):
    rule, text = written(hostile_policy(name), "data.evil")
    found = to_json(rule({"items": ["a", "b"]}, {}, EvaluationContext()))
    assert found[f"{name}_rule"] == ["a", "b"]
    assert found["p"] == {"a": "a", "b": "b"}
    allowed = NAMESPACE.keys() | NAMESPACE["__builtins__"].keys()
    for used in names_in(ast.parse(text)):
        known = used in allowed or used in {"out", "v", "m", "e", "q"}
        assert known or GENERATED.fullmatch(used), used


@pytest.mark.parametrize(
    "text",
    [
        "'''; import os; '''",
        '"""\\n__import__("os").system("false")\\n"""',
        "{__import__('os')}",
        "%s %v {0} \\\\",
        "\\u0000\\u2028\\ud83d\\ude00",
        "\\r\\n#",
        "}{",
    ],
)
def test_texts_of_a_policy_stay_texts(text):
    quoted = text.replace("\\\\", "\\").replace("\\", "\\\\").replace('"', '\\"')
    source = f"""package evil
p["{quoted}"] := "{quoted}"
q := input["{quoted}"]
r := sprintf("{quoted.replace("%", "%%")} %v", [input.x])
s := "{quoted}" in {{"{quoted}", "b"}}
t := replace("{quoted}", "{quoted}", "z")
"""
    rule, python = written(source, "data.evil")
    plain = quoted.replace('\\"', '"').replace("\\\\", "\\")
    found = to_json(rule({plain: 1, "x": 2}, {}, EvaluationContext()))
    assert found["p"] == {plain: plain}
    assert (found["q"], found["s"], found["t"]) == (1, True, "z")
    assert found["r"] == f"{plain} 2"
    assert not any(isinstance(node, ast.Import) for node in ast.walk(ast.parse(python)))


def test_generated_code_reaches_no_builtin_of_python_that_it_does_not_need():
    reachable = NAMESPACE["__builtins__"]
    assert not {"__import__", "open", "eval", "exec", "getattr", "compile"} & reachable.keys()


@pytest.mark.parametrize("count", [5, 60, 400])
def test_a_body_may_have_any_number_of_literals(count):
    lines = "\n".join(
        f'\tx{i} := upper(sprintf("%d", [input.n + {i}]))\n\tnot x{i} == "y"' for i in range(count)
    )
    rule = compile_modules(
        [parse_module(f"package a\np := x{count - 1} if {{\n{lines}\n}}", "m", "v1")]
    ).rule("data.a.p")
    assert rule({"n": 0}, {}, EvaluationContext()) == str(count - 1)


def test_iterations_may_be_nested_as_deep_as_anyone_writes():
    lines = "\n".join(f'\tsome x{i} in input.xs\n\tupper(x{i}) != "B"' for i in range(15))
    rule = compile_modules(
        [parse_module(f"package a\np contains x14 if {{\n{lines}\n}}", "m", "v1")]
    ).rule("data.a.p")
    assert to_json(rule({"xs": ["a"]}, {}, EvaluationContext())) == ["a"]


def test_negations_may_be_nested():
    body = "input.x == 1"
    for _ in range(12):
        body = f"count([1 | {body}]) == 1"
    rule = compile_modules([parse_module(f"package a\np if {{ {body} }}", "m", "v1")]).rule(
        "data.a.p"
    )
    assert rule({"x": 1}, {}, EvaluationContext()) is True
    assert rule({"x": 2}, {}, EvaluationContext()) is UNDEFINED


def test_a_query_s_names_are_texts_too():
    program = compile_modules([])
    query = program.query(parse_query('__import__ = 1; S := 2; v1 = "out"'))
    assert query(UNDEFINED, {}, EvaluationContext()) == [{"__import__": 1, "S": 2, "v1": "out"}]


def test_a_policy_may_have_thousands_of_rules():
    rules = "\n".join(f'r{i} contains "x" if input.a{i}.b == {i}' for i in range(2_000))
    rule = compile_modules([parse_module(f"package a\n{rules}", "m", "v1")]).rule("data.a.r1999")
    assert to_json(rule({"a1999": {"b": 1999}}, {}, EvaluationContext())) == ["x"]
