"""Constraints against their template's schema; every message was printed by gator v3.23.1."""

from __future__ import annotations

import pytest

from tests.webhook.constraint.policies import client, constraint, template
from webhook.constraint.errors import InvalidConstraint, InvalidTemplate, SchemaViolation
from webhook.constraint.structural import faults

SCHEMA = {
    "type": "object",
    "required": ["must"],
    "properties": {
        "must": {"type": "string"},
        "arr": {"type": "array", "items": {"type": "string"}, "maxItems": 2, "minItems": 1},
        "num": {"type": "number", "maximum": 5, "minimum": 1},
        "int": {"type": "integer"},
        "en": {"type": "string", "enum": ["a", "b"]},
        "pat": {"type": "string", "pattern": "^a+$", "minLength": 2, "maxLength": 4},
        "ios": {"x-kubernetes-int-or-string": True},
        "obj": {"type": "object", "additionalProperties": {"type": "integer"}},
        "nul": {"type": "string", "nullable": True},
        "any": {"type": "string", "anyOf": [{"pattern": "^x"}, {"pattern": "^y"}]},
        "nt": {"type": "string", "not": {"pattern": "^x"}},
        "one": {"type": "string", "oneOf": [{"pattern": "^x"}, {"pattern": "^x"}]},
        "al": {"type": "string", "allOf": [{"pattern": "^x"}, {"pattern": "^y"}]},
        "ip": {"type": "string", "format": "ipv4"},
        "i32": {"type": "integer", "format": "int32"},
        "mult": {"type": "integer", "multipleOf": 3},
        "bool": {"type": "boolean"},
        "exm": {"type": "integer", "maximum": 3, "exclusiveMaximum": True},
        "mp": {
            "type": "object",
            "maxProperties": 1,
            "minProperties": 1,
            "additionalProperties": {"type": "string"},
        },
        "kp": {"type": "object", "properties": {"a": {"type": "string"}}},
        "ar2": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["x"],
                "properties": {"x": {"type": "string"}, "y": {"type": "integer"}},
            },
        },
        "def": {"type": "object", "properties": {"d": {"type": "integer", "default": 7}}},
    },
}

P = "[].spec.parameters"

REFUSED = [
    ({}, f"{P}.must: Required value"),
    (
        {"must": 3},
        (
            f'{P}.must: Invalid value: "number": spec.parameters.must in body must be of type '
            'string: "number"'
        ),
    ),
    (
        {"must": "a", "arr": "x"},
        (
            f'{P}.arr: Invalid value: "string": spec.parameters.arr in body must be of type array: '
            '"string"'
        ),
    ),
    (
        {"must": "a", "arr": [1, 2, "c"]},
        (
            f'[{P}.arr[0]: Invalid value: "number": spec.parameters.arr[0] in body must be of type '
            f'string: "number", {P}.arr[1]: Invalid value: "number": spec.parameters.arr[1] in body '
            f'must be of type string: "number", {P}.arr: Too many: 3: must have at most 2 items]'
        ),
    ),
    (
        {"must": "a", "arr": []},
        f"{P}.arr: Invalid value: 0: spec.parameters.arr in body should have at least 1 items",
    ),
    (
        {"must": "a", "num": 7, "int": 1.5},
        (
            f"[{P}.num: Invalid value: 7: spec.parameters.num in body should be less than or equal "
            f'to 5, {P}.int: Invalid value: "number": spec.parameters.int in body must be of type '
            'integer: "number", []: Invalid value: "": Checked value must be of type integer '
            "(default format) in spec.parameters.int]"
        ),
    ),
    (
        {"must": "a", "num": 0.5},
        (
            f"{P}.num: Invalid value: 0.5: spec.parameters.num in body should be greater than or "
            "equal to 1"
        ),
    ),
    ({"must": "a", "en": "c"}, f'{P}.en: Unsupported value: "c": supported values: "a", "b"'),
    (
        {"must": "a", "pat": "b"},
        f'{P}.pat: Invalid value: "b": spec.parameters.pat in body should be at least 2 chars long',
    ),
    ({"must": "a", "pat": "aaaaaaa"}, f"{P}.pat: Too long: may not be more than 4 bytes"),
    (
        {"must": "a", "ios": True},
        (
            f'{P}.ios: Invalid value: "boolean": spec.parameters.ios in body must be of type '
            'integer,string: "boolean"'
        ),
    ),
    (
        {"must": "a", "obj": {"a": "x"}},
        (
            f'{P}.obj.a: Invalid value: "string": spec.parameters.obj.a in body must be of type '
            'integer: "string"'
        ),
    ),
    (
        {"must": None},
        (
            f'{P}.must: Invalid value: "null": spec.parameters.must in body must be of type '
            'string: "null"'
        ),
    ),
    (
        {"must": "a", "any": "z"},
        (
            '[[]: Invalid value: "": "spec.parameters.any" must validate at least one schema '
            f"(anyOf), {P}.any: Invalid value: \"z\": spec.parameters.any in body should match '^x']"
        ),
    ),
    (
        {"must": "a", "nt": "x"},
        '[]: Invalid value: "": "spec.parameters.nt" must not validate the schema (not)',
    ),
    (
        {"must": "a", "one": "x"},
        (
            '[]: Invalid value: "": "spec.parameters.one" must validate one and only one schema '
            "(oneOf). Found 2 valid alternatives"
        ),
    ),
    (
        {"must": "a", "al": "z"},
        (
            f"[{P}.al: Invalid value: \"z\": spec.parameters.al in body should match '^x', "
            f"{P}.al: Invalid value: \"z\": spec.parameters.al in body should match '^y', "
            '[]: Invalid value: "": "spec.parameters.al" must validate all the schemas (allOf). '
            "None validated]"
        ),
    ),
    (
        {"must": "a", "ip": "z"},
        f'{P}.ip: Invalid value: "z": spec.parameters.ip in body must be of type ipv4: "z"',
    ),
    (
        {"must": "a", "i32": 99999999999},
        (
            '[]: Invalid value: "": Checked value must be of type integer with format int32 in '
            "spec.parameters.i32"
        ),
    ),
    (
        {"must": "a", "mult": 4},
        f"{P}.mult: Invalid value: 4: spec.parameters.mult in body should be a multiple of 3",
    ),
    (
        {"must": "a", "bool": "yes"},
        (
            f'{P}.bool: Invalid value: "string": spec.parameters.bool in body must be of type '
            'boolean: "string"'
        ),
    ),
    (
        {"must": "a", "exm": 3},
        f"{P}.exm: Invalid value: 3: spec.parameters.exm in body should be less than 3",
    ),
    (
        {"must": "a", "mp": {"a": "b", "c": "d"}},
        f"{P}.mp: Too many: 2: must have at most 1 item",
    ),
    (
        {"must": "a", "mp": {}},
        f"{P}.mp: Invalid value: 0: spec.parameters.mp in body should have at least 1 properties",
    ),
    (
        {"must": "a", "ar2": [{"y": "s"}]},
        (
            f'[{P}.ar2[0].y: Invalid value: "string": spec.parameters.ar2[0].y in body must be of '
            f'type integer: "string", {P}.ar2[0].x: Required value]'
        ),
    ),
    (
        [],
        f'{P}: Invalid value: "array": spec.parameters in body must be of type object: "array"',
    ),
    (
        None,
        f'{P}: Invalid value: "null": spec.parameters in body must be of type object: "null"',
    ),
]


@pytest.mark.parametrize(("parameters", "message"), REFUSED)
def test_parameters_that_the_schema_refuses_are_refused_with_the_api_servers_words(
    parameters, message
):
    subject = client(template(schema=SCHEMA))

    with pytest.raises(SchemaViolation) as refusal:
        subject.add_constraint(constraint(parameters=parameters))

    assert f"schema validation failed: {message}" == str(refusal.value)
    assert subject.snapshot.constraints == ()


@pytest.mark.parametrize(
    "parameters",
    [
        {"must": "a"},
        {"must": "a", "int": 2.0, "ios": "3", "nul": None, "any": "y", "nt": "y", "al": "z"[:0]},
        {"must": "a", "ios": 3, "obj": {"any": 1}, "ip": "10.0.0.1", "mult": 6, "exm": 2},
    ],
)
def test_parameters_that_the_schema_allows_are_accepted(parameters):
    parameters = {name: value for name, value in parameters.items() if name != "al"}

    assert client(template(schema=SCHEMA)).add_constraint(constraint(parameters=parameters))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"match": {"kinds": "x"}},
            (
                'schema validation failed: [].spec.match.kinds: Invalid value: "string": '
                'spec.match.kinds in body must be of type array: "string"'
            ),
        ),
        (
            {"match": {"namespaces": ["UP"]}},
            (
                'schema validation failed: [].spec.match.namespaces[0]: Invalid value: "UP": '
                r"spec.match.namespaces[0] in body should match '^\*?[-:a-z0-9]*\*?$'"
            ),
        ),
        (
            {"match": {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}},
            (
                "invalid Constraint: spec.labelSelector.matchExpressions[0].values: Required value: "
                "must be specified when `operator` is 'In' or 'NotIn'"
            ),
        ),
        (
            {"match": {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Foo"}]}}},
            (
                'invalid Constraint: spec.labelSelector.matchExpressions[0].operator: Invalid value: "Foo": '
                "not a valid selector operator"
            ),
        ),
        (
            {"match": {"labelSelector": {"matchExpressions": [{"key": "", "operator": ["In"]}]}}},
            (
                "schema validation failed: [].spec.match.labelSelector.matchExpressions[0].operator: "
                'Invalid value: "array": spec.match.labelSelector.matchExpressions[0].operator in '
                'body must be of type string: "array"'
            ),
        ),
        (
            {"match": {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": {}}]}}},
            (
                "schema validation failed: [].spec.match.namespaceSelector.matchExpressions[0]"
                '.operator: Invalid value: "object": spec.match.namespaceSelector'
                '.matchExpressions[0].operator in body must be of type string: "object"'
            ),
        ),
        (
            {"match": {"labelSelector": {"matchLabels": {"a b": "c d"}}}},
            (
                'invalid Constraint: [spec.labelSelector.matchLabels: Invalid value: "a b": name part '
                "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
                "an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used "
                "for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'), "
                'spec.labelSelector.matchLabels: Invalid value: "c d": a valid label must be an empty '
                "string or consist of alphanumeric characters, '-', '_' or '.', and must start and end "
                "with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex "
                "used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')]"
            ),
        ),
        (
            {"match": {"source": "Foo"}},
            (
                'schema validation failed: [].spec.match.source: Unsupported value: "Foo": supported '
                'values: "All", "Generated", "Original"'
            ),
        ),
        (
            {"match": {"zork": 1}},
            "invalid Constraint: unknown fields: [spec.match.zork]",
        ),
        (
            {"enforcementAction": 3},
            (
                'schema validation failed: [].spec.enforcementAction: Invalid value: "number": '
                'spec.enforcementAction in body must be of type string: "number"'
            ),
        ),
        (
            {"enforcementAction": "scoped"},
            "missing required field: spec.scopedEnforcementActions must be defined",
        ),
        (
            {"scopedEnforcementActions": "foo"},
            (
                'schema validation failed: [].spec.scopedEnforcementActions: Invalid value: "string": '
                'spec.scopedEnforcementActions in body must be of type array: "string"'
            ),
        ),
        (
            {"parameters": {"must": "a", "kp": {"b": 1, "c": {"d": 1}}, "zz": 1}},
            (
                "invalid Constraint: unknown fields: [spec.parameters.kp.b spec.parameters.kp.c "
                "spec.parameters.zz]"
            ),
        ),
    ],
)
def test_specs_that_are_refused_are_refused_with_gatekeepers_words(spec, message):
    spec = {"parameters": {"must": "a"}, **spec}

    with pytest.raises(InvalidConstraint) as refusal:
        client(template(schema=SCHEMA)).add_constraint(constraint(**spec))

    assert message == str(refusal.value)


def test_a_match_of_another_type_is_refused_by_the_schema():
    subject = client(template())

    with pytest.raises(SchemaViolation, match=r"spec\.match in body must be of type object"):
        subject.add_constraint(constraint(match="foo"))
    with pytest.raises(SchemaViolation, match="labelSelector in body must be of type object"):
        subject.add_constraint(constraint(match={"labelSelector": "foo"}))


def test_names_are_those_of_dns_and_at_most_63_long():
    subject = client(template())

    with pytest.raises(InvalidConstraint, match='invalid name: "a lowercase RFC 1123 subdomain'):
        subject.add_constraint(constraint(name="Foo_bar"))
    with pytest.raises(
        SchemaViolation, match=r"\[\].metadata.name: Too long: may not be more than 63 bytes"
    ):
        subject.add_constraint(constraint(name="a" * 64))


def test_defaults_are_set_without_a_change_to_what_was_given():
    given = constraint(parameters={"must": "a", "def": {}})
    subject = client(template(schema=SCHEMA), given)

    (found,) = subject.snapshot.constraints
    assert found.parameters == {"must": "a", "def": {"d": 7}}
    assert found.document["spec"]["enforcementAction"] == "deny"
    assert given["spec"]["parameters"]["def"] == {}


def test_the_crd_is_gatekeepers():
    document = template(schema={"type": "object"})
    document["metadata"]["labels"] = {"team": "a", "gatekeeper.sh/constraint": "no"}
    document["spec"]["crd"]["spec"]["names"]["shortNames"] = ["kd"]

    crd = client().create_crd(document)

    assert crd["metadata"]["name"] == "k8sdeny.constraints.gatekeeper.sh"
    assert crd["metadata"]["labels"] == {"team": "a", "gatekeeper.sh/constraint": "yes"}
    assert crd["spec"]["names"] == {
        "kind": "K8sDeny",
        "listKind": "K8sDenyList",
        "plural": "k8sdeny",
        "singular": "k8sdeny",
        "shortNames": ["kd"],
        "categories": ["constraint", "constraints"],
    }
    assert [(version["name"], version["storage"]) for version in crd["spec"]["versions"]] == [
        ("v1beta1", True),
        ("v1alpha1", False),
    ]
    for version in crd["spec"]["versions"]:
        columns = [column["name"] for column in version["additionalPrinterColumns"]]
        assert columns == ["enforcement-action", "total-violations", "state", "reason", "enforced"]
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert spec["properties"]["enforcementAction"] == {"type": "string", "default": "deny"}
    assert spec["properties"]["parameters"] == {"type": "object"}


UNIQUE = (
    "spec.validation.openAPIV3Schema.properties[spec].properties[parameters].properties[u]"
    ".uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity "
    "becomes quadratic"
)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"u": {"type": "array", "items": {"type": "string"}, "uniqueItems": True}}, UNIQUE),
        ({"u": {}}, "[u].type: Required value: must not be empty for specified object fields"),
        (
            {"u": {"type": "array", "items": {}}},
            "[u].items.type: Required value: must not be empty for specified array items",
        ),
        ({"u": {"type": "array"}}, "[u].items: Required value: must be specified"),
        ({"u": {"type": "text"}}, '[u].type: Unsupported value: "text"'),
        ({"u": {"type": "string", "pattern": "("}}, "must be a valid regular expression"),
        ({"u": {"type": "string", "$ref": "#/x"}}, "[u].$ref: Forbidden: $ref is not supported"),
        (
            {"u": {"type": "string", "not": {"type": "string"}}},
            "[u].not.type: Forbidden: must be empty to be structural",
        ),
        ({"u": 3}, "[u]: Invalid value: must be an object"),
        (
            {
                "u": {
                    "type": "object",
                    "properties": {"a": {"type": "string"}},
                    "additionalProperties": {"type": "string"},
                }
            },
            "additionalProperties and properties are mutual exclusive",
        ),
        (
            {
                "u": {
                    "x-kubernetes-int-or-string": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                }
            },
            "must be false if x-kubernetes-int-or-string is true",
        ),
        (
            {"u": {"type": "string", "x-kubernetes-embedded-resource": True}},
            "must be object if x-kubernetes-embedded-resource is true",
        ),
        (
            {
                "u": {
                    "type": "object",
                    "properties": {"a": {"type": "string"}},
                    "anyOf": [{"properties": {"a": {"items": {"type": "string"}}}}],
                }
            },
            "[u].anyOf[0].properties[a].items.type: Forbidden: must be empty to be structural",
        ),
    ],
)
def test_a_schema_that_makes_no_crd_is_refused(properties, message):
    schema = {"type": "object", "properties": properties}

    with pytest.raises(InvalidTemplate) as refusal:
        client(template(schema=schema))

    assert message in str(refusal.value)
    assert str(refusal.value).startswith("invalid ConstraintTemplate: ")


def test_names_that_make_no_crd_are_refused():
    document = template("K8s_Deny")
    document["spec"]["crd"]["spec"]["names"]["shortNames"] = ["A"]

    with pytest.raises(InvalidTemplate) as refusal:
        client(document)

    assert 'spec.names.kind: Invalid value: "K8s_Deny": may have mixed case' in str(refusal.value)
    assert 'spec.names.shortNames[0]: Invalid value: "A": a DNS-1035' in str(refusal.value)


def test_an_enum_compares_numbers_by_value_and_truth_with_truth_alone():
    assert not faults(1.0, {"type": "number", "enum": [1, 2]})
    assert faults(3.0, {"type": "number", "enum": [1, 2]})
    assert not faults([True], {"enum": [[True]]})
    assert faults([1], {"enum": [[True]]})


def test_int_or_string_may_be_written_as_alternatives():
    alternatives = [{"type": "integer"}, {"type": "string"}]
    port = {"x-kubernetes-int-or-string": True, "anyOf": alternatives}

    document = template(schema={"type": "object", "properties": {"port": port}})
    assert len(client(document).snapshot.templates) == 1


def test_a_legacy_schema_lets_any_parameter_in_and_older_versions_have_it_by_default():
    loose = {"properties": {"a": {}, "b": {"type": "array"}}}
    wild = constraint(parameters={"x": {"y": 1}, "b": [1, {"c": 2}]})

    assert client(template(schema=loose, version="v1beta1")).add_constraint(wild)
    assert client(template(version="v1alpha1")).add_constraint(wild)
    with pytest.raises(InvalidTemplate):
        client(template(schema=loose))
    with pytest.raises(InvalidConstraint, match=r"unknown fields: \[spec.parameters\]"):
        client(template()).add_constraint(wild)
