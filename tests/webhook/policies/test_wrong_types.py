"""A value of a wrong type in any field of a kind from files is reported, where a cluster's CRD refuses it."""

from __future__ import annotations

import base64
from typing import Any

import pytest
import yaml

from tests.provider_process import make_authority
from tests.webhook.constraint.policies import constraint, template
from tests.webhook.policies.wrong_types import (
    CRDS,
    MATCH,
    WHOLE,
    changed,
    places,
    schema_of,
)
from webhook.constraint import structural
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.constraint.kind_schemas import (
    CONFIG,
    EXPANSION_TEMPLATE,
    MUTATOR,
    PROVIDER,
    SYNC_SET,
    TEMPLATE,
    unknown_fields,
)
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.policies.extensions import Extensions
from webhook.policies.manifests import Manifest

WRONG: tuple[Any, ...] = ("apps", 5, 1.5, True, [], ["x"], [5], [{}], {}, {"a": "b"}, "UP_per")


def fault_messages(document):
    """Returns the load's faults for an object of a file."""
    return [fault.message for fault in Extensions().load([Manifest(document, "a.yaml")])]


def variants(document):
    """Each field of the spec with each wrong value."""
    for path in places(document["spec"]):
        for value in WRONG:
            yield ("spec", *path), changed(document, ("spec", *path), value)


@pytest.mark.parametrize("crd", WHOLE)
def test_what_is_whole_is_taken(crd):
    document = WHOLE[crd]
    assert fault_messages(document) == []
    assert structural.faults(document, schema_of(crd, document["apiVersion"].split("/")[1])) == []


@pytest.mark.parametrize("crd", WHOLE)
def test_a_wrong_type_in_any_field_is_reported(crd):
    schema = schema_of(crd, WHOLE[crd]["apiVersion"].split("/")[1])
    silent = [
        (path, document["spec"])
        for path, document in variants(WHOLE[crd])
        if structural.faults(document, schema) and not fault_messages(document)
    ]
    assert silent == []


EXTERNAL = {
    "provider": "p",
    "dataSource": "Username",
    "failurePolicy": "UseDefault",
    "default": "d",
}


@pytest.mark.parametrize("crd", ["assign", "assignmetadata"])
@pytest.mark.parametrize(
    "source", [{"externalData": EXTERNAL}, {"fromMetadata": {"field": "name"}}]
)
def test_a_wrong_type_in_any_field_of_a_value_s_source_is_reported(crd, source):
    whole = changed(WHOLE[crd], ("spec", "parameters", "assign"), source)
    assert fault_messages(whole) == []
    schema = schema_of(crd, whole["apiVersion"].split("/")[1])
    silent = [
        path
        for path, document in variants(whole)
        if structural.faults(document, schema) and not fault_messages(document)
    ]
    assert silent == []


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"dataSource": "username"}, "dataSource: Unsupported value"),
        ({"failurePolicy": "ignore"}, "failurePolicy: Unsupported value"),
        ({"provider": None}, "provider: Required value"),
        ({"providr": "p"}, 'providr: unknown field, without effect: is "provider" meant?'),
    ],
)
def test_a_word_that_external_data_does_not_know_is_reported(changes, fault):
    assign = {"externalData": {**EXTERNAL, **changes}}
    whole = changed(WHOLE["assign"], ("spec", "parameters", "assign"), assign)
    assert fault in str(fault_messages(whole))


def test_a_wrong_type_in_any_field_of_a_match_is_reported():
    client = Client(targets=[AdmissionTarget()], drivers=[RegoDriver()])
    client.add_template(template())
    schema = AdmissionTarget().match_schema()
    whole = constraint(match=MATCH)
    client.validate_constraint(whole)
    silent = []
    for path, document in variants(whole):
        if path[:2] != ("spec", "match"):
            continue
        try:
            client.validate_constraint(document)
        except ConstraintFrameworkError:
            continue
        if structural.faults(document["spec"]["match"], schema):
            silent.append(path)
    assert silent == []


def without_words(schema):
    """A schema without what it says to people."""
    if isinstance(schema, dict):
        return {key: without_words(item) for key, item in schema.items() if key != "description"}
    return [without_words(item) for item in schema] if isinstance(schema, list) else schema


@pytest.mark.parametrize(
    ("crd", "schema"),
    [("expansiontemplate", EXPANSION_TEMPLATE), ("configs", CONFIG), ("syncsets", SYNC_SET)],
)
def test_the_schemas_are_those_of_the_crds(crd, schema):
    document = yaml.safe_load((CRDS / f"{crd}.yaml").read_text())
    for version in document["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        assert without_words(spec) == without_words(schema)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"match": [{"processes": ["webhok"]}]}, 'spec.match: unknown process "webhok"'),
        ({"match": {"processes": ["*"]}}, "spec.match in body must be of type array"),
        ({"match": [{"excludedNamespaces": ["UP"]}]}, "spec.match[0].excludedNamespaces[0]"),
        ({"sync": {"syncOnly": "Pod"}}, "spec.sync.syncOnly in body must be of type array"),
    ],
)
def test_what_a_config_says_without_effect_is_reported(spec, message):
    (fault, *_) = fault_messages({**WHOLE["configs"], "spec": spec})
    assert message in fault


@pytest.mark.parametrize("crd", ["assign", "assignimage", "expansiontemplate"])
def test_a_version_that_no_api_server_has_is_reported(crd):
    whole = WHOLE[crd]
    group, _, version = whole["apiVersion"].partition("/")
    (fault,) = fault_messages({**whole, "apiVersion": f"{group}/v9"})
    assert fault.startswith("unsupported version v9, supported: v1")
    assert version in fault


def test_null_is_as_if_nothing_were_there():
    assert (
        fault_messages({**WHOLE["configs"], "spec": {"match": None, "sync": {"syncOnly": None}}})
        == []
    )


def test_every_field_of_a_mutator_s_crds_is_known():
    """A field that a CRD has must not be named as unknown."""
    unknown = []
    for crd in ("assign", "assignmetadata", "modifyset", "assignimage"):
        for version in yaml.safe_load((CRDS / f"{crd}.yaml").read_text())["spec"]["versions"]:
            spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
            unknown += unknown_fields({"spec": instance(spec)}, MUTATOR)
    assert unknown == []


def instance(schema):
    """A value with each property of a schema."""
    if "properties" in schema:
        return {name: instance(item) for name, item in schema["properties"].items()}
    return [instance(schema["items"])] if "items" in schema else "x"


@pytest.mark.parametrize("crd", WHOLE)
def test_an_unknown_field_is_reported(crd):
    (fault,) = fault_messages(changed(WHOLE[crd], ("spec", "unheard"), "x"))
    assert fault == "spec.unheard: unknown field, without effect"


@pytest.mark.parametrize(
    ("crd", "path", "fault"),
    [
        ("assign", ("match", "namespace"), 'spec.match.namespace: U: is "namespaces" meant?'),
        ("assign", ("parameters", "asign"), 'spec.parameters.asign: U: is "assign" meant?'),
        ("expansiontemplate", ("generatedGKV",), 'spec.generatedGKV: U: is "generatedGVK" meant?'),
        (
            "configs",
            ("match", 0, "excludedNamespace"),
            'spec.match[0].excludedNamespace: U: is "excludedNamespaces" meant?',
        ),
        ("syncsets", ("gvks", 0, "groups"), 'spec.gvks[0].groups: U: is "group" meant?'),
    ],
)
def test_the_field_that_was_meant_is_named(crd, path, fault):
    whole = WHOLE[crd]
    if crd == "assign":
        whole = changed(whole, ("spec", "match"), {})
    (found,) = fault_messages(changed(whole, ("spec", *path), ["x"]))
    assert found == fault.replace("U", "unknown field, without effect")


def test_an_unknown_field_of_a_provider_is_reported():
    bundle = base64.b64encode(make_authority().certificate).decode()
    provider = {
        "apiVersion": "externaldata.gatekeeper.sh/v1beta1",
        "kind": "Provider",
        "metadata": {"name": "p"},
        "spec": {"url": "https://p.example/", "timeot": 5, "caBundle": bundle},
    }
    fault = 'spec.timeot: unknown field, without effect: is "timeout" meant?'
    assert fault_messages(provider) == [fault]


@pytest.mark.parametrize("kind", ["providers", "constrainttemplates"])
def test_every_field_of_a_crd_is_known(kind):
    schema = {"providers": PROVIDER, "constrainttemplates": TEMPLATE}[kind]
    for version in yaml.safe_load((CRDS / f"{kind}.yaml").read_text())["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        assert unknown_fields({"spec": instance(spec)}, schema) == []


def test_of_many_unknown_fields_five_are_named():
    many = {f"field-{number}": 1 for number in range(100)}
    assert len(fault_messages({**WHOLE["configs"], "spec": many})) == 5
