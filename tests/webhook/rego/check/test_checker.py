"""Impossible types are refused at load; types that may work are not."""

import pytest

from webhook.rego.builtins.registry import GATEKEEPER
from webhook.rego.engine import CompileOptions, compile_modules
from webhook.rego.errors import RegoErrors
from webhook.rego.syntax.parser import parse_module, parse_query


def load(source, version="v1", **options):
    """Compile one module."""
    module = parse_module(f"package a\n{source}", "f.rego", version)
    return compile_modules([module], options=CompileOptions(**options))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("p := lower(1)", "lower: invalid argument(s)"),
        ('p := sum([1, x]) if x := "a"', "sum: invalid argument(s)"),
        ('p if 1 == "a"', "match error"),
        ('p if { x := 1; x == "a" }', "match error"),
        ("p if [1, 2] == [1]", "match error"),
        ('p if {"a": 1} == {"b": 1}', "match error"),
        ('p if "a" in [1, 2]', "match error"),
        ('p if { x := {"a": 1}; x.b }', "undefined ref: x.b"),
        ("p if { x := 1; x.b }", "undefined ref: x.b"),
        ("p if { x := [1]; x.b }", "undefined ref: x.b"),
        ("p if { x := {}; x.b }", "undefined ref: x.b"),
        ('p if { x := []; i := "a"; x[i] }', "undefined ref: x[i]"),
        ("default d := {}\np if d.b", "undefined ref: data.a.d.b"),
        ("p if { some 1 in 2 }", "match error"),
        ("p if { some [x] in 2 }", "match error"),
        ('q := {"a": {"b": 1}}\np := q.a.c', "undefined ref: data.a.q.a.c"),
        ("f(x) := x\np := f", "function data.a.f used as reference, not called"),
        ("f(x) := lower(x)\np := f(1)", "data.a.f: invalid argument(s)"),
        ("f := 1\np := f()", "undefined function data.a.f"),
        ("f(_) := 1\ng(_, _) := 1\np if f(1) with f as g", "data.a.f: arity mismatch"),
        ("p := count([x | x := lower(1)])", "lower: invalid argument(s)"),
        ("p := lower(1, 2, 3)", "lower: arity mismatch"),
    ],
)
def test_what_no_data_could_make_work_is_refused(source, message):
    """With OPA's code and words."""
    with pytest.raises(RegoErrors) as caught:
        load(source)
    first = caught.value.errors[0]
    assert (first.code, first.message) == ("rego_type_error", message)


@pytest.mark.parametrize(
    "source",
    [
        "p := lower(input.x)",
        'p if input.x == 1\nq if input.x == "a"',
        "p if data.other.x == 1",
        'q contains 1\nq contains "a"\np if "a" in q',
        'q[x] := 1 if some x in ["a"]\np if q.b == 1',
        'f(x) := 1 if x == 1\nf(x) := 2 if x == "a"\np := f("b")',
        'b := true\np if { x := data.a.b with data.a.b as "s"; lower(x) == "s" }',
        'p if { x := [1, "a"][_]; x == "a" }',
        'p := {"a": 1, input.k: "b"}.c',
        "p if every x in [] { x == 1 }",
        "p if { some x in []; x.b.c }",
        "p if { some i, x in []; i.b; startswith(x, i) }",
        "q := set()\np := [lower(x) | q[x]]",
        'p if { x := {}; i := "a"; x[i] }',
        'p if { set()[x]; x == "a" }',
        "p if { some x in 1; x.b }",
        'default d := {"e": []}\np if d.e[0].b\nq if p with data.a.d as {"e": [1]}',
        "p := [y | some x in input.xs; y := x.a.b[_]]",
        'default p := 1\np := "a" if input.x',
        "p := set() | {1}",
        "p if walk(input, [path, value])",
    ],
)
def test_what_may_work_is_accepted(source):
    """Types of input and base documents are unknown, and rules of one name may differ."""
    assert load(source) is not None


@pytest.mark.parametrize(
    "body",
    [
        "exempt[0] == 1",
        "x := {}; x.a.b == 1",
        '[[], {"a": set()}] == [[1], {"a": {2}}]',
    ],
)
def test_what_is_empty_may_hold_anything_in_a_template(body):
    """Lists that nobody has filled yet are common there, and Gatekeeper's OPA lets them through."""
    source = f"exempt := []\np if {{ {body} }}"
    assert load(source, level=GATEKEEPER) is not None
    with pytest.raises(RegoErrors, match=r"undefined ref|match error"):
        load(source)


def test_an_error_says_what_was_given_and_wanted():
    """The message is OPA's."""
    with pytest.raises(RegoErrors) as caught:
        load('p := concat(",", 1)')
    assert str(caught.value) == (
        "1 error occurred: f.rego:2: rego_type_error: concat: invalid argument(s)\n"
        "\thave: (string, number, ???)\n"
        "\twant: (delimiter: string, collection: any<array[string], set[string]>, output: string)"
    )


def test_a_reference_error_points_at_the_place():
    """It lists the existing keys."""
    with pytest.raises(RegoErrors) as caught:
        load('q := {"b": 1, "c": 2}\np := q.d')
    assert caught.value.errors[0].details == (
        "data.a.q.d",
        "         ^",
        '         have: "d"',
        '         want (one of): ["b" "c"]',
    )


@pytest.mark.parametrize(
    ("source", "reference"),
    [
        ("p := [][0]", "[][0]"),
        ("p if { x := 1; [x][0].foo }", "[x][0].foo"),
        ('p := {"a": {1}}.a.b', '{"a": {1}}.a.b'),
        ('p := split(input.x, "/")[0].foo', 'split(input.x, "/")[0].foo'),
        ("p := [1, 2][count([1])].foo", "[1, 2][count([1])].foo"),
        ("p if { some x in (1 + 2); x }", "plus(1, 2)[_]"),
        ("p := [y | some y in [1]][0].foo", "[y | some y in [1]][0].foo"),
    ],
)
def test_a_reference_into_what_a_term_computes_is_shown_as_it_was_written(source, reference):
    with pytest.raises(RegoErrors) as caught:
        load(source)
    assert caught.value.errors[0].message == f"undefined ref: {reference}"


def test_a_reference_error_is_where_the_reference_stands():
    """Its literal may begin lines above."""
    with pytest.raises(RegoErrors) as caught:
        load('q := 1\np := x if {\n\tx := {\n\t\t"a": 1,\n\t\t"b": q.foo,\n\t}\n}')
    assert caught.value.errors[0].location.position() == ("f.rego", 6, 8)


def test_a_query_is_checked_against_the_rules():
    """The query has the types of the rules."""
    program = load("q := 1")
    with pytest.raises(RegoErrors, match="match error"):
        program.query(parse_query('data.a.q == "x"'))


def test_nested_comprehensions_are_checked_in_bounded_time():
    """Each is typed anew for every use of those around it, up to a limit."""
    source = "input.x"
    for _ in range(25):
        source = f"[y | y := {source}; y == [z | z := y]]"
    assert load(f"p := {source}") is not None


@pytest.mark.parametrize(
    ("source", "code", "message"),
    [
        (
            "import data.x\nimport input.x",
            "rego_compile_error",
            "import must not shadow import data.x",
        ),
        (
            "input := 1",
            "rego_compile_error",
            "rules must not shadow input (use a different rule name)",
        ),
        (
            "f(data) := 1",
            "rego_compile_error",
            "args must not shadow data (use a different variable name)",
        ),
        (
            "p if input := 1",
            "rego_compile_error",
            "variables must not shadow input (use a different variable name)",
        ),
        (
            "p := any([true])",
            "rego_type_error",
            "deprecated built-in function calls in expression: any",
        ),
    ],
)
def test_v1_refuses_what_v0_lets_pass(source, code, message):
    """Shadowed roots and imports, and built-ins on their way out."""
    with pytest.raises(RegoErrors) as caught:
        load(source)
    assert (code, message) in [(error.code, error.message) for error in caught.value.errors]


def test_v0_lets_pass_what_v1_refuses():
    """Also modules that redefine the built-in."""
    assert load("import data.x\nimport input.x\np = any([true])", "v0") is not None
    assert load("any(xs) := true in xs\np := any([true])") is not None


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("p if { some x; true }", "declared var x unused"),
        ("p if every k, v in [1] { v > 0 }", "declared var k unused"),
        ("p := [1 | some x; true]", "declared var x unused"),
        ("p if not q(1)\nq(_) if { some i; true }", "declared var i unused"),
    ],
)
def test_what_is_declared_in_vain_is_refused(source, message):
    """In every version of the language."""
    with pytest.raises(RegoErrors) as caught:
        load(source)
    assert message in [error.message for error in caught.value.errors]


@pytest.mark.parametrize(
    "source",
    [
        "p if { some x; input[x] }",
        "p[x] := 1 if { some x; input[x] }",
        "p if every _, v in [1] { v > 0 }",
    ],
)
def test_what_is_used_somewhere_is_accepted(source):
    """In the head, in another literal, or not at all when it is a wildcard."""
    assert load(source) is not None


def test_what_no_modifier_can_replace_is_reported_before_functions_that_do_not_exist():
    with pytest.raises(RegoErrors) as caught:
        load("p := nothing(1)\nq := 1 if p with also.nothing as 2")

    assert [error.message for error in caught.value.errors] == [
        "with keyword target must reference existing input, data, or a function"
    ]
