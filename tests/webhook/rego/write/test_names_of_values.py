"""Rules that only name a constant or a path: read in place, wherever they are asked."""

import pytest

from tests.webhook.rego.written import written
from webhook.rego.engine import EvaluationContext, compile_modules
from webhook.rego.run.text import to_json
from webhook.rego.syntax.parser import parse_module

NAMES = """package a
prefix := "x/"
allowed := ["x/1", "x/2"]
default strict := false
object := input.review.object
labels := object.metadata.labels
"""


def value(body, input_value):
    module = parse_module(NAMES + body, "m.rego", "v1")
    found = compile_modules([module]).rule("data.a.r")(input_value, {}, EvaluationContext())
    return to_json(found)


LABELLED = {"review": {"object": {"metadata": {"labels": {"a": "x/1", "b": False}}}}}


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("r contains k if { some k, v in labels; startswith(v, prefix) }", ["a"]),
        ("r contains v if { some v in allowed }", ["x/1", "x/2"]),
        ("r := allowed[1]", "x/2"),
        ("r := object.metadata.labels.a", "x/1"),
        ("r := [x | some x in allowed; x == labels[_]]", ["x/1"]),
        ("r if not labels.b", True),
        ("r if not labels.c", True),
        ("r if not strict", True),
        ("r := data.a.object.metadata", LABELLED["review"]["object"]["metadata"]),
        ("r := [y | y := prefix with data.a.prefix as 1]", [1]),
        ("r := [y | y := labels with data.a.object as {}]", []),
        ('r if labels.a == 7 with input.review.object.metadata.labels as {"a": 7}', True),
        ("r := [y | y := strict with data.a.strict as 3]", [3]),
        ("r := {k: v | some k, v in {1: prefix, 2: labels.a}}", {1: "x/", 2: "x/1"}),
    ],
)
def test_a_name_means_what_it_names(body, found):
    expected = to_json(found) if not isinstance(found, dict) else found
    answer = value(body, LABELLED)
    assert answer == expected or answer == {str(key): item for key, item in expected.items()}


def test_what_is_not_there_has_no_name():
    for absent in ({}, {"review": {}}, {"review": {"object": {"metadata": 1}}}):
        assert value("r := [x | x := labels]", absent) == []
        assert value("r if not labels", absent) is True


def test_no_function_is_written_for_a_name():
    body = "r contains k if { some k, v in labels; startswith(v, prefix); not strict }"
    _, text = written(NAMES + body, "data.a.r")
    assert text.count("def ") == 1


@pytest.mark.parametrize("constant", ['"{}"', '{{"k": "{}"}}.k', '["{}"][0]'])
def test_a_large_constant_is_written_once_however_often_it_is_named(constant):
    rules = (f"r contains {i} if {{ input.y == {i}; input.x == big }}" for i in range(50))
    text = "x" * 10_000
    source = "\n".join(["package a", f"big := {constant.format(text)}", *rules])
    rule, python = written(source, "data.a.r")
    assert len(python) < 100_000
    assert to_json(rule({"y": 3, "x": text}, {}, EvaluationContext())) == [3]
