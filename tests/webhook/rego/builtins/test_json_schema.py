"""JSON schemas with gojsonschema's results."""

import pytest

from webhook.rego.builtins.registry import BUILTINS
from webhook.rego.errors import BuiltinError, EvaluationError
from webhook.rego.run.limits import EvaluationContext


def match(document, schema, **context):
    builtin = BUILTINS["json.match_schema"]
    return builtin.function(EvaluationContext(**context), document, schema)


def verify(schema):
    return BUILTINS["json.verify_schema"].function(EvaluationContext(), schema)


def described(document, schema):
    return [fault["desc"] for fault in match(document, schema)[1]]


def test_a_fault_has_its_place_type_and_words():
    schema = {"properties": {"a": {"items": {"type": "integer"}}}}
    assert match({"a": [1, "x"]}, schema) == [
        False,
        [
            {
                "error": "a.1: Invalid type. Expected: integer, given: string",
                "type": "invalid_type",
                "field": "a.1",
                "desc": "Invalid type. Expected: integer, given: string",
            }
        ],
    ]
    assert match({"a": [1.0]}, schema) == [True, []]


def test_the_branch_that_came_furthest_explains_a_failed_any_of():
    schema = {
        "anyOf": [
            {"type": "string"},
            {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        ]
    }
    assert described({"a": "x"}, schema) == [
        "Must validate at least one schema (anyOf)",
        "Invalid type. Expected: integer, given: string",
    ]


@pytest.mark.parametrize(
    ("document", "schema", "words"),
    [
        ({}, {"required": ["a"]}, ["a is required"]),
        ({"b": 1}, {"additionalProperties": False}, ["Additional property b is not allowed"]),
        ({"n": 3}, {"properties": {"n": {"multipleOf": 2}}}, ["Must be a multiple of 2"]),
        (
            {"n": 3e6},
            {"properties": {"n": {"maximum": 1_000_000}}},
            ["Must be less than or equal to 1e+06"],
        ),
        ([1, 1.0], {"uniqueItems": True}, ["array items[0,1] must be unique"]),
        (["x"], {"contains": {"type": "null"}}, [
            "At least one of the items must match",
            "Invalid type. Expected: null, given: string",
        ]),
        ([2], {"items": {"enum": [1, "a"]}}, ['0 must be one of the following: 1, "a"']),
        (["b"], {"items": {"pattern": "^a"}}, ["Does not match pattern '^a'"]),
        (["x"], {"items": {"format": "ipv4"}}, ["Does not match format 'ipv4'"]),
        ({"a": 1}, {"dependencies": {"a": ["b"]}}, ["Has a dependency on b"]),
        ({"a": 1}, {"if": {"required": ["a"]}, "then": {"maxProperties": 0}}, [
            'Must validate "then" as "if" was valid',
            "Must have at most 0 properties",
        ]),
    ],
)  # fmt: skip
def test_keywords_complain_in_gojsonschemas_words(document, schema, words):
    assert described(document, schema) == words


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "foo"}, ("has a primitive type that is NOT VALID -- given: /foo/ Expected "
         "valid values are:[array boolean integer number null object string]")),
        ({"minLength": -1}, "minLength must be greater than or equal to 0"),
        ({"pattern": "("}, "pattern must be a valid regex"),
        ({"$ref": "#/definitions/x"}, "Object has no key 'definitions'"),
        ({"$ref": "http://a.b/c"}, "remote reference loading disabled: http://a.b/c"),
        ("{", "invalid JSON string"),
        ([], "schema is invalid"),
    ],
)  # fmt: skip
def test_a_schema_that_is_none_says_why(schema, message):
    assert verify(schema) == [False, f"jsonschema: {message}"]
    with pytest.raises(BuiltinError) as caught:
        match({}, schema)
    assert caught.value.message == message


def test_references_may_recur():
    schema = {
        "definitions": {"tree": {"properties": {"next": {"$ref": "#/definitions/tree"}},
                                 "additionalProperties": False}},
        "$ref": "#/definitions/tree",
    }  # fmt: skip
    assert match({"next": {"next": {}}}, schema) == [True, []]
    assert described({"next": {"x": 1}}, schema) == ["Additional property x is not allowed"]


def test_a_reference_to_itself_ends_in_an_error_of_the_evaluation():
    with pytest.raises(EvaluationError):
        match({}, {"$ref": "#"})


def test_a_schema_whose_branches_multiply_is_stopped_by_the_budget():
    schema = {"type": "string"}
    for _ in range(20):
        schema = {"anyOf": [{"allOf": [schema]}, {"allOf": [schema]}]}
    with pytest.raises(EvaluationError):
        match({"a": 1}, schema, steps=1_000_000)
