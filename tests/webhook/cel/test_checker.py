"""The types of macros: what is empty has a type that its steps tell, as cel-go's checker finds it."""

import pytest

from webhook.cel.engine import checked_expression, compile_expression
from webhook.cel.errors import CompileError
from webhook.cel.kubernetes import admission

ENVIRONMENT = admission({}, params=True)
INVALID = "invalid argument to has() macro"


@pytest.mark.parametrize(
    ("source", "of"),
    [
        ("[].map(x, x)", "list(dyn)"),
        ("[].filter(x, x)", "list(bool)"),
        ("[].map(x, x, [x])", "list(list(bool))"),
        ("[[]].map(x, x + [1])", "list(list(int))"),
        ("[].transformList(i, x, x, i)", "list(int)"),
        ("{}.transformMap(a, b, a, a)", "map(bool, bool)"),
        # Names of a test are bound before a key is read.
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
    ("source", "message"),
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
def test_a_step_that_does_not_fit_is_reported_as_the_call_that_cel_go_writes_for_it(
    source, message
):
    with pytest.raises(CompileError, match=message):
        checked_expression(source, ENVIRONMENT)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("object && .map", r"1:12: expected type 'bool' but found 'type\(map\(A, B\)\)'"),
        ("list.all(x, x)", r"expression of type 'type\(list\(A\)\)' cannot be range"),
        ("optional_type.x", r"type 'type\(optional_type\)' does not support field selection"),
        ("[map].map(x, x.y)", r"type 'type\(map\(A, B\)\)' does not support field selection"),
        ("map + 1", r"applied to '\(type\(map\(dyn, dyn\)\), int\)'"),
        ("[list, map]", r"expected type 'type\(list\(dyn\)\)' but found 'type\(map\(dyn, dyn\)\)'"),
    ],
)
def test_what_a_type_is_made_of_is_left_open_by_its_name(source, message):
    with pytest.raises(CompileError, match=message):
        checked_expression(source, ENVIRONMENT)


def problems(source):
    with pytest.raises(CompileError) as refused:
        compile_expression(source, ENVIRONMENT)
    return [(one.column + 1, one.message) for one in refused.value.problems]


def test_what_is_wrong_with_the_target_of_opt_map_is_reported_as_often_as_the_macro_writes_it():
    undeclared = "undeclared reference to 'a' (in container '')"
    assert problems("optional.of(a).optMap(x, x)") == [(13, undeclared)] * 2
    assert problems("optional.of(a).optMap(x, x).optMap(y, y)") == [(13, undeclared)] * 4
    message = "invalid duration argument"
    assert problems("optional.of(duration('x')).optMap(x, 1)") == [(22, message)] * 2
    # A copy's fields are where the macro is.
    assert problems("optional.of(int{f: 1}).optMap(x, x)")[2:] == [
        (18, "undefined field 'f'"),
        (30, "undefined field 'f'"),
    ]


def test_targets_within_targets_are_not_checked_without_end():
    source = "optional.of(a)" + ".optMap(x, x)" * 40
    assert len(problems(source)) == 2**5


def test_problems_of_one_place_are_reported_as_they_were_found():
    assert problems("(1).optMap(x, x)") == [
        (11, "found no matching overload for 'hasValue' applied to 'int.()'"),
        (11, "found no matching overload for 'value' applied to 'int.()'"),
    ]
    assert problems("[1].map(has(has(i)), 1)") == [
        (17, INVALID),
        (17, INVALID),
        (17, "argument is not an identifier"),
    ]


def test_of_very_many_problems_the_first_hundred_are_reported():
    source = "[" + "x, " * 103 + "]"
    with pytest.raises(CompileError) as refused:
        compile_expression(source, ENVIRONMENT)
    assert len(refused.value.problems) == 100
    assert str(refused.value).endswith("^\n3 more errors were truncated")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("[in1].map(x, x{})", [(2, "undeclared reference to 'in1' (in container '')")]),
        ("[type(nope)].map(x, x{})", [(22, "'error' is not a message type")]),
        ("[type([])].map(x, x{})", [(20, "'list' is not a message type")]),
        ("[type(dyn(1))].map(x, x{a: 1})", [(26, "undefined field 'a'")]),
        (
            "[type(dyn(1))].map(int, int{number_value: 1})",
            [(41, "expected type of field 'number_value' is 'double' but provided type is 'int'")],
        ),
        (
            "[type(quantity('1'))].map(x, x{a: 1})",
            [(33, "unexpected failed resolution of 'kubernetes.Quantity'")],
        ),
        (
            "[type(request)].map(x, x{name: 1})",
            [(30, "expected type of field 'name' is 'string' but provided type is 'int'")],
        ),
    ],
)
def test_a_variable_that_holds_a_type_is_a_message_as_that_type_is(source, expected):
    assert problems(source)[-len(expected) :] == expected


def test_a_pattern_that_is_known_before_evaluation_is_read_then():
    with pytest.raises(CompileError, match="error parsing regexp: missing closing"):
        compile_expression("'a'.find(string(b'('))", ENVIRONMENT)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("object.`a/b` + has(1)", [(8, "unsupported syntax: '`'"), (20, INVALID)]),
        ("`a`", [(1, "Syntax error: mismatched input '`a`' expecting")]),
        ("a`b", [(2, "Syntax error: token recognition error at: '`b'")]),
        (
            "google.protobuf.Duration{a: 1, `b`: has(1)}",
            [(26, "unsupported syntax: '`'")],
        ),
        (".true", [(2, "Syntax error: mismatched input 'true' expecting IDENTIFIER")]),
        ("1 + '\\8'", [(5, "Syntax error: token recognition error at: ''")]),
        ("", [(0, "Syntax error: mismatched input '<EOF>' expecting")]),
    ],
)
def test_what_cannot_be_read_is_reported_where_it_stands(source, expected):
    found = problems(source)[: len(expected)]
    assert [at for at, _ in found] == [at for at, _ in expected]
    assert all(
        text.startswith(words) for (_, text), (_, words) in zip(found, expected, strict=True)
    )


def test_a_conversion_with_a_point_before_its_name_is_known_before_evaluation():
    with pytest.raises(
        CompileError,
        match="program instantiation failed: type conversion error from 'string' to 'int'",
    ):
        compile_expression(".int('x')", ENVIRONMENT)
    assert problems(".duration('x')") == [(11, "invalid duration argument")]


def test_nobody_looks_at_the_operands_of_a_reserved_word():
    assert problems("namespace(has(1), namespace)") == [(1, "reserved identifier: namespace")]
    assert problems("object.`a`{") == [
        (8, "unsupported syntax: '`'"),
        (11, "Syntax error: extraneous input '{' expecting <EOF>"),
    ]
