"""conftest's acceptance tests and examples, and files made up here, beside the real conftest."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from tests.conformance import bats
from tests.conformance.gatekeeper import CONFORMANCE
from tests.patience import PATIENCE_SECONDS
from tests.webhook.cli.in_process import Run, waddle

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SOURCE = CONFORMANCE / "conftest"
WADDLE = (sys.executable, "-m", "webhook", "conftest")

if not SOURCE.is_dir():
    pytest.skip(f"no {SOURCE}: set WADDLE_CONFORMANCE", allow_module_level=True)

NETWORK = {"Can update policies in test command"}
LEFT_OUT = {
    "Can parse cue files",
    "Can parse vcl files",
    "Can parse Groovy from stdin",
    "Can test a Jenkinsfile with the Groovy parser",
    "Can test a safe Jenkinsfile",
    "TextProto policy fails when the proto messages could not be resolved",
    "TextProto policy returns expected results",
}
CASES = [
    case for case in bats.cases(SOURCE / "acceptance.bats") if case.title not in NETWORK | LEFT_OUT
]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory, program) -> tuple[Path, Path]:
    """Folders where `./conftest` is ours, and the real one."""
    found = []
    for name, command in (("ours", WADDLE), ("theirs", (str(program("conftest")),))):
        folder = tmp_path_factory.mktemp(name)
        bats.prepare(folder, SOURCE, command)
        found.append(folder)
    return found[0], found[1]


def test_only_the_network_and_named_formats_are_left_out():
    titles = {case.title for case in bats.cases(SOURCE / "acceptance.bats")}

    assert titles >= NETWORK | LEFT_OUT
    assert len(CASES) == len(titles) - len(NETWORK | LEFT_OUT)


@pytest.mark.parametrize("case", CASES, ids=[case.title for case in CASES])
def test_conftests_acceptance_test_passes(prepared, case):
    ours, theirs = prepared

    assert bats.run(case, theirs) == "", "the real conftest fails it here"
    assert bats.run(case, ours) == ""


# --- the same answers ------------------------------------------------------------------------


def both(
    prepared: tuple[Path, Path], *arguments: str, stdin: str = ""
) -> tuple[subprocess.CompletedProcess[str], Run]:
    """Returns the results of the real conftest and of ours."""
    return real_run(prepared[1], *arguments, stdin=stdin), here(
        prepared[0], *arguments, stdin=stdin
    )


def here(folder: Path, *arguments: str, stdin: str = "") -> Run:
    """Ours in this process; the acceptance tests run it as a process of its own."""
    given = io.TextIOWrapper(io.BytesIO(stdin.encode()))
    with mock.patch.dict(os.environ, {"HOME": str(folder)}):
        return waddle("conftest", *arguments, cwd=folder, stdin=given)


def real_run(folder: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Returns the result of the real conftest."""
    return subprocess.run(
        ["./conftest", *arguments],
        cwd=folder,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
        env={**os.environ, "HOME": str(folder)},
    )


def examples() -> Iterator[tuple[str, list[str]]]:
    """Each example's folder with arguments that test its files against its policies."""
    root = SOURCE / "examples"
    for policy in sorted(root.rglob("policy")):
        beside = policy.parent
        name = str(beside.relative_to(root))
        files = [
            str(path.relative_to(SOURCE))
            for path in sorted(beside.iterdir())
            if path.is_file() and path.suffix not in {".md", ".ts", ".lock", ".tfplan"}
        ]
        for file in files:
            if name.split("/", maxsplit=1)[0] not in {"cue", "jenkins", "textproto", "vcl", "ts"}:
                yield name, ["-p", f"examples/{name}/policy", "--all-namespaces", file]


EXAMPLES = list(examples())
FORMATS = ("json", "stdout", "tap", "table", "junit", "github", "azuredevops", "sarif")


@pytest.mark.slow
@pytest.mark.parametrize("output", FORMATS)
def test_every_example_has_the_real_ones_results_in_every_format(prepared, output):
    # In formats without order of their own one file at a time has one; all are asked in JSON.
    chosen = EXAMPLES if output == "json" else EXAMPLES[:: 1 + len(EXAMPLES) // 12]

    for name, arguments in chosen:
        a, b = both(prepared, "test", *arguments, "-o", output)
        assert b.returncode == a.returncode, (name, a.stderr, b.stderr)
        assert comparable(b.stdout, output) == comparable(a.stdout, output), (name, arguments)
        if output == "sarif":
            metadata = metadata_by_rule(
                real_run(prepared[1], "test", *arguments, "-o", "json").stdout
            )
            for shown in (a.stdout, b.stdout):
                for rule in sarif_rules(shown):
                    assert rule["properties"] in metadata.get(rule["id"], [rule["properties"]])


def comparable(text: str, output: str) -> object:
    """Returns the output without versions and without the random order of rules."""
    if output == "json":
        return by_name(json.loads(text or "null"))
    if output == "sarif":
        document = json.loads(text or "null")
        if document:
            document["runs"][0]["tool"]["driver"].pop("version")
            for result in document["runs"][0]["results"]:
                result.pop("ruleIndex")
            # The real one takes them of the first result, and iterates over modules in a Go map.
            for rule in document["runs"][0]["tool"]["driver"]["rules"]:
                rule.pop("properties", None)
        return by_name(document)
    text = re.sub(r'<property name="[a-z.]*version" value="[^"]*">', "", text)
    return sorted(re.sub(r"^((?:not )?ok) \d+", r"\1", text, flags=re.MULTILINE).splitlines())


def sarif_rules(text: str) -> list[dict[str, Any]]:
    return json.loads(text)["runs"][0]["tool"]["driver"]["rules"] if text else []


def metadata_by_rule(text: str) -> dict[str, list[object]]:
    """The metadata of each result in JSON, under the id that its rule has in SARIF."""
    found: dict[str, list[object]] = defaultdict(list)
    for file in json.loads(text or "null") or ():
        for kind, rule in (("failures", "deny"), ("warnings", "warn"), ("exceptions", "allow")):
            for result in file.get(kind, ()):
                found[f"{file['namespace']}/{rule}"].append(result["metadata"])
    return found


def by_name(value: object) -> object:
    """The value with its arrays in an order of their own."""
    if isinstance(value, dict):
        return {name: by_name(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return sorted(map(by_name, value), key=lambda one: json.dumps(one, sort_keys=True))
    return value


TEXTS = {
    "yaml": (
        ("b: 0o7\nc: 010\nd: 1_000\ne: 2001-01-01\nf: 1:30\ng: 0x1F\ni: 1e3\nj: y\nk: !!binary aGk=\n"
        "l: !!float 3\nm: !x {n: [1]}\nq: 1000000\nr: .5\ns: <<\n1.5: z\ntrue: w\n"),
        "a: &a {b: 1}\nc:\n  b: 5\n  <<: *a\nd:\n  <<: [{q: 1}, {q: 2}]\n  r: |\n    x\n   \n",
        "a: 1\n---\n---\n# nothing\n---\n- 1\n- 2\n",
        "%YAML 1.1\n---\na: 1\n---\nb: 2\n---\nc: 3\n",
        "",
        "--- \na: 1\n---\nb: 2\n",
        "a: 1\r\n---\r\nb: 2\r\n",
    ),
    "json": ('{"a": [1, 1.0, 1e3, 123456789, 1e21, -0.5e-7], "b": "\\u00e9\\ud800"}', "[1, 2]", "null"),
    "jsonc": ('{"a": 1, // b\n /* c */ "d": "// e"}',),
    "toml": ('a = 1\nb = 1.5\nc = [1, 2]\n[d]\ne = "f"\n[[g]]\nh = 1\n[[g]]\nh = 2\n', "a = 1000000\nb = 1e6\n"),
    "ini": (
        "a = 1\n[b]\nc = true\nd = 'e f' ; g\nh : 2\ni = j#k\n\"l m\" = n\n- = o\n- = p\n",
        '[a]\nb = """\nc"""\n',
        '[a]\nb = 1_000\nc = 0x1p-2\nd = inf\ne = T\nf = """x\ny"""\ng = h \\\n  i\n',
    ),
    "dotenv": ("A='b\nC='d'\n", "A=1\nexport B=${A}x\nC='$A'\nD=\"a\\nb\"\nE: f\nG=h # i\n"),
    "properties": ("a=b\nc:d\ne f\ng\\ h=i\\\n  j\nk=\\u0041\nl\n# m=n\n",),
    "xml": (
        "<a b='c'><d>e</d><d/>f</a>",
        "<a>x<b/>\n</a>",
        "<n:a xmlns:n='m' n:b='c'><![CDATA[ x ]]><!-- y -->z</n:a>",
    ),
    "ignore": ("\u00e9\n!\u00e9\n#\u00e9\n", "a\n#b\n!c\n\n d \\\\e \n"),
    "codeowners": ("* @a\n/b/ @c/d e@f.gh # i\n\\#x @y\n",),
    "edn": ('{:a 1 :b [true nil 2.5 "c"] :d #{1} :e/f (1 2) :g \\h}',),
    "nginx": (
        "upstream u { server a backup b=1 a=2; ip_hash; }\nhttp { server { listen 1; } gzip on; }\n",
        "user a;\nevents { worker_connections 'e f'; }\nhttp { server { listen 80 \"g\"; } }\n# i\n"),
    "hcl1": (
        'a "b" "c" { d = 1 e = 0.5 f = [1, "x"] g = { h = true } }\na "b" "i" {}\n',
        'a = "${b("c")}"\nd { e = <<F\nx\nF\n}\nd {}\n',
        "a = [1, 2.5, [3] [4], { b = .5 }, { c = 1 },]\n",
    ),
    "hcl2": (
        "a { b = 1 }\nc { # d\n}\ne {\n}\nf {}\n",
        'a = 1 + 2\nb = "x"\nc = "${d.e}"\nf = "g ${h} i"\nj = -1\nk = !true\nl = [for m in n : m]\n',
        "o = {for p in q : p => q if r}\ns = t ? u : v\nw = x[0].y[*].z\nA = B(C, D...)\nE = (F)\n",
        'a = <<-B\n    c ${d}\n      e\n  B\nf = <<G\n h "i" \\n\nG\nj = 1\n',
        'a = "%{ for k in l ~} x${k} %{ endfor }"\nb = "%{ if c }d%{ else }e%{ endif }"\n',
        'a = {b = 1, "c" = 2, (d) = 3, "${e}" = 4, f.g = 5, 6 = 7}\nh = {\n  i : j\n  k = l\n}\n',
        "a = <<-E\n    x\n    %{ for i in y ~}\n    - ${i}\n    %{~ endfor ~}\n\n  ${~ z}\n  w\n  E\n",
        'm "n" o { p = "$${q} \\u00e9 \\"r\\"" }\nm "n" "s" { t { u = null } t {} }\n',
        "v = [\n  1,\n  # w\n  2, // x\n]\ny = z.0\naa = provider::bb::cc(1)\n",
    ),
    "dockerfile": (
        "FROM a\nONBUILD ZORK b c\nHEALTHCHECK NONE\nHEALTHCHECK --interval=0 cmd b\nARG --x c\n",
        "FROM a AS b\nRUN c && \\\n    d\nCOPY --from=b --chown=1 [\"e f\", \"g\"]\nENV h=i j='k l'\nENV m n o\n",
        '# syntax=x\n#y\nFROM a\n\n# z\nARG b=1 c\nLABEL d="e" \\\n f=g\nEXPOSE 1 2\nHEALTHCHECK --interval=1s CMD ["h"]\n',
        '# escape=`\nFROM a\nRUN b `\n c\nONBUILD COPY d e\nUSER f\nVOLUME ["g"]\nSTOPSIGNAL 9\nSHELL ["h"]\n',
        'FROM a\nRUN <<E\nb\nE\nCOPY <<F /g\nh\nF\nCMD i j\nENTRYPOINT ["k"]\nWORKDIR /l\nMAINTAINER m\n',
    ),
    "spdx": (
        "SPDXVersion: SPDX-2.2\nDataLicense: a\nCreator: Person:  b  (c)\n",
        ("SPDXVersion: SPDX-2.3\nDataLicense: CC0-1.0\nSPDXID: SPDXRef-DOCUMENT\nDocumentName: a\n"
        "DocumentNamespace: http://b\nCreator: Tool: c\nCreated: 2021-01-01T00:00:00Z\n"),
    ),
    "cyclonedx": (
        '{"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": [{"name": "a"}]}',
    ),
    "hocon": (
        "a { b = 1, c = d e, f = true }\ng.h = i\n",
        'a { b = ${?c}, d = "x"${?e}, f = [${?g}, 1], h = 1, h = ${?i}, j = ${a.b} }\n',
    ),
    "jsonnet": ("local a(b) = b + 1; {c: a(1), d: [e * 2 for e in [1, 2]], f:: 1}",),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_every_text_has_the_real_ones_shape(prepared, name):
    for text in TEXTS[name]:
        a, b = both(prepared, "parse", "--parser", name, "-", stdin=text)
        assert b.returncode == a.returncode, (text, a.stderr, b.stderr)
        assert json.loads(b.stdout or "null") == json.loads(a.stdout or "null"), text


BODIES = (
    "deny contains 7 if true",
    'deny := ["a", "b"] if true',
    "deny if true",
    'deny[msg] if { msg := "a" }',
    'deny_x contains {"msg": "a", "n": 1000000, "s": {1, 2}} if true\ndeny contains "b" if true',
    'violation contains {"message": "a"} if true',
    'deny contains "" if true',
    'deny.sub contains "a" if true',
    'warn contains "a" if true\nwarn contains "b" if false\ndefault allow := false',
    'deny_a contains "a" if true\nexception contains ["a", "a"] if true\nexception contains ["a"] if true',
    'deny contains "a" if true\nexception contains [""] if true',
    'deny_a_b contains "x" if input.a == 1\nexception contains [data.conftest.file.name] if true',
    'deny contains sprintf("%v %v", [input.big, input.a]) if true',
    'deny contains "x" if { print(input.a); input.a }',
    "deny contains opa.runtime().env.HOME if false",
    'deny contains "x" if parse_config("toml", "a = ").b',
    'deny contains "x" if 1 / 0 == 1',
    "deny contains x if { some x in input.list }",
    'f(x) := x\nf(x) := x + 1\ndeny contains "x" if f(1) == 1',
)  # fmt: skip


@pytest.mark.parametrize("flags", [[], ["--fail-on-warn"], ["--strict"], ["--show-builtin-errors"]])
def test_rules_of_every_shape_are_counted_as_the_real_one_counts_them(prepared, flags):
    for number, body in enumerate(BODIES):
        for folder in prepared:
            policy = folder / f"shapes{number}"
            policy.mkdir(exist_ok=True)
            (policy / "p.rego").write_text(f"package main\n\n{body}\n")
        arguments = ["test", "-p", f"shapes{number}", "-o", "json", *flags, "-"]
        given = "a: 1\nbig: 12345678\nlist: [x, 2, {msg: y}]\n---\na: 2\n"
        a, b = both(prepared, *arguments, stdin=given)
        assert b.returncode == a.returncode, (body, a.stderr, b.stderr)
        assert comparable(b.stdout, "json") == comparable(a.stdout, "json"), body


@pytest.mark.parametrize("message", ["a\n", "\na", "a\n \n\nb", "a\n  b", " a ", "\n"])
def test_a_message_of_several_lines_is_in_a_table_as_in_the_real_ones(prepared, message):
    for folder in prepared:
        (folder / "lines.rego").write_text(
            f"package main\n\ndeny contains {json.dumps(message)} if true\n"
        )

    theirs, ours = both(prepared, "test", "-p", "lines.rego", "-o", "table", "-", stdin="{}")

    assert ours.stdout == theirs.stdout
