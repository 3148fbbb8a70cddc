"""Keywords of schemas by the API server's own rules: each case is asked of a real one."""

import random

import pytest

from tests.cluster import Cluster
from tests.differential import schemas
from tests.webhook.constraint.schemas import crd_of, created_crd, is_taken, template
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.errors import InvalidConstraint
from webhook.constraint.schema_reading import read_schema
from webhook.constraint.targets.admission import AdmissionTarget

WORDS = ("a", 5, 1.5, True, [], ["a"], [5], {}, {"a": 5}, {"type": "string"}, 2**63)
"""A value of each type, for every keyword in its turn."""

KEYWORDS = (
    "$schema",
    "additionalProperties",
    "allOf",
    "anyOf",
    "definitions",
    "dependencies",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "externalDocs",
    "format",
    "id",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "nullable",
    "oneOf",
    "pattern",
    "patternProperties",
    "properties",
    "required",
    "title",
    "uniqueItems",
    "unknown",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
)

OTHERS = (
    {"type": ["string"]},
    {"type": None},
    {"type": "integer", "multipleOf": 0},
    {"type": "integer", "multipleOf": -1},
    {"type": "string", "maxLength": -1},
    {"type": "array", "items": [{"type": "string"}]},
    {"type": "array", "items": 5},
    {"type": "array", "items": {}},
    {
        "type": "array",
        "items": {"type": "object", "properties": {"k": {"type": "string"}}},
        "x-kubernetes-list-type": "map",
    },
    {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "map"},
    *(
        {
            "type": "array",
            "items": {"type": "object", "properties": {"k": key}, "required": ["k"]},
            "x-kubernetes-list-type": kind,
            "x-kubernetes-list-map-keys": keys,
        }
        for key in ({"type": "string"}, {"type": "string", "nullable": True}, {"type": "object"})
        for kind in ("map", "atomic")
        for keys in (["k"], ["k", "k"], ["other"])
    ),
    {
        "type": "array",
        "items": {"type": "object", "properties": {"k": {"type": "string"}}},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
    },
    {"type": "object", "x-kubernetes-list-type": "set"},
    {"type": "string", "x-kubernetes-map-type": "atomic"},
    {"type": "object", "properties": {"b": None}},
    {"type": "object", "x-kubernetes-preserve-unknown-fields": False},
    {"type": "object", "x-kubernetes-map-type": "atomic"},
    {"type": "object", "x-kubernetes-map-type": "x"},
)


def test_what_the_api_server_refuses_of_a_schema_is_refused_and_nothing_else(cluster: Cluster):
    cases = [
        {"type": "object", keyword: word}
        for keyword in KEYWORDS
        for word in WORDS
        if (keyword, word) != ("dependencies", {})  # which Go does not write, nor do we
    ]
    differences = []
    for inner in (*cases, *OTHERS):
        schema = {"type": "object", "properties": {"a": inner}}
        ours = created_crd("Asked", schema) is not None
        theirs = is_taken(cluster, crd_of("Asked", schema))
        if ours != theirs:
            differences.append((inner, "we take it" if ours else "we refuse it"))
    assert not differences, "\n".join(map(str, differences))


@pytest.mark.slow(30)
def test_schemas_by_chance_make_the_crds_that_the_api_server_takes(cluster: Cluster):
    """Defaults, rules, lists of keys, embedded objects: as many are refused as are taken."""
    chance = random.Random(7)
    differences, taken = [], 0
    for _ in range(200):
        schema = {**schemas.schema(chance), "type": "object"}
        crd = created_crd("Asked", schema)
        theirs = is_taken(cluster, crd or crd_of("Asked", read_schema(schema)))
        taken += theirs
        if (crd is not None) != theirs:
            differences.append((schema, "we refuse it" if theirs else "we take it"))
    assert not differences, "\n".join(map(str, differences))
    assert 40 < taken < 160


def test_a_kind_whose_list_has_too_long_a_name_is_refused_as_by_the_api_server(cluster: Cluster):
    for length in (59, 60, 63, 64):
        kind = "A" * length
        crd = crd_of("Asked", {"type": "object"})
        crd["metadata"]["name"] = f"{kind.lower()}.constraints.gatekeeper.sh"
        crd["spec"]["names"] |= {
            "kind": kind,
            "listKind": f"{kind}List",
            "plural": kind.lower(),
            "singular": kind.lower(),
        }
        assert (created_crd(kind, {"type": "object"}) is not None) == is_taken(cluster, crd), length


@pytest.mark.parametrize(("factor", "value"), [(0, 4), (-1, 1.5), (0, 0)])
def test_a_factor_that_is_not_positive_fits_no_value(factor, value):
    client = Client(targets=(AdmissionTarget(),), drivers=(RegoDriver(),))
    schema = {"type": "object", "properties": {"a": {"type": "number", "multipleOf": factor}}}
    client.add_template(template("Asked", schema))
    document = {
        "apiVersion": "constraints.gatekeeper.sh/v1beta1",
        "kind": "Asked",
        "metadata": {"name": "x"},
        "spec": {"parameters": {"a": value}},
    }
    with pytest.raises(InvalidConstraint) as refusal:
        client.add_constraint(document)
    assert (
        f"[].spec.parameters.a: Invalid value: {factor}: factor MultipleOf declared for "
        f"spec.parameters.a must be positive: {factor}"
    ) in str(refusal.value)
