"""Warnings about expressions that do not fit the kinds that they are about."""

import pytest

from webhook.api.gvk import GroupVersionKind
from webhook.cel.check.objects import ObjectType, object_type
from webhook.constraint.drivers.cel_source import CelSource, read_source
from webhook.generation.type_warnings import type_warnings

WIDGET = GroupVersionKind("example.com", "v1", "Widget")
GADGET = GroupVersionKind("example.com", "v1", "Gadget")
TEXT = {"type": "string"}
DEFINITIONS = {
    "Widget": {
        "type": "object",
        "properties": {
            "metadata": {"allOf": [{"$ref": "#/components/schemas/Metadata"}]},
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer"},
                    "labels": {"type": "object", "additionalProperties": TEXT},
                    "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Part"}},
                    "namespace": TEXT,
                    "a-b": {"type": "number"},
                    "port": {"x-kubernetes-int-or-string": True},
                    "cpu": {"oneOf": [{"type": "string"}, {"type": "number"}]},
                    "since": {"type": "string", "format": "date-time"},
                    "any": {"x-kubernetes-preserve-unknown-fields": True},
                },
            },
        },
    },
    "Part": {
        "type": "object",
        "properties": {"name": TEXT, "within": {"$ref": "#/components/schemas/Part"}},
    },
    "Metadata": {"type": "object", "properties": {"name": TEXT, "generateName": TEXT}},
    "Gadget": {"type": "object", "properties": {"spec": {"type": "object"}}},
}


def widget() -> ObjectType:
    """The type of a Widget."""
    found = object_type("Widget", "Widget", DEFINITIONS)
    assert found is not None
    return found


def source(expression: str, **more: object) -> CelSource:
    """A source of one validation."""
    return read_source({"validations": [{"expression": expression, **more}]})


@pytest.mark.parametrize(
    "expression",
    [
        "object.spec.size > 1 && oldObject.spec.size == 1",
        "object.metadata.name == 'a' && object.kind == 'Widget' && has(object.metadata.generateName)",
        "object.spec.labels.app == 'a' && 'x' in object.spec.labels",
        "object.spec.parts.all(p, p.name == 'a' && p.within == null)",
        "object.spec.namespace == 'a' && object.spec.__namespace__ == 'a'",
        "object.spec.a__dash__b == 1.0",
        "object.spec.port == 1 || object.spec.port == 'http'",
        "object.spec.cpu == '1' && object.spec.since < timestamp('2024-01-01T00:00:00Z')",
        "has(object.spec.size) && object.?spec.?size.orValue(1) == 1 && object != null",
        "variables.anyObject.spec.size == 1",
        "variables.params.anything == 1",
    ],
)
def test_an_expression_that_fits_is_not_warned_of(expression):
    assert type_warnings(source(expression), {WIDGET: widget()}) == []


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("object.spec.sise > 1", "1:12: undefined field 'sise'"),
        ("has(object.spec.sise)", "1:4: undefined field 'sise'"),
        ("object.spec.any.x == 1", "undefined field 'any'"),
        ("oldObject.spec.size == 'a'", "applied to '(int, string)'"),
        ("object.spec.parts.all(p, p.nam == 'a')", "undefined field 'nam'"),
        ("object.spec.parts[0].within.name == 'a'", "undefined field 'name'"),
        ("variables.anyObject.spec.sise > 1", "undefined field 'sise'"),
        ("object.metadata.labels.a == 'b'", "undefined field 'labels'"),
    ],
)
def test_an_expression_that_does_not_fit_is_reported_with_its_kind_and_place(expression, message):
    (warning,) = type_warnings(source(expression), {WIDGET: widget()})
    assert warning["fieldRef"] == "spec.validations[0].expression"
    assert warning["warning"].startswith("example.com/v1, Kind=Widget: ERROR: <input>:1:")
    assert message in warning["warning"]


def test_every_kind_that_an_expression_does_not_fit_is_reported_with_it_and_messages_likewise():
    gadget = object_type("Gadget", "Gadget", DEFINITIONS)
    assert gadget is not None
    both = source("object.spec.size > 1", messageExpression="object.spec.nope")
    found = type_warnings(both, {WIDGET: widget(), GADGET: gadget})
    assert [one["fieldRef"] for one in found] == [
        "spec.validations[0].expression",
        "spec.validations[0].messageExpression",
    ]
    assert found[0]["warning"].count("Kind=") == 1
    assert [line for line in found[1]["warning"].split("\n") if "Kind=" in line] == [
        "example.com/v1, Kind=Gadget: ERROR: <input>:1:12: undefined field 'nope'",
        "example.com/v1, Kind=Widget: ERROR: <input>:1:12: undefined field 'nope'",
    ]
