"""Policies of config-validator's older form, in today's."""

from __future__ import annotations

import pytest

from tests.webhook.policies.old_library import LIBRARY, REGO, constraint, template
from webhook.policies.config_validator import ORIGINAL_NAME, below_lib, modernised


def test_libraries_move_below_lib_with_all_that_names_them():
    moved = below_lib(LIBRARY)

    assert moved.startswith("package lib.validator.gcp.lib\n# data.validator stays")
    assert "again(constraint) = data.lib.validator.gcp.lib.parameter(" in moved
    assert moved.count("lib.validator") == 2


def test_a_template_gets_its_kind_s_name_a_list_of_targets_and_libraries():
    found = modernised(template(), [LIBRARY])

    assert found["metadata"] == {"name": "oldv1", "annotations": {ORIGINAL_NAME: "gcp-old-v1"}}
    (target,) = found["spec"]["targets"]
    assert target["target"] == "validation.gcp.forsetisecurity.org"
    assert target["libs"] == [below_lib(LIBRARY)]
    assert "import data.lib.validator.gcp.lib as lib" in target["rego"]
    assert '"data.validator is only text"' in target["rego"]
    assert "violation[" in target["rego"]


def test_a_constraint_gets_a_name_that_can_be_one_and_today_s_patterns():
    found = modernised(constraint(target=["organization/*", "folder/1/*/project/x"], exclude=[]))

    assert found["metadata"] == {
        "name": "old-one",
        "annotations": {"a": "b", ORIGINAL_NAME: "Old_one"},
    }
    assert found["spec"]["match"] == {
        "target": ["organizations/**", "folders/1/**/projects/x"],
        "exclude": [],
    }


@pytest.mark.parametrize(
    "document",
    [
        {**template(), "apiVersion": "templates.gatekeeper.sh/v1"},
        template(targets=[{"target": "json", "rego": REGO}]),
        {**constraint(), "apiVersion": "constraints.gatekeeper.sh/v1beta1"},
        {"apiVersion": "v1alpha1", "kind": "Pod"},
        {},
    ],
)
def test_everything_else_stays_as_it_is(document):
    assert modernised(document, [LIBRARY]) is document


@pytest.mark.parametrize("rego", [None, 7, "package p\nnot rego at all {{"])
def test_what_is_broken_is_left_for_the_compiler_to_tell(rego):
    broken = template(targets={"t": {"rego": rego}, "u": 7})

    first, second = modernised(broken)["spec"]["targets"]

    assert first["target"] == "t"
    assert second == 7
