"""Metadata blocks, what they are attached to, and the chain that leads to a rule."""

import pytest

from webhook.rego.syntax.metadata import Metadata
from webhook.rego.syntax.parser import parse_module

LIBRARY = """# METADATA
# title: The package
# scope: subpackages
# authors:
# - Ann Author <ann@example.com>
# - name: Bob
# METADATA
# description: only here
package a.b

# METADATA
# title: Nearer the sky
# related_resources:
# - https://example.com
# - ref: https://example.org
#   description: more
# METADATA
# title: Nearer the rule
# custom:
#   when: 2026-01-01
#   yes: no
p := 1

# METADATA
# entrypoint: true
# organizations: [one, two]
# schemas:
# - input.x: schema.y
q.r[x] := x if some x in [1]
"""


def test_blocks_are_attached_to_what_follows():
    """Without a scope: rule, package, or document for an entrypoint."""
    module = parse_module(LIBRARY)
    assert [one.scope for one in module.annotations] == [
        "subpackages",
        "package",
        "rule",
        "rule",
        "document",
    ]
    assert [len(rule.annotations) for rule in module.rules] == [2, 1]
    assert module.rules[1].annotations[0].value == {
        "scope": "document",
        "entrypoint": True,
        "organizations": ["one", "two"],
        "schemas": [{"path": ["input", "x"], "schema": ["schema", "y"]}],
    }


def test_the_chain_goes_from_the_rule_outwards():
    """Rule, nearest block first; document; package; subpackages."""
    module = parse_module(LIBRARY)
    metadata = Metadata([module])
    chain = metadata.chain(module, module.rules[0])
    assert metadata.errors == []
    assert [(link["path"], link["annotations"]["scope"]) for link in chain] == [
        (["a", "b", "p"], "rule"),
        (["a", "b", "p"], "rule"),
        (["a", "b"], "package"),
        (["a", "b"], "subpackages"),
    ]
    assert chain[0]["annotations"]["custom"] == {"when": "2026-01-01", "yes": "no"}
    assert chain[1]["annotations"]["related_resources"] == [
        {"ref": "https://example.com"},
        {"ref": "https://example.org", "description": "more"},
    ]
    assert chain[3]["annotations"]["authors"] == [
        {"name": "Ann Author", "email": "ann@example.com"},
        {"name": "Bob"},
    ]
    assert metadata.rule(module.rules[0])["title"] == "Nearer the sky"


def test_a_rule_without_annotations_leads_its_chain_all_the_same():
    """The entry has only the path, up to the first variable."""
    module = parse_module("package a\np.q[x] := 1 if some x in [1]")
    assert Metadata([module]).chain(module, module.rules[0]) == [{"path": ["a", "p", "q"]}]
    assert Metadata([module]).rule(module.rules[0]) == {}


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("# METADATA\n\np := 1", "expected METADATA block, found whitespace"),
        ("# METADATA\n# scope: rule", "annotation scope 'rule' must be applied to rule"),
        (
            "# METADATA\n# scope: package\np := 1",
            "annotation scope 'package' must be applied to package (have rule)",
        ),
        (
            "# METADATA\n# scope: nowhere\np := 1",
            "invalid annotation scope 'nowhere'. Use one of 'rule', 'document', 'package', ",
        ),
        (
            "# METADATA\n# scope: rule\n# entrypoint: true\np := 1",
            "annotation entrypoint applied to non-document or package scope 'rule'",
        ),
        ("# METADATA\n# title: [\np := 1", "yaml: line"),
        ("# METADATA\n# title: a\n# title: b\np := 1", 'mapping key "title" already defined'),
        (
            "# METADATA\n# custom: 1\np := 1",
            "line 1: cannot unmarshal !!int `1` into map[string]interface {}",
        ),
        ("# METADATA\n# authors: [1]\np := 1", "invalid value type, must be string or map"),
        ("# METADATA\n# schemas:\n# - 'a b': schema\np := 1", "invalid document reference"),
        ("# METADATA\n# custom: {1: 2}\np := 1", "invalid map key type(s): 1"),
        ("# METADATA\n# custom: " + "[" * 3000 + "\np := 1", "yaml: "),
    ],
)
def test_a_bad_block_is_an_error_only_where_metadata_is_asked_for(block, message):
    """A module with one loads; OPA looks at it when a policy calls rego.metadata."""
    module = parse_module(f"package a\n\n{block}\n", "f.rego")
    (fault,) = Metadata([module]).errors
    assert message in fault.message
    assert fault.code == "rego_parse_error"


def test_a_document_is_described_once():
    """The second description is refused, with the place of the first."""
    source = (
        "package a\n# METADATA\n# scope: document\np if x\n# METADATA\n# scope: document\np if y"
    )
    (fault,) = Metadata([parse_module(source, "f.rego")]).errors
    assert str(fault) == "f.rego:5: rego_type_error: document annotation redeclared: f.rego:2"
