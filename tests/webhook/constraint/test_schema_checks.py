"""Schemas that the API server refuses in a CRD, and old ones that Gatekeeper takes."""

from __future__ import annotations

import pytest

from tests.webhook.constraint.policies import client, constraint, template
from webhook.constraint.errors import InvalidConstraint, InvalidTemplate

INNER = "spec.validation.openAPIV3Schema.properties[spec].properties[parameters].properties[u]"


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "integer", "default": "x"}, '.default: Invalid value: "string"'),
        ({"type": "string", "enum": ["a"], "default": "b"}, ".default: Unsupported value"),
        (
            {"type": "object", "properties": {}, "default": {"a": 1}},
            '.default: Invalid value: {"a":1}: must not have unknown fields',
        ),
        (
            {"type": "array", "items": {"type": "string", "default": 5}},
            ".items.default: Invalid value",
        ),
        (
            {"type": "integer", "default": 3, "x-kubernetes-validations": [{"rule": "self > 5"}]},
            ".default: Invalid value: 3: failed rule: self > 5",
        ),
        (
            {
                "type": "object",
                "default": {"n": 3},
                "properties": {
                    "n": {
                        "type": "integer",
                        "x-kubernetes-validations": [{"rule": "self > 5", "message": "too few"}],
                    }
                },
            },
            ".default.n: Invalid value: 3: too few",
        ),
        (
            {"type": "string", "x-kubernetes-validations": [{"rule": "self.foo == 1"}]},
            "type 'string' does not support field selection",
        ),
        (
            {"type": "string", "x-kubernetes-validations": [{"rule": "'x'"}]},
            "cel expression must evaluate to a bool",
        ),
        ({"type": "string", "x-kubernetes-validations": [{}]}, "[0].rule: Required value"),
        (
            {
                "type": "array",
                "items": {
                    "type": "string",
                    "x-kubernetes-validations": [{"rule": "self == oldSelf"}],
                },
            },
            "oldSelf cannot be used on the uncorrelatable portion",
        ),
        (
            {
                "type": "array",
                "x-kubernetes-list-type": "set",
                "items": {"type": "object", "properties": {}},
            },
            "must be atomic as item of a list with x-kubernetes-list-type=set",
        ),
        ({"type": ["string", "null"]}, '.type: Invalid value: "array": must be a string'),
        (
            {
                "type": "array",
                "items": {"type": "string", "maxLength": 50},
                "x-kubernetes-validations": [{"rule": "self.all(x, x.matches('^a'))"}],
            },
            (
                ".x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by "
                "factor of 2.6x (try simplifying the rule, or adding maxItems, maxProperties, and "
                "maxLength where arrays, maps, and strings are declared)"
            ),
        ),
        (
            {
                "type": "object",
                "properties": {
                    f"p{at}": {
                        "type": "string",
                        "x-kubernetes-validations": [
                            {"rule": "self.matches('^aaaaaaaaaaaaaaaa$')"}
                        ],
                    }
                    for at in range(70)
                },
            },
            (
                "spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule "
                "cost total for entire OpenAPIv3 schema exceeds budget by factor of 1.101006x"
            ),
        ),
    ],
)
def test_a_schema_that_the_api_server_refuses_is_refused_at_once(schema, message):
    with pytest.raises(InvalidTemplate) as refusal:
        client(template(schema={"type": "object", "properties": {"u": schema}}))

    assert INNER in str(refusal.value)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "additionalProperties": False},
        {"type": "string", "enum": [], "default": "x"},
        {"type": "object", "default": {"a": "x"}, "properties": {"a": {"type": "string"}}},
        {
            "type": "object",
            "properties": {
                "n": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}]}
            },
            "default": {"n": 2},
        },
        {
            "type": "array",
            "maxItems": 100,
            "items": {"type": "string", "maxLength": 50},
            "x-kubernetes-validations": [{"rule": "self.all(x, x.matches('^a'))"}],
        },
    ],
)
def test_a_schema_that_the_api_server_takes_is_taken(schema):
    subject = client(template(schema={"type": "object", "properties": {"u": schema}}))

    assert len(subject.snapshot.entries) == 1


LEGACY = [
    {"type": "array", "items": "string"},
    {"type": "array", "items": 5},
    {"type": "array", "items": None},
    {"type": "array"},
    {"type": None},
    {"items": "string"},
    {"required": None},
    {"enum": None},
    {"minItems": None},
    {},
    None,
]


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha1"])
@pytest.mark.parametrize("schema", LEGACY)
def test_a_legacy_schema_is_read_as_go_reads_it(version, schema):
    """As Gatekeeper's old demos have it: what is no schema for items says nothing of them."""
    whole = {"properties": {"labels": schema}}
    subject = client(template(schema=whole, version=version))

    assert subject.add_constraint(constraint(parameters={"labels": ["a"], "more": 1}))


def test_fields_that_a_schema_forbids_are_refused_of_a_legacy_template():
    """They were taken where all fields are kept, as legacy schemas keep them."""
    document = template(schema={"additionalProperties": False})
    document["apiVersion"] = "templates.gatekeeper.sh/v1beta1"
    subject = client(document)

    with pytest.raises(InvalidConstraint, match=r"parameters\.x in body is a forbidden property"):
        subject.add_constraint(constraint(parameters={"x": 1}))


@pytest.mark.parametrize("schema", [{"type": 5}, {"properties": []}, {"additionalProperties": "x"}])
def test_what_go_cannot_read_of_a_legacy_schema_is_refused(schema):
    whole = {"properties": {"labels": schema}}
    with pytest.raises(InvalidTemplate, match="properties\\[labels\\]"):
        client(template(schema=whole, version="v1beta1"))
