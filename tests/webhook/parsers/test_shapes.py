"""Values that each parser reads from a text, in conftest's shapes.

The shapes are the real one's: tests/conformance/test_conftest.py compares far more of them.
"""

import pytest

from webhook import parsers
from webhook.parsers.errors import ParseError

SHAPES = [
    ("json", '\ufeff{"a": [1, 2.0, 1e3, 1000000]}', {"a": [1, 2, 1000, 1e6]}),
    ("jsonc", '{"a": "//x" /* y */, // z\n "b": 1}', {"a": "//x", "b": 1}),
    ("yaml", "a: yes\nb: 0o7\nc: 010\nd: ~\n1: 2\ne: 2001-01-01", {"a": True, "b": 7, "c": 8, "1": 2, "e": "2001-01-01"}),
    ("yaml", "a: 1\n---\nb: 2\n", [{"a": 1}, {"b": 2}]),
    ("yaml", "---\na: 1\n", {"a": 1}),
    ("yaml", "%YAML 1.1\n---\na: 1\n", {"a": 1}),
    ("yaml", "b: &x {c: 1}\na:\n  <<: *x\n  d: !Sub e\n", {"b": {"c": 1}, "a": {"c": 1, "d": "e"}}),
    ("toml", "a = 1.0\nb = 1000000\nc = 1979-05-27T07:32:00Z", {"a": 1, "b": 10**6, "c": "1979-05-27T07:32:00Z"}),
    ("ini", "x = 1\n[a]\nb = true\nc = 1.5 ; d\ne = 'g'\n", {"a": {"b": True, "c": 1.5, "e": "g"}}),
    ("dotenv", "export A=1\nB='${A}'\nC=\"${A} x\" # y\n", {"A": "1", "B": "${A}", "C": "1 x"}),
    ("properties", "a.b = c\\\n  d\n! e\nf:g\\u0041\n", {"a.b": "cd", "f": "gA"}),
    ("xml", "<a b='1'>t<c>d</c><c/></a>", {"a": {"-b": "1", "#content": "t", "c": ["d", ""]}}),
    ("xml", "<x:a xmlns:x='y'><![CDATA[ <b> ]]></x:a>", {"a": {"-x": "y", "#content": "<b>"}}),
    ("hocon", "a { b = 1, c = [1, x], d = ${a.b} }\na.e = f g", {"a": {"b": 1, "c": "[1,x]", "d": 1, "e": '"f g"'}}),
    ("hcl2", 'a "b" "c" {\n  d = "x-${e.f}"\n  g = h[0]\n}\n', {"a": {"b": {"c": [{"d": "x-${e.f}", "g": "${h[0]}"}]}}}),
    ("hcl2", "a = -1\nb = [true, null]\nc = {d = 1, (e) = 2}\n", {"a": -1, "b": [True, None], "c": {"d": 1, "${(e)}": 2}}),
    ("hcl2", "a = <<-E\n    x\n      y\n  E\n", {"a": "x\n  y\n"}),
    ("hcl2", 'a = "%{if b}c%{else}d%{endif}"\nl {}\nl {}\n', {"a": "%{if b}c%{else}d%{endif}", "l": [{}, {}]}),
    ("hcl1", 'a "b" { c = [1, "d"] e = {f = true} }', {"a": [{"b": [{"c": [1, "d"], "e": [{"f": True}]}]}]}),
    ("edn", '{:a #{"b"} :c [1 nil 2.5] ; d\n}', {":a": "map[b:true]", ":c": ["1", "<nil>", "2.5"]}),
    ("ignore", "# a\n!b\n\nc \n", [[
        {"Kind": "Comment", "Value": "a", "Original": "# a"},
        {"Kind": "NegatedPath", "Value": "b", "Original": "!b"},
        {"Kind": "Empty", "Value": "", "Original": ""},
        {"Kind": "Path", "Value": "c", "Original": "c "},
        {"Kind": "Empty", "Value": "", "Original": ""},
    ]]),
    ("codeowners", "*.go @a/b # c\n", {"rules": [
        {"pattern": "*.go", "owners": [{"type": "team", "value": "a/b"}], "comment": "c", "lineNumber": 1}
    ]}),
    ("nginx", "a b 'c d';\ne { f; }", {"directives": [
        {"name": "a", "parameters": ["b", "'c d'"]},
        {"name": "e", "block": {"directives": [{"name": "f"}]}},
    ]}),
    ("jsonnet", "local x = 2; {a: x * 2, b::: 1}", {"a": 4, "b": 1}),
    ("cyclonedx", '{"bomFormat": "CycloneDX", "specVersion": "1.5"}', {"bomFormat": "CycloneDX", "specVersion": "1.5"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "shape"), SHAPES)
def test_a_text_has_conftests_shape(name, text, shape):
    found = parsers.parse(name, text.encode())

    if name == "yaml" and isinstance(shape, dict):
        found = {key: value for key, value in found.items() if key in shape}
    assert found == shape


def test_instructions_of_a_dockerfile_have_their_stage_flags_and_comments():
    text = (
        "# syntax=docker/dockerfile:1\n# base\nFROM --platform=x a AS b\nRUN apk add \\\n  # no\n  c\n"
        'FROM d\nCOPY --from=b /x /y\nENTRYPOINT ["e", "f"]\nONBUILD RUN g\nENV h=1 i="2 3"\n'
        "RUN <<EOF\nFROM no\nEOF\n"
    )

    (found,) = parsers.parse("dockerfile", text.encode())

    assert [(one["Cmd"], one["Stage"], one["Value"]) for one in found] == [
        ("comment", 0, ["base"]),
        ("from", 0, ["a", "AS", "b"]),
        ("run", 0, ["apk add   c"]),
        ("from", 1, ["d"]),
        ("copy", 1, ["/x", "/y"]),
        ("entrypoint", 1, ["e", "f"]),
        ("onbuild", 1, ["g"]),
        ("env", 1, ["h", "1", "=", "i", '"2 3"', "="]),
        ("run", 1, ["<<EOF"]),
    ]
    assert found[1]["Flags"] == ["--platform=x"]
    assert found[5]["JSON"] is True
    assert found[6]["SubCmd"] == "RUN"


def test_a_sbom_of_tags_has_the_shape_of_spdx_json():
    text = "SPDXVersion: SPDX-2.2\nDataLicense: CC0\nCreator: Tool: x\nPackageName: p\nSPDXID: SPDXRef-p\n"

    found = parsers.parse("spdx", text.encode())

    assert found["creationInfo"]["creators"] == ["Tool: x"]
    assert found["packages"][0]["name"] == "p"


PATHS = {
    "-": "yaml",
    "a/Dockerfile": "dockerfile",
    "Dockerfile.dev": "dockerfile",
    "dev.dockerfile": "dockerfile",
    "x.yml": "yaml",
    "main.tf": "hcl2",
    "x.tfvars": "hcl2",
    ".env.prod": "dotenv",
    "x.env": "dotenv",
    ".gitignore": "ignore",
    "nginx.conf": "nginx",
    "CODEOWNERS": "codeowners",
    "x.hcl.json": "json",
    "Jenkinsfile": "groovy",
}


@pytest.mark.parametrize("path", PATHS)
def test_a_files_name_says_its_parser(path):
    assert parsers.name_for(path) == PATHS[path]


@pytest.mark.parametrize("path", ["LICENSE", "x.unknown", "x."])
def test_a_name_that_says_none_is_refused(path):
    assert not parsers.is_supported(path)
    with pytest.raises(ParseError, match="unknown parser"):
        parsers.name_for(path)


@pytest.mark.parametrize("name", parsers.names())
def test_every_parser_can_be_had(name):
    assert callable(parsers.parser(name))


@pytest.mark.parametrize("name", parsers.LEFT_OUT)
def test_what_is_left_out_says_why(name):
    with pytest.raises(ParseError, match="is not supported"):
        parsers.parser(name)


def test_jsonnet_imports_from_the_files_folder_and_then_from_the_current_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app").mkdir()
    (tmp_path / "app/near.libsonnet").write_text("1")
    (tmp_path / "far.libsonnet").write_text("2")

    found = parsers.parse(
        "jsonnet", b'[import "near.libsonnet", import "far.libsonnet"]', "app/a.jsonnet"
    )

    assert found == [1, 2]
