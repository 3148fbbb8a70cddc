"""GraphQL's documents as gqlparser's trees, and what makes them invalid."""

import pytest

from webhook.rego.builtins.registry import BUILTINS
from webhook.rego.errors import BuiltinError, EvaluationError
from webhook.rego.run.limits import EvaluationContext

SCHEMA = """
type Query { a(x: Int!, e: E): A s: String }
type A { n: String! }
enum E { ONE }
"""


def call(name, *operands):
    return BUILTINS[f"graphql.{name}"].function(EvaluationContext(), *operands)


def fault(name, *operands):
    with pytest.raises(BuiltinError) as caught:
        call(name, *operands)
    return caught.value.message


def test_a_query_is_a_tree_without_what_is_empty():
    assert call("parse_query", 'query Q($v: [Int!] = [1]) { f: g(a: "x") @d { ...F } }') == {
        "Operations": [
            {
                "Description": "",
                "Operation": "query",
                "Name": "Q",
                "VariableDefinitions": [
                    {
                        "Description": "",
                        "Variable": "v",
                        "Used": False,
                        "Type": {
                            "NamedType": "",
                            "NonNull": False,
                            "Elem": {"NamedType": "Int", "NonNull": True},
                        },
                        "DefaultValue": {
                            "Kind": 8,
                            "Raw": "",
                            "ExpectedTypeHasDefault": False,
                            "Children": [
                                {
                                    "Name": "",
                                    "Value": {
                                        "Kind": 1,
                                        "Raw": "1",
                                        "ExpectedTypeHasDefault": False,
                                    },
                                }
                            ],
                        },
                    }
                ],
                "SelectionSet": [
                    {
                        "Alias": "f",
                        "Name": "g",
                        "Arguments": [
                            {
                                "Name": "a",
                                "Value": {
                                    "Kind": 3,
                                    "Raw": "x",
                                    "ExpectedTypeHasDefault": False,
                                },
                            }
                        ],
                        "Directives": [{"Name": "d", "Location": ""}],
                        "SelectionSet": [{"Name": "F"}],
                    }
                ],
            }
        ]
    }


def test_comments_are_part_of_the_tree():
    found = call("parse_schema", "# one\n# two\ntype A { a: Int # end\n }")
    definition = found["Definitions"][0]
    comments = [one["Value"] for one in definition["AfterDescriptionComment"]["List"]]
    assert comments == ["# one", "# two"]
    assert definition["EndOfDefinitionComment"] == {"List": [{"Value": "# end"}]}


def test_operations_fragments_and_variables_have_descriptions():
    query = '# a\n"one" # b\nquery A("two" $v: Int) { s } "three" fragment F on Query { s }'
    found = call("parse_query", query)
    (operation,), (fragment,) = found["Operations"], found["Fragments"]
    assert operation["Description"] == "one"
    assert [one["Value"] for one in operation["Comment"]["List"]] == ["# a", "# b"]
    assert operation["VariableDefinitions"][0]["Description"] == "two"
    assert fragment["Description"] == "three"


def test_a_directive_has_directives_and_extensions():
    found = call(
        "parse_schema",
        "directive @d @e on FIELD extend directive @d @f(a: 1) "
        "interface J { a: Int } extend interface J implements I",
    )
    assert found["Directives"][0]["Directives"] == [{"Name": "e", "Location": ""}]
    assert found["DirectiveExtensions"][0]["Directives"][0]["Name"] == "f"
    assert found["Extensions"][0]["Interfaces"] == ["I"]


@pytest.mark.parametrize(
    ("escape", "character"),
    [
        (r"\u{1F600}", "\U0001f600"),
        (r"\uD83D\uDE00", "\U0001f600"),
        (r"\u{00000041}", "A"),
        (r"\uD83D\u0041", "\ufffdA"),
        (r"\uDE00", "\ufffd"),
    ],
)
def test_escapes_are_characters(escape, character):
    found = call("parse_query", f'{{ s(a: "{escape}") }}')
    argument = found["Operations"][0]["SelectionSet"][0]["Arguments"][0]
    assert argument["Value"]["Raw"] == character


@pytest.mark.parametrize(
    "escape", [r"\u{}", r"\u{D800}", r"\u{110000}", r"\u{000000041}", r"\u{41"]
)
def test_escapes_of_no_character_are_faults(escape):
    message = "Unexpected <Invalid> in GraphQL string at location 1:10"
    assert fault("parse_query", f'{{ s(a: "{escape}") }}') == message


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ('"d" { s }', 'Unexpected String "d" in GraphQL string at location 1:2'),
        ("{", "Expected Name, found <EOF> in GraphQL string at location 1:2"),
        ("{ f", "Expected Name, found <EOF> in GraphQL string at location 1:4"),
        ("\n  x", 'Unexpected Name "x" in GraphQL string at location 2:3'),
        ("{ }", "expected at least one definition, found } in GraphQL string at location 1:3"),
        ("{ f(a: ?) }", "Unexpected <Invalid> in GraphQL string at location 1:8"),
    ],
)
def test_a_fault_in_a_query_is_worded_and_placed_as_gqlparser_does(query, message):
    assert fault("parse_query", query) == message


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("{ zzzz }", 'Cannot query field "zzzz" on type "Query" in GraphQL string at location 1:3'),
        (
            "{\n a { n }\n}",
            (
                'Field "a" argument "x" of type "Int!" is required, but it was not provided in '
                "GraphQL string at location 2:2"
            ),
        ),
        ("{ ...F }", 'Unknown fragment "F" in GraphQL string at location 1:6'),
        (
            "{ a(x: null) { n } }",
            'Expected value of type "Int!", found null in GraphQL string at location 1:8',
        ),
    ],
)
def test_a_query_that_the_schema_forbids_says_why(query, message):
    assert fault("parse", query, SCHEMA) == message
    assert not call("is_valid", query, SCHEMA)
    assert call("parse_and_verify", query, SCHEMA) == [False, {}, {}]


def test_trees_may_be_given_in_place_of_texts():
    query, schema = call("parse", "{ a(x: 1, e: ONE) { n } }", SCHEMA)
    assert call("parse", query, schema) == [query, schema]
    assert call("is_valid", query, schema)
    assert call("schema_is_valid", schema)
    assert not call("is_valid", {"Operations": 1}, SCHEMA)


@pytest.mark.parametrize(
    "schema",
    [
        "type Query { a: Zed }",
        "type Query { a: Int a: Int }",
        "interface I { a: Int } type Query implements I { a: String }",
        "input I { i: I! }",
        "enum E { true }",
        "union U = Query | Query type Query { a: Int }",
        "type Query { a: Int @unknown }",
        "scalar Int",
        "schema { query: Zed }",
        "type Query",
        "type Query {",
        "union U",
        "scalar Query",
        "enum E { __A }",
        "schema { query: A query: A } type A { a: Int }",
        "schema { query: A } extend schema { query: A } type A { a: Int }",
        "type A { a(b: Int b: Int): Int }",
        "directive @d(a: Int a: Int) on FIELD",
        "directive @d @d on DIRECTIVE_DEFINITION",
        "directive @d @skip(if: true) on FIELD",
        "extend directive @d @deprecated",
        "directive @d @deprecated on FIELD extend directive @d @deprecated",
        "interface I { a: Int } type A implements I & I { a: Int }",
        "interface I implements I { a: Int }",
        'type A { a: Int @deprecated(reason: "a", reason: "b") }',
        "input I { a: [J] = [{b: 1, b: 2}] } input J { b: Int }",
        "type A { a(b: I = {c: 1, c: 2}): Int } input I { c: Int }",
    ],
)
def test_schemas_with_faults_are_not_valid(schema):
    assert not call("schema_is_valid", schema)


def test_a_schema_needs_no_query_type_to_be_valid():
    assert call("schema_is_valid", "type A { a: Int }")
    assert call("schema_is_valid", "")


def test_an_extended_directive_is_not_extended_in_the_next_schema():
    extended = "extend directive @skip @deprecated"
    assert call("schema_is_valid", extended)
    assert call("schema_is_valid", extended)


def test_deep_nesting_ends_in_an_error_of_the_evaluation():
    for query in ("{a" * 10_000, "{ a(x: " + "[" * 10_000, "query($v: " + "[" * 10_000):
        with pytest.raises(EvaluationError):
            call("parse_query", query)
