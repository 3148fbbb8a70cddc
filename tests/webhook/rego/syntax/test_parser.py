"""The grammar of v0 and v1: what is read, and what is refused with which words."""

import pytest

from tests.syntax_trees import unparse_module
from webhook.rego.errors import RegoErrors
from webhook.rego.syntax.ast import (
    Array,
    Boolean,
    Call,
    Expr,
    Head,
    Number,
    Ref,
    Rule,
    Set,
    String,
    TemplateString,
    Var,
)
from webhook.rego.syntax.parser import parse_module, parse_query, parse_ref
from webhook.rego.syntax.unparse import unparse, unparse_body


def rules(source, version="v1"):
    """The rules of a module as printed, one a line."""
    text = unparse_module(parse_module(f"package a\n{source}", "", version))
    return text.splitlines()[2:]


def term(source):
    """The only term of a query."""
    (literal,) = parse_query(source)
    return literal.term


@pytest.mark.parametrize(
    ("source", "printed"),
    [
        ("a + b * c - d", "a + (b * c) - d"),
        ("a | b & c", "(a | (b & c))"),
        ("a == b + 1", "a == (b + 1)"),
        ("x in xs", "(x in xs)"),
        ("k, v in xs", "(k, v in xs)"),
        ("f((k, v in xs), 1)", "f((k, v in xs), 1)"),
        ("-3", "-3"),
        ("-x.y", "0 - x.y"),
        ("-.5e3", "-.5e3"),
        ("{}", "{}"),
        ("set()", "set()"),
        ("{1,}", "{1}"),
        ("{,1}", "{1}"),
        ("{x | y}", "{x | y}"),
        ("{(x | y)}", "{(x | y)}"),
        ("{x | y, z}", "{(x | y), z}"),
        ("[x | y, z]", "[(x | y), z]"),
        ("{x: y | z}", "{x: y | z}"),
        ("{x + 1: y | z}", "{(x + 1): y | z}"),
        ("[x | some x in xs; x > 1]", "[x | some x in xs; x > 1]"),
        ("f(x).y[0](z)", "f(x).y[0](z)"),
        ("[1, 2][i]", "[1, 2][i]"),
        ('x["y"]["a-b"].if', 'x.y["a-b"]["if"]'),
        ("`a\\n`", '"a\\\\n"'),
        (r'"\u00e9\ud83d\ude00\ud800"', '"é😀\ufffd"'),
        ('$"a {x} {y + 1}\\{"', '$"a {x} {(y + 1)}\\{"'),
        ("$`a\n{x}`", '$"a\\n{x}"'),
    ],
)
def test_terms_are_read_as_opa_reads_them(source, printed):
    """Binding, ambiguities of braces, references on anything, and literals."""
    assert unparse_body(parse_query(source)) == printed


def test_a_parenthesis_on_a_new_line_begins_a_literal():
    """The parenthesis is no call of the line above."""
    body = parse_query("x\n(y)\n[z][0]")
    assert [unparse(literal.term) for literal in body] == ["x", "y", "[z][0]"]


def test_numbers_keep_their_text():
    """1.0 and 1 print differently."""
    assert term("[1.0, 1, 1e3]") == Array((Number("1.0"), Number("1"), Number("1e3")))


def test_operators_are_calls_of_their_built_ins():
    """A written call and an operator are the same tree."""
    assert term("a + b") == term("plus(a, b)") == Call(Var("plus"), (Var("a"), Var("b")))


def test_the_empty_set_is_a_set():
    """`set()` is no call of a function."""
    assert term("set()") == Set(())


def test_each_wildcard_is_a_variable_of_its_own():
    """Also where the parser tried another reading before."""
    assert term("[_, {_ | true}, {x[_]: 1}]") is not None
    names = [part.name for part in term("f(_, _)").args]
    assert names == ["$0", "$1"]


def test_template_parts_are_texts_and_terms():
    """Empty texts are left out."""
    assert term('$"{x}-{1}"') == TemplateString((Var("x"), "-", Number("1")))


@pytest.mark.parametrize(
    ("version", "source", "printed"),
    [
        ("v0", "p { x }", ["p { x }"]),
        ("v0", "p[x] { y }", ["p[x] { y }"]),
        ("v0", "p.q { y }", ['p["q"] { y }']),
        ("v0", "p[x] = y { z }", ["p[x] = y { z }"]),
        ("v0", "p.q.r[x] { z }", ["p.q.r[x] { z }"]),
        ("v0", "p { a } { b }", ["p { a }", "p { b }"]),
        ("v0", "p { a } else = 2 { b } else { c }", ["p { a } else = 2 { b } else { c }"]),
        ("v0", "f(x) = y { z }", ["f(x) = y { z }"]),
        ("v0", "f(_) { a } { b }", ["f(_) { a }", "f(_) { b }"]),
        ("v0", "default p = false", ["default p = false"]),
        ("v0", "p = 1\nq[1]\nf(x) = x", ["p = 1", "q[1]", "f(x) = x"]),
        ("v0", "import rego.v1\np if x", ["import rego.v1", "p if { x }"]),
        (
            "v0",
            "import future.keywords.contains\np contains x { y }",
            ['import future.keywords["contains"]', "p contains x { y }"],
        ),
        ("v1", "p if x", ["p if { x }"]),
        ("v1", "p if { x; y }", ["p if { x; y }"]),
        ("v1", "p if { x | y }", ["p if { {x | y} }"]),
        ("v1", "p if { (x | y) }", ["p if { (x | y) }"]),
        ("v1", "p if { x | y == z }", ["p if { {x | y == z} }"]),
        ("v1", "p if {}", ["p if { {} }"]),
        ("v1", 'p if {"a": x}.a == y', ['p if { {"a": x}.a == y }']),
        ("v1", "p contains x if y", ["p contains x if { y }"]),
        ("v1", "p.q contains x", ["p.q contains x"]),
        ("v1", "p[x] if y", ["p[x] if { y }"]),
        ("v1", "p[x].q[y] := z if w", ["p[x].q[y] := z if { w }"]),
        ("v1", "p := 1 if x else := 2 if y else := 3", None),
        ("v1", "default f(_, _) := 1", ["default f(_, _) := 1"]),
        ("v1", "p if every k, v in xs { v > k }", ["p if { every k, v in xs { v > k } }"]),
        ("v1", "p if some x", ["p if { some x }"]),
        ("v1", "p if not x with input.y as 1", ["p if { not x with input.y as 1 }"]),
        ("v1", "if.foo := 1", ["if.foo := 1"]),
        ("v1", "p if {\n with.x\n not.y == 1 }", ["p if { with.x; not.y == 1 }"]),
    ],
)
def test_rules_are_read_as_opa_reads_them(version, source, printed):
    """Heads, bodies, chains and branches of both versions."""
    found = rules(source, version)
    assert found == (printed or ["p := 1 if { x } else := 2 if { y } else := 3"])


@pytest.mark.parametrize(
    ("source", "printed"),
    [
        ("not { x; y }", "not { x; y }"),
        ("not x", "not { x }"),
        ("a and b or c", "{ { a } and { b } } or { c }"),
        ("a or b and c", "{ a } or { { b } and { c } }"),
        ("(a or b) and c", "{ { a } or { b } } and { c }"),
        ("{ a; b } and not c", "{ a; b } and { not { c } }"),
        ("a and b with input as 1", "{ a } and { b } with input as 1"),
        ("or(a, b)", "(a | b)"),
    ],
)
def test_logic_is_read_where_it_is_imported(source, printed):
    """`import rego.v2` brings and, or and bodies after not."""
    assert rules(f"import rego.v2\np if {{ {source} }}")[1:] == [f"p if {{ {printed} }}"]


def test_words_of_logic_are_names_where_it_is_not_imported():
    """`and` and `or` are no keywords of v1."""
    assert rules("p if { and; or }") == ["p if { and; or }"]


def test_the_head_of_a_set_and_of_a_key_differ():
    """v0's `p[x]` is a set with the member x; with a value it is an object with the key x."""
    member, keyed = parse_module("package a\np[x] { y }\np[x] = 1 { y }", "", "v0").rules
    body = (Expr(Var("y")),)
    assert member == Rule(Head(Ref(Var("p"), ()), key=Var("x")), body)
    assert keyed == Rule(Head(Ref(Var("p"), (Var("x"),)), value=Number("1")), body)


def test_a_v0_module_that_imports_v1_is_v1():
    """The checks of v1 apply to it from then on."""
    assert parse_module("package a\nimport rego.v1", "", "v0").version == "v1"
    assert parse_module("package a", "", "v0").version == "v0"


def test_the_package_begins_with_data():
    """Names of the package do not matter."""
    module = parse_module('package a.if["b-c"]')
    assert module.package == Ref(Var("data"), (String("a"), String("if"), String("b-c")))


def test_imports_keep_path_and_alias():
    """Keywords may be elements of a path."""
    module = parse_module("package a\nimport data.x.y as z\nimport input.if as w")
    assert [(unparse(one.path), one.alias) for one in module.imports] == [
        ("data.x.y", "z"),
        ('input["if"]', "w"),
    ]


def test_a_reference_in_text_is_read():
    """A lone name is one."""
    assert parse_ref("a") == Ref(Var("a"), ())
    with pytest.raises(RegoErrors, match="expected ref"):
        parse_ref("1")


V1_ERRORS = [
    ("package a\np { true }", "`if` keyword is required before rule body", 2, 1),
    ("package a\nf(x) { true }", "`if` keyword is required before function body", 2, 1),
    ("package a\np[x]", "`contains` keyword is required for partial set rules", 2, 1),
    ("package a\np.q.r", "rule must have value assignment and/or body declaration", 2, 1),
    ("package a\nevery := 1", "every keyword cannot be used for rule name", 2, 1),
    ("", "empty module", 0, 0),
    ("p := 1", "package expected", 1, 1),
    ("package a\npackage b", "unexpected package", 2, 1),
    ("package a\np if { x y }", "unexpected identifier token: expected \\n or ; or }", 2, 10),
    (
        "package a\np if { not some x }",
        "unexpected some keyword: illegal negation of 'some'",
        2,
        12,
    ),
    ("package a\np := 007", "unexpected number token: expected number without leading zero", 2, 6),
    ("package a\np := 1e99999999999", "unexpected number token: invalid float", 2, 6),
    ("package a\np := 0e99999999999999999999", "unexpected number token: invalid float", 2, 6),
    ("package a\np := 0.1e1000000", "number too big", 2, 6),
    ("package a\np := -1e40000", "number too big", 2, 7),
    (f"package a\np := {'1' * 30104}", "number too big", 2, 6),
    ("package a\nimport foo.bar", None, 2, 8),
    ("package a\nimport future.keywords.foo", None, 2, 8),
    ("package a\nimport data.if", None, 2, 13),
    ("package a\ndefault p := x", "illegal default rule (value cannot contain var)", 2, 1),
    (
        "package a\ndefault f(x, x) := 1",
        "illegal default rule (arguments cannot be repeated x)",
        2,
        1,
    ),
    ("package a\np if { 1[x] }", "illegal ref (head cannot be number)", 2, 8),
    ("package a\n1 == 1", "rule name conflicts with built-in function", 2, 1),
    ("package a\nx", "var cannot be used for rule name", 2, 1),
    (
        'package a\np := $"{x := 1}"',
        "unexpected assignment (':=') in template-string expression",
        2,
        9,
    ),
    ("package a\np := 1 @", "illegal token", 2, 8),
]


@pytest.mark.parametrize(("source", "message", "row", "col"), V1_ERRORS)
def test_faults_are_reported_with_opas_words_and_place(source, message, row, col):
    """The first error names what and where."""
    with pytest.raises(RegoErrors) as caught:
        parse_module(source, "f.rego")
    first = caught.value.errors[0]
    assert first.code == "rego_parse_error"
    assert (first.location.row, first.location.col) == (row, col)
    if message is not None:
        assert first.message == message


def test_an_error_shows_the_line_and_a_caret():
    """The lines are OPA's, without leading tabs."""
    with pytest.raises(RegoErrors) as caught:
        parse_module("package a\np if {\n\t\tx := := 1\n}", "f.rego")
    assert str(caught.value) == (
        "1 error occurred: f.rego:3: rego_parse_error: unexpected assign token\n"
        "\tx := := 1\n"
        "\t     ^"
    )


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("p { x in xs }", "`import future.keywords.in` for `x in xs` expressions"),
        ("p { some x in xs }", "`import future.keywords.in` for `some x in xs` expressions"),
        ("p { k, v in xs }", "`import future.keywords.in` for `x in xs` expressions"),
        (
            "p { every x in xs { x } }",
            "`import future.keywords.every` for `every x in xs { ... }` expressions",
        ),
        ("p if { x }", "`import future.keywords.if` for `p if { ... }` rules"),
        ("p contains x", "`import future.keywords.contains` for `p contains x` rules"),
        ("p { x and y }", "`import future.keywords.and` for `x and y` expressions"),
    ],
)
def test_a_keyword_that_is_not_imported_is_hinted_at(source, hint):
    """v0 knows these words only where they are imported."""
    with pytest.raises(RegoErrors, match="hint") as caught:
        parse_module(f"package a\n{source}", "", "v0")
    assert f"(hint: {hint})" in caught.value.errors[0].message


@pytest.mark.parametrize(
    "source",
    [
        "[" * 5000,
        "{" * 5000,
        "(" * 5000,
        "f(" * 5000,
        "x[" * 5000,
        "{1|" * 5000,
        "[1|[" * 5000,
        '$"{' * 5000,
        "not " * 5000 + "x",
        "x" + " + x" * 5000,
        "every x in xs { " * 5000,
    ],
)
def test_nesting_without_end_is_refused(source):
    """With OPA's message, or as the nonsense that it is; never with a crash."""
    with pytest.raises(RegoErrors) as caught:
        parse_module(f"package a\np if {{ {source} }}")
    assert caught.value.errors[0].code == "rego_parse_error"
    with pytest.raises(RegoErrors):
        parse_query(source)


def test_nesting_that_people_write_is_read():
    """Up to a hundred levels."""
    assert parse_query("[" * 100 + "]" * 100) is not None
    assert parse_query("x" + " + x" * 100) is not None


@pytest.mark.parametrize("opening", ["[a | [", "{a | {", "{a: {b | "])
def test_ambiguous_nesting_takes_no_time_that_explodes(opening):
    """Each place is read a bounded number of times: two to the power of 60 would not end."""
    with pytest.raises(RegoErrors):
        parse_query(opening * 60 + "b, c")


def test_rules_follow_one_another_on_one_line():
    """No separator is needed between statements."""
    assert rules("p := 1 q := 2") == ["p := 1", "q := 2"]


def test_literals_are_distinguished():
    """A boolean is a term like any other."""
    assert parse_query("true") == (Expr(Boolean(True)),)
