"""Modules parsed by policies."""

import pytest

from webhook.rego.builtins.registry import BUILTINS
from webhook.rego.errors import BuiltinError
from webhook.rego.run.limits import EvaluationContext


def parse(source):
    return BUILTINS["rego.parse_module"].function(EvaluationContext(), "x.rego", source)


def test_a_module_is_opas_tree():
    found = parse("package a.b\n# c\nimport data.x as y\np contains v if some v in y.z")
    assert found["package"]["path"][2] == {"type": "string", "value": "b"}
    assert found["imports"][0]["alias"] == "y"
    (rule,) = found["rules"]
    assert rule["head"] == {
        "name": "p",
        "ref": [{"type": "var", "value": "p"}],
        "key": {"type": "var", "value": "v"},
    }
    (call,) = rule["body"][0]["terms"]["symbols"]
    assert call["value"][0]["value"][1] == {"type": "string", "value": "member_2"}
    assert found["comments"] == [
        {"Text": "IGM=", "Location": {"file": "x.rego", "row": 2, "col": 1}}
    ]


def test_a_source_with_a_fault_is_an_error_with_its_place():
    with pytest.raises(BuiltinError, match=r"x\.rego:1: rego_parse_error: unexpected eof token"):
        parse("package foo.")


def test_repeated_keys_and_constants_in_templates_are_kept_as_opa_keeps_them():
    found = parse('package a\np := {"k": 2, "k": 1}\nq := $"{1}{1.50}"')
    one, other = (rule["head"]["value"]["value"] for rule in found["rules"])
    assert [value["value"] for _, value in one] == [2, 1]
    assert [part["type"] for part in other["parts"]] == ["number", "number"]
    assert str(other["parts"][1]["value"].text) == "1.50"


def test_annotations_are_not_read():
    found = parse("package a\n# METADATA\n# title: t\np := 1")
    assert "annotations" not in found
    assert "annotations" not in found["rules"][0]
