"""Variables of macros whose names are those of types, or begin with a point."""

import pytest

from tests.webhook.cel.evaluation import ENVIRONMENT, evaluate
from webhook.cel.engine import compile_expression
from webhook.cel.errors import CompileError, EvaluationError


@pytest.mark.parametrize(
    "test",
    [
        # A variable that holds a type is read as the type of its name, as in cel-go.
        "[map].map(int, int) == [int]",
        "[map].map(int, [int]) == [[int]]",
        "[map].map(string, [string].map(x, string)) == [[string]]",
        "[map].filter(bool, true) == [bool]",
        "![map].exists(int, int == map)",
        "[map].transformList(i, type, type) == [type]",
        "[map].transformMap(i, null_type, null_type) == {0: null_type}",
        "{int: 1}.transformMap(string, v, v) == {string: 1}",
        "dyn(optional.of(map).optMap(int, int).value()) == 'int'",
        "optional.of(map).optMap(int, 1).value() == 1",
        "[[map]].map(list, list.map(int, int)) == [[int]]",
        # A variable with another value, or an unknown type, is read as it is.
        "[1].map(int, int) == [1]",
        "[[map]].map(list, list) == [[map]]",
        "[dyn(map)].map(int, int) == [map]",
        "[map].map(int, [1].map(int, int)) == [[1]]",
        # A variable with a point before its name is hidden.
        "{'a': 1}.transformMap(.object, v, v) == {object: 1}",
        "{'a': 1}.transformMap(.object, v, object) == {object: object}",
        "[map].map(.int, int) == [int]",
        "[1].transformMap(.int, v, v) == {int: 1}",
        "optional.of(1).optMap(.object, object).value() == object",
        "dyn(optional.of(map).optMap(.int, int).value()) == 'int'",
    ],
)
def test_a_variable_is_read_by_its_name_as_in_kubernetes(test):
    assert evaluate(test, {"object": 7}) is True


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("[map].map(x, x)", "reference to undefined type: x"),
        ("[map].map(duration, duration)", "reference to undefined type: duration"),
        ("{int: 1}.transformMap(k, v, v)", "reference to undefined type: k"),
        ("{1: int}.transformMap(.timestamp, v, 1)", "reference to undefined type: timestamp"),
        ("optional.of(map).optMap(x, 1)", "reference to undefined type: x"),
        ("[map].map(int, object[int])", r"invalid qualifier type: \*types.Type"),
        ("[type(null)].map(x, x{})", "unknown type: x"),
    ],
)
def test_a_variable_that_holds_a_type_has_a_name_that_nobody_knows(source, message):
    with pytest.raises(CompileError, match=message):
        compile_expression(source, ENVIRONMENT)


@pytest.mark.parametrize("name", ["int", "map", "list", "null_type", "duration", "timestamp"])
def test_a_message_of_a_variable_is_looked_for_by_its_name_when_it_is_made(name):
    with pytest.raises(EvaluationError, match=f"unknown type '{name}'"):
        evaluate(f"[type(duration('1s'))].map({name}, {name}{{}})")
