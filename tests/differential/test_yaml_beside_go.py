"""YAML means to each door what it means to the tool whose place Waddle takes."""

from __future__ import annotations

import ast
import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import webhook
from tests.patience import PATIENCE_SECONDS
from webhook import parsers
from webhook.api.documents import InvalidDocument, read_documents
from webhook.parsers.errors import ParseError
from webhook.parsers.numbers import plain
from webhook.policies.rego_files import yaml_value
from webhook.rego.errors import BuiltinError
from webhook.rego.run.text import json_text

if TYPE_CHECKING:
    from tests.programs import Programs

SCALARS = (
    *('!!binary "!!"', "!!binary aGk=", '!!binary "a\n  Gk="', "!!set {a, b}", "!!omap [a: 1]"),
    *("!!timestamp 2020-01-01", "!!timestamp x", '!!timestamp "2020-01-01"', '!!int "x"'),
    *('!!int "5"', "!!int 5.0", "!!int 08", "!!int 1_000", '!!int "0o17"', "!!int 0x1F"),
    *("!!float x", "!!float 5", '!!float "1.5"', "!!bool yes", "!!bool x", "!!bool True"),
    *("!!null x", '!!null ""', "!!str 5", "!custom z", "!custom {a: 1}", "!!seq {a: 1}"),
    *("!!map [1]", "!!python/object:os.system x", "!!unknown x", "! 5", "!e!x y", "!!str [1]"),
    *("!<tag:yaml.org,2002:int> 5", "!!str {a: 1}", "!!int [1]", "!!binary [1]", "!!merge x"),
    *(".nan", "-.INF", "=", "0o17", "017", "1_000", "0b11", "1:30", "2020-01-01", "0x", "1e400"),
    *("1e5", "+5", ".5", "5.", "~", "yes", "on", "y", "Null", "9" * 310, "9" * 5000),
    *("0x" + "f" * 400, "1e99999", "9223372036854775808", "18446744073709551616", "1.0", "-0"),
    *("08", "0_8", "_1", "1_", "{true: 1, 5: 2, 1.5: 3}", "{~: 1}", "{[a]: 1}", "{{a: 1}: 1}"),
    *("{a: 1, a: 2}", "{? a}", '"\\ud800"', '"\\x41"', '"\\q"', "'a\tb'", "a\tb", "a # b"),
    *("@a", "`a`", "%a", "*a", "&a [*a]", "[&a b, *a]", "[a, ]", "[a, , b]", "{a, b}"),
    *("|\n  x\n  y", ">-\n  x\n  y", "{1e3: x}", "{yes: x}", "0o8", "0b2", "1e", "++1", "1e21"),
    *("123456789012345678901234567890", "-9223372036854775809", "2001-1-1", "1e-7", "1e22"),
    *("{.inf: 1}", "{-.Inf: 1, .nan: 2}", "{!!float .INF: x}", "{x: {.inf: .inf}}", "[.inf]"),
    *('"a\\/b"', '"a\\\\/b"', '{"a\\/": 1}', "'a\\/b'", '"a\n  \\/b"', '[1, "é\\/"]'),
    *(
        '"it\\\'s"',
        "\"\\\\' é \\'\"",
        "'a\\'",
        "it\\'s",
        '{"\\\'": "b\n  \\\'"}',
        '["\\\'", "\\q"]',
    ),
    *("[\"\\'\", 'a\\', \"\\'\"]", "|\n  it\\'s \"c\\'\"", '"a # \\\'" # "\\\'"'),
)
MERGES = (
    *("{<<: {a: 1}, a: 2}", "{a: 2, <<: {a: 1}}", "{<<: [{a: 1}, {a: 2}]}", "{<<: 5}"),
    *("{<<: {a: 1}, <<: {a: 2}}", "{!!merge <<: {a: 1}, b: 2}", '{"<<": {a: 1}}', "{<<: [5]}"),
    *("{<<: ~}", "{<<: &q {a: 1}, b: *q}", "{!!merge a: {a: 1}}", "{!!str <<: {a: 1}}"),
    *("{! <<: {a: 1}}", "[<<]", "<<", "{<<: {<<: {a: 1}}}", "{a: 1, <<: {a: 2}, a: 3}"),
    *("{<<: {}}", '{!!merge "<<": {a: 1}}'),
)
WHOLE = (
    *("a: 1\n---\nb: 2\n", "a: 1\r\n---\r\nb: 2\r\n", "---\na: 1\n", "--- {a: 1}\n"),
    *("a: 1\n--- # c\nb: 2\n", "a: 1\n---   \nb: 2\n", "a: 1\n--- {b: 2}\n", "a: 1\n...\nb: 2\n"),
    *("%YAML 1.1\n---\na: 1\n", "%YAML 1.2\n---\na: 1\n", "%YAML 3.0\n---\na: 1\n"),
    *("\ufeffa: 1\n", "a: \x00\n", "a: \x01\n", "a: \x7f\n", "a: 1\rb: 2\r", "\ta: 1\n"),
    *(
        "a:\n\tb: 1\n",
        "a:\t1\n",
        "a: 1\t\nb: 2\n",
        "a: 1\n b: 2\n",
        "a: [1\n",
        'a: "x\n',
        "",
        "5\n",
    ),
    *("# c\n", "null\n", "[1]\n", "a\n---\nb\n", "a: |\n  x\n  ---\n  y\n", " ---\na: 1\n"),
    *("a: 1\n---\nb: [\n", "a: &x 1\n---\nb: *x\n", '{"a": 1}{"b": 2}\n', '{"a": 1} x\n'),
    *("a: 1\na: 2\n", "a: é\n", "\U0001f600: 1\n"),
)
TEXTS = [*(f"x: {text}\n" for text in (*SCALARS, *MERGES)), *WHOLE]


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command, capture_output=True, check=False, cwd=folder, text=True, timeout=PATIENCE_SECONDS
    )
    return done.stdout


def same(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def ours(read: Any) -> dict[int, str]:
    found = {}
    for at, text in enumerate(TEXTS):
        try:
            found[at] = same(read(text))
        except (ParseError, BuiltinError, InvalidDocument):
            continue
    return found


def differences(one: dict[int, str], other: dict[int, str]) -> list[Any]:
    keys = sorted(one.keys() | other.keys())
    return [
        (TEXTS[at][:80], one.get(at, "refused")[:200], other.get(at, "refused")[:200])
        for at in keys
        if one.get(at) != other.get(at)
    ]


def test_as_opa(program: Programs, tmp_path: Path):
    (tmp_path / "input.json").write_text(json.dumps(TEXTS))
    query = "{format_int(i, 10): v | v := yaml.unmarshal(input[i])}"
    out = run([str(program("opa")), "eval", "-i", "input.json", "-f", "raw", query], tmp_path)
    theirs = {int(at): same(value) for at, value in json.loads(out).items()}

    assert differences(ours(lambda text: json.loads(json_text(yaml_value(text)))), theirs) == []


def test_as_conftest(program: Programs, tmp_path: Path):
    (tmp_path / "input.json").write_text(json.dumps({"texts": TEXTS}))
    (tmp_path / "p.rego").write_text(
        "package main\nimport rego.v1\ndeny contains msg if {\n"
        '\tv := parse_config("yaml", input.texts[i])\n\tmsg := json.marshal([i, v])\n}\n'
    )
    command = [str(program("conftest")), "test", "-p", "p.rego", "-o", "json", "input.json"]
    out = json.loads(run(command, tmp_path))
    listed = [json.loads(failure["msg"]) for failure in out[0]["failures"]]
    theirs = {at: same(plain(value)) for at, value in listed}

    found = ours(lambda text: plain(parsers.parse("yaml", text.encode(), "v.yaml")))
    assert differences(found, theirs) == []


def test_kubernetes_reads_scalars_and_merges_as_conftest_does():
    """Both have ``sigs.k8s.io/yaml``; a number that nobody can mean is told of an object."""
    for text in (*SCALARS, *MERGES):
        if text.startswith("9" * 310):
            with pytest.raises(InvalidDocument, match="digits is beyond"):
                read_documents(f"x: {text}\n")
            continue
        whole = f"x: {text}\n"
        try:
            kubernetes = same([item.value for item in read_documents(whole)])
        except InvalidDocument:
            kubernetes = "refused"
        try:
            conftest = same([plain(parsers.parse("yaml", whole.encode(), "v.yaml"))])
        except ParseError:
            conftest = "refused"
        assert kubernetes == conftest, text[:80]


@pytest.mark.parametrize("text", ["[" * 12_000, "x: " + "[" * 12_000 + "]" * 12_000])
def test_nesting_without_end_is_refused(text):
    with pytest.raises(InvalidDocument):
        read_documents(text)


READING = {
    "load",
    "load_all",
    "safe_load",
    "safe_load_all",
    "full_load",
    "parse",
    "scan",
    "compose",
}


WITH_PLACES = ["policies/field_lines.py", "rego/syntax/annotations.py"]
"""Modules that name the line of a part of a text, for which they need nodes."""


def test_one_module_reads_yaml():
    """All other uses of the library write, but for two that look at nodes."""
    root = Path(webhook.__file__).parent
    others = []
    for file in sorted(root.rglob("*.py")):
        tree = ast.parse(file.read_text())
        names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        imports = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        loaders = {name for name in names if name.endswith("Loader")}
        if "yaml" in imports and (names & READING or loaders):
            others.append(str(file.relative_to(root)))
        assert not imports & {"ruamel", "ruamel.yaml"}

    assert others == ["api/yaml_reader.py", *WITH_PLACES]
