"""The types of macros: what is empty has a type that its steps tell, as cel-go's checker finds it."""

import pytest

from webhook.cel.engine import checked_expression
from webhook.cel.errors import CompileError
from webhook.cel.kubernetes import admission

ENVIRONMENT = admission({}, params=True)


@pytest.mark.parametrize(
    ("source", "of"),
    [
        ("[].map(x, x)", "list(dyn)"),
        ("[].filter(x, x)", "list(bool)"),
        ("[].map(x, x, [x])", "list(list(bool))"),
        ("[[]].map(x, x + [1])", "list(list(int))"),
        ("[].transformList(i, x, x, i)", "list(int)"),
        ("{}.transformMap(a, b, a, a)", "map(bool, bool)"),
        # What a test binds is bound before anybody asks for a key.
        ("{}.transformMap(a, b, a, a)[object.x]", "bool"),
        ("{}.transformMap(a, b, b, [a])[object.x]", "list(dyn)"),
        ("{}.transformMapEntry(a, b, a, {a: b})", "map(bool, dyn)"),
        ("{'a': 1}.transformMapEntry(k, v, {v: k})", "map(int, string)"),
        ("[].exists_one(x, x)", "bool"),
        ("[2, 1].sortBy(x, x)", "list(int)"),
    ],
)
def test_what_a_macro_makes_has_the_type_that_its_steps_tell(source, of):
    assert checked_expression(source, ENVIRONMENT).type.text == of


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("[[]].filter(x, x)", r"'_\?_:_' applied to '\(list\(dyn\), "),
        ("[1].map(x, 5, x)", r"'_\?_:_' applied to '\(int, list\(int\), list\(int\)\)'"),
        ("{1: 2}.transformMapEntry(k, v, 5)", r"@mapInsert' applied to '\(map\(dyn, dyn\), int\)'"),
        ("[1].transformMap(i, x, 'a', x)", r"applied to '\(string, map\(int, int\), map\(int, int"),
        ("[1].exists_one(x, x)", r"'_\?_:_' applied to '\(int, int, int\)'"),
        ("[1].all(x, x)", "expected type 'bool' but found 'int'"),
        # A macro reads its variable itself, where cel-go's own writes it.
        ("[1].transformMap(.x, v, v)", "1:17: undeclared reference to '.x'"),
        (
            "[1].transformMap(.int, v, v) + 1",
            r"'_\+_' applied to '\(map\(type\(int\), int\), int\)'",
        ),
        ("optional.of(1).optMap(.int, 1)", "1:22: expected type 'int' but found 'type.int.'"),
        ("[1].all(__result__, __result__, true)", "duplicate variable name: __result__"),
        ("[1].all(__result__, 1, true)", "1:21: argument must be a simple name"),
    ],
)
def test_a_step_that_does_not_fit_is_told_as_the_call_that_cel_go_writes_for_it(source, told):
    with pytest.raises(CompileError, match=told):
        checked_expression(source, ENVIRONMENT)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("object && .map", r"1:12: expected type 'bool' but found 'type\(map\(A, B\)\)'"),
        ("list.all(x, x)", r"expression of type 'type\(list\(A\)\)' cannot be range"),
        ("optional_type.x", r"type 'type\(optional_type\)' does not support field selection"),
        ("[map].map(x, x.y)", r"type 'type\(map\(A, B\)\)' does not support field selection"),
        ("map + 1", r"applied to '\(type\(map\(dyn, dyn\)\), int\)'"),
        ("[list, map]", r"expected type 'type\(list\(dyn\)\)' but found 'type\(map\(dyn, dyn\)\)'"),
    ],
)
def test_what_a_type_is_made_of_is_left_open_by_its_name(source, told):
    with pytest.raises(CompileError, match=told):
        checked_expression(source, ENVIRONMENT)
