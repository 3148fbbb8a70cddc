"""`waddle rego` prints and ends as the real opa: word for word but for times."""

import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.programs import Programs

POLICY = """package p

default allow := false

allow if {
	input.user == "alice"
	some r in input.roles
	count(r) > 3
}

allow if {
	input.admin
}

names contains n if {
	some u in input.users
	n := upper(u.name)
	n != "BOB"
}

f(x) := y if {
	y := x + 1
	trace(sprintf("y is %d", [y]))
}

g(x) := 1 if x > 100
else := 2 if x > 50
else := 3 if {
	x > 30
}

h[k] := v if some k, v in input.obj

i[k].e contains v if some k, v in input.obj

j if {
	print("x", input.y)
	some x in input.xs
	input.zs[_] == x
	y := [z | some z in input.zs; z > x]
	count(y) > 0
	not input.q
	h.a == $"v {x}"
	i[_].e[_]
	every k, v in input.obj { k != v }
}
"""
TESTS = """package p_test

import data.p

test_allow if {
	p.allow with input as {"user": "alice", "roles": ["a", "admin"]}
}

test_names if {
	x := p.names with input as {"users": [{"name": "bob"}, {"name": "eve"}]}
	x == {"EVE", "BOB"}
}

test_f if p.f(1) == 3

test_every if {
	every x in [1, 2, 3] {
		x < 3
	}
}

test_not if {
	not p.f(1) == 2
}

test_j if {
	p.j with input as {"xs": [1, 2], "zs": [1, 2], "obj": {"a": "v 1", "b": "w"}}
	p.g(60) == 2
	p.h.x
}
"""
SCHEMA = """{"type": "object", "properties": {"user": {"type": "string"}, "roles": {"type": "array",
"items": {"type": "string"}}, "o": {"anyOf": [{"type": "string"}, {"$ref": "#/d/n"}]}},
"d": {"n": {"type": "integer"}}}"""
FILES = {
    "p/p.rego": POLICY,
    "p/p_test.rego": TESTS,
    "in.json": '{"xs": [1, 2], "zs": [1, 2], "obj": {"a": "v 1", "b": "w"}, "users": [{"name": "a"}]}',
    "b/a.rego": "package a\nx := data.x.y.v",
    "b/x/y/data.json": '{"v": 1}',
    "b/x/y/other.json": '{"w": 1}',
    "b/x/data.yaml": "z: 1",
    "b/.signatures.json": "not read",
    "c/a.rego": "package c\nx := 1",
    "c/.manifest": '{"roots": ["c"], "rego_version": 1}',
    "outside/a.rego": "package c\nx := 1",
    "outside/.manifest": '{"roots": ["d"]}',
    "broken/a.rego": "package c\nx if\n",
    "manifest/.manifest": '{"roots": [',
    "twice/data.json": '{"z": 1}',
    "twice/z/data.json": "5",
    "none.rego": "",
    "comment.rego": "# nothing\n",
    "yaml.rego": "# METADATA\n# title: [\npackage p\n",
    "custom.rego": "# METADATA\n# custom: 5\npackage p\n",
    "scope.rego": "# METADATA\n# scope: foo\npackage p\n",
    "unsafe.rego": 'package p\nu := {"1"}\nt if some $"{ {y | some y in u} }" in u\n',
    "send.rego": "package p\nx := http.send({}).a\ny := count([1]) > 3\n",
    "schema.json": SCHEMA,
    "schemas/in.json": SCHEMA,
    "typed.rego": 'package p\na if input.usr == "x"\nb if input.user == 5\nc if input.o.x\n',
    "annotated.rego": (
        "# METADATA\n# scope: package\n# schemas:\n#   - input: schema.in\npackage q\na if input.usr\n"
        "# METADATA\n# schemas:\n#   - input: schema.nope\nd if input.user\n"
    ),
    "v1.json": '{"builtins": [], "features": ["rego_v1"]}',
    "v0.json": '{"builtins": []}',
    "t/t.rego": "package t\n\nf(x) := x + 1\n\ng if input.a\n\ng if {\n\tinput.b\n\tinput.c\n}\n",
    "t/t_test.rego": 'package t_test\n\nimport data.t\n\ntest_f if t.f(1) == 2\n\ntodo_test_g if t.g\n\ntest_cases[note] if {\n\tsome note, tc in {"one": {"x": 1, "y": 2}, "two": {"x": 2, "y": 2}}\n\tt.f(tc.x) == tc.y\n}\n\ntest_err if 1 / 0 == 1\n\ntest_print if {\n\tprint("hello", input)\n\tt.f(1) == 3\n}\n',
    "todo/a_test.rego": "package a_test\n\ntodo_test_a if false\n\ntodo_test_b if true\n",
    "skipped/a_test.rego": 'package a_test\n\nimport rego.v1\n\ntodo_test_x := true\n\ntest_y := true\n\ntest_z := false\n\ntest_w := "x"\n\ntest_v contains 1 if true\n',
    "empty/readme.txt": "x",
    "signed/a.rego": "package s\nx := 1\n",
    "signed/.manifest": '{"roots": ["s"]}',
    "signed/.signatures.json": '{"signatures": ["eyJhbGciOiJIUzI1NiJ9.e30.abc"]}',
    "wasm/a.rego": "package w\nx := 1\n",
    "wasm/.manifest": '{"roots": ["w"], "wasm": [{"entrypoint": "w/x", "module": "/policy.wasm"}]}',
    "revs/.manifest": '{"revision": "r1", "roots": [""], "metadata": {"a": 1}}',
    "revs/data.json": '{"k": {"v": 1}}',
    "badroots/.manifest": '{"roots": ["a/b", "a"]}',
    "badroots/a/data.json": '{"b": 1}',
    "v0b/.manifest": '{"rego_version": 0, "roots": ["v0b"]}',
    "v0b/a.rego": "package v0b\nx { true }\n",
    "v9b/.manifest": '{"rego_version": 9}',
    "dup1.rego": "package d\nx := 1\n",
    "dup2.rego": "package d\nx := 2\n",
    "d1.json": '{"a": {"b": 1}}',
    "d2.json": '{"a": {"c": 2}}',
    "d3.json": '{"a": {"b": 3}}',
    "list.json": "[1]",
    "bad.json": "{",
    "bad.yaml": "a: [",
    "ok.yaml": "a: {z: 1}",
    "sdir/in.json": '{"type": "object", "properties": {"user": {"type": "string"}}}',
    "sdir/sub/x.json": '{"type": "object", "properties": {"n": {"type": "integer"}}}',
    "sdir2/bad.json": "{",
    "sann.rego": "# METADATA\n# scope: document\n# schemas:\n#   - input: schema.in\n#   - data.acl: schema.sub.x\npackage z\n\n# METADATA\n# schemas:\n#   - data.acl: schema.sub.x\na if data.acl.m\n\n# METADATA\n# schemas:\n#   - input: schema.in\nb if input.usr\n",
    "inl.rego": "# METADATA\n# schemas:\n#   - input: {type: object, properties: {q: {type: string}}}\npackage y\n\n# METADATA\n# schemas:\n#   - input: {type: object, properties: {q: {type: string}}}\na if input.w\n",
    "caps.json": '{"builtins": [{"name": "plus", "decl": {"type": "function", "args": [{"type": "number"}, {"type": "number"}], "result": {"type": "number"}}}], "features": ["rego_v1"], "future_keywords": ["in"]}',
    "badcaps.json": '{"builtins": 5}',
    "nocaps.json": "[",
    "strict.rego": "package st\nimport data.foo\nx if {\n\ty := 1\n\tinput.a\n}\n",
    "dep.rego": "package dp\nx if any([true])\n",
    "v0.rego": "package v0\nx { input.a }\n",
    "sp ace.rego": "package sp\nx := 1\n",
}
INVALID_SCHEMAS = [
    "5",
    "[]",
    "{",
    "{}",
    "true",
    "null",
    '{"type": 5}',
    '{"type": "objekt"}',
    '{"type": ["object", "object"]}',
    '{"properties": 5}',
    '{"properties": {"usr": {"type": "objekt"}}}',
    '{"properties": {"usr": {"pattern": "("}, "user": {"pattern": "a(?=b)"}, "o": true}}',
    '{"patternProperties": {"(": {}}}',
    '{"required": "a"}',
    '{"enum": 5}',
    '{"anyOf": 5}',
    '{"allOf": [{"type": "string"}, {"type": "object"}]}',
    '{"$schema": 5}',
    '{"$ref": "#/nope"}',
    '{"$ref": "other.json"}',
    '{"const": {"type": 5}, "default": {"type": 9}}',
]
"""Schemas that are invalid, beside some that look so."""
FILES |= {f"wrong{number}.json": text for number, text in enumerate(INVALID_SCHEMAS)}
FILES["wrong.rego"] = (
    "# METADATA\n# schemas:\n#   - input: {type: objekt}\npackage y\n\n"
    "# METADATA\n# schemas:\n#   - input: {properties: 5}\na if input.w\n"
)
ONE = ["test_names", "test_f", "test_every", "test_not", "test_j"]
TREES = {
    "tree.rego": """package a["b-c"].d
import data.x
import input.y as z
# c1
p.q.r := 1
p.q contains 2
p[x].z := x if some x in [1]
p[1] := 2
p.s(x, [y, {"a": z}]) := x + y if { x > 1; y == z }
default f(_) := 1
q if { some i; input[i] }
q if { some i, "a" in input }
r := {1, "a", [1], {2}, null, true, 1.0, 1e3, input.x}
u := {"b": 1, "a": 2, 3: 4}
v := {k: v | some k, v in input}
w := {x | x = 1}
x := -1
y := -z
zz := 1 - -2
str := `raw`
e2 := "é<>&\\u2028"
t := 1 in [1]
t2 := 1, 2 in [1]
m if input.x with input as {} with data.x.f as g
n := count([1]) * (2 + 3) % 4
a1 := [1, 2][0]
b1 := {"a": 1}.a
c1 := f(1).x
d1 := input
e1 := data
lit := set()
g1 if { x := 1 }
o1 contains x if x := 1
wild := input[_][_]
walkx if walk(input, [_, _])
and1 := {1} & {2} | {3}
""",
    "annotated.rego": """# METADATA
# title: T
# description: D
# organizations: [o]
# authors:
# - a <a@b.c>
# - name: n
# related_resources:
# - http://x
# - ref: http://y
#   description: d
# custom:
#   b: 1
#   a: [x]
package p

# METADATA
# scope: document
# schemas:
# - input: schema.x
# - input.y: {"type": "string"}

# METADATA
# entrypoint: true
# title: "é<"
allow if input.x

# METADATA
# scope: rule
# custom: {k: null}
f(x) := x
""",
    "marked.rego": "package a\n\nx := 1 # pasted\ufeff\n\n\ty := 2\n",
    "marks.rego": 'package a\n\n# \ufeff\nx := "a\ufeffb"\ny := `\ufeff`\n',
    "heads.rego": """package a
p0 := 1
p.q := 1
p.q.r := 1
p1 contains 2
p2.q contains 2
p3[x].z := x if some x in [1]
p4[1] := 2
p5[x] := 2 if x := 1
p6[x][y] := 2 if { x := 1; y := 2 }
p7.s(x) := x
p8(x) := x
p9.q[x] := 2 if x := 1
p10[x] if x := "a"
p11.q if true
p12.q["a b"] if true
p13[1] if true
p14(x) if true
p15() := 1
p16.a.b contains 1
p17[x] contains 1 if x := 1
p18.q[x] if x := 1
""",
    "heads0.rego": """package a
p0 = 1
p.q = 1 { true }
p.q.r = 1 { true }
p1[2]
p2[x] { x = 1 }
p4[1] = 2
p5[x] = 2 { x = 1 }
p9.q[x] = 2 { x = 1 }
p10.q[x] { x = 1 }
p11.q { true }
p12["a"] { true }
p14(x) { true }
p15[x].y { x = 1}
p.q = 1 { true }
""",
}
"""Syntax trees with each form of a head and of a term."""

COMMANDS = [
    "test p --coverage -r allow",
    "test p -r allow --threshold 90",
    "test p -r allow --threshold 90 -v",
    "test p -r allow --threshold 101",
    "test p -r allow --coverage-runs early_exit",
    "test -b b",
    "test -b broken",
    "test -b nope",
    "test b.tar.gz",
    "test nope",
    *(f"test p -r {name} -v" for name in ONE),
    *(f"test p -r {name} --explain {mode}" for name in ONE for mode in ("full", "notes", "fails")),
    *(f"test p -r {name} --var-values" for name in ONE),
    "test p -r test_names --explain full --var-values",
    "check marked.rego",
    "eval -d marks.rego data",
    "check none.rego",
    "check none.rego -f json",
    "check comment.rego",
    "check yaml.rego",
    "check custom.rego -f json",
    "check scope.rego",
    "check unsafe.rego",
    "check -b b",
    "check -b b.tar.gz",
    "check -b broken -f json",
    "check -b manifest",
    "check send.rego --capabilities v0.json",
    "check typed.rego -s schema.json",
    "check annotated.rego -s schemas",
    "check wrong.rego",
    *(f"check typed.rego -s wrong{number}.json" for number in range(len(INVALID_SCHEMAS))),
    "check typed.rego -s nope",
    "eval -b b data",
    "eval -b b.tar.gz data -f raw",
    "eval -b b -b c data",
    "eval -b c -b c data.c.x -f raw",
    "eval -b outside data",
    "eval -b broken data",
    "eval -b manifest data -f raw",
    "eval -b twice data",
    "eval -b nope data",
    "eval -b p/p.rego data",
    "eval -b b --ignore x data -f raw",
    "eval -i nope 1",
    "eval -i b 1",
    "eval -d nope 1",
    "eval -d nope 1 -f raw",
    "eval --capabilities v1.json count([1])",
    "eval --capabilities v0.json 1",
    'eval --capabilities v1.0.0 strings.split_n("a",",",1)',
    *(
        f"eval -d p/p.rego -i in.json --explain {mode} data.p.{rule} -f pretty"
        for rule in ("names", "j", "h", "allow")
        for mode in ("full", "notes", "fails")
    ),
    "eval -d p/p.rego -i in.json --explain full --var-values data.p.names -f pretty",
    "eval -d p/p.rego -i in.json --explain full --disable-indexing data.p.allow -f pretty",
    "eval -d p/p.rego -i in.json --coverage data.p",
    "eval -d p/p.rego -i in.json --coverage data.p -f pretty",
    "eval -d p/p.rego -f discard 1",
    # Odd combinations, and files and bundles with errors.
    "test t --threshold 100 -r test_f",
    "test todo --coverage",
    "test todo --coverage --threshold 1",
    "test todo --threshold 10",
    "test skipped -v",
    "test skipped -f json -r nothing",
    "test t -r nothing",
    "test empty",
    "test -b signed",
    "test -b revs",
    "test --ignore t_test.rego t",
    "test --ignore *_test.rego -b t",
    "test -b t --ignore t.rego",
    "test empty --fail-on-empty",
    "test t -r test_f -z",
    "test t -m 1 -r test_err",
    "test t --bundle -r test_f -f pretty",
    "test v0.rego",
    "test v0.rego --v0-compatible",
    "test t/t.rego t/t_test.rego -r test_f -v",
    "check t",
    "check t -b",
    "check -b signed",
    "check -b revs",
    "check -b badroots",
    "check -b v0b",
    "check v0.rego",
    "check v0.rego --v0-compatible",
    "check strict.rego -S",
    "check strict.rego -S -f json",
    "check strict.rego --strict -m 1",
    "check dep.rego -S",
    "check sann.rego -s sdir",
    "check sann.rego -s sdir -f json",
    "check sann.rego -s sdir/in.json",
    "check inl.rego",
    "check inl.rego -s sdir",
    "check dup1.rego dup2.rego",
    "check d1.json",
    "check empty",
    "check t --ignore t_test.rego",
    "eval -d d1.json -d d2.json data -f raw",
    "eval -d d1.json -d d3.json data -f raw",
    "eval -d list.json data",
    "eval -d bad.json data",
    "eval -d bad.yaml data",
    "eval -d ok.yaml data -f raw",
    "eval -d x.y:d1.json data -f raw",
    "eval -b signed data -f raw",
    "eval -b revs data -f raw",
    "eval -b badroots data -f raw",
    "eval -b v0b data -f raw",
    "eval -b revs -b signed data -f raw",
    "eval -b signed -b signed data",
    "eval -b revs --ignore data.json data -f raw",
    "eval -b b --ignore y data -f raw",
    "eval -b b --ignore .* data -f raw",
    "eval -d sann.rego -s sdir data.z",
    "eval -d sann.rego -s sdir/in.json data.z",
    "eval -i bad.json 1",
    "eval -i bad.yaml 1",
    "eval -i list.json input[0] -f raw",
    "eval -f pretty 1/0",
    "eval --fail false",
    "eval --fail-defined 1",
    "eval data.x[_ -f pretty",
    "eval -d t data.t.f(1) -f bindings",
    "eval -d t x:=data.t.f(1) -f bindings",
    "eval -d t x:=data.t.f(1) -f values",
    "eval --package t -d t f(1) -f raw",
    "eval --import data.t -d t t.f(1) -f raw",
    "eval --metrics 1 -f raw",
    'eval --pretty-limit 5 "aaaaaaaaaaaaaa" -f pretty',
    "eval -d strict.rego -S data.st",
    "eval -d v0.rego data.v0",
    "eval -d v0.rego --v0-compatible data.v0 -f raw",
    "eval --profile --coverage -d t data.t.f(1) -f raw",
    "check -b v9b",
    "eval -b v9b data",
    "check -b wasm",
    "eval -b wasm data",
    *(f"parse {name}{option}" for name in TREES for option in ("", " -f json")),
    "parse --v0-compatible heads0.rego",
    "parse heads0.rego -f json --v0-compatible",
    "parse p/p.rego --json-include -comments -f json",
    "parse sann.rego -f json",
    "parse sann.rego",
    "parse none.rego",
    "parse p",
    "parse v0.rego",
    "parse d1.json",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of all commands."""
    at = tmp_path_factory.mktemp("opa")
    for name, text in (FILES | TREES).items():
        (at / name).parent.mkdir(parents=True, exist_ok=True)
        (at / name).write_text(text)
    with tarfile.open(at / "b.tar.gz", "w:gz") as archive:
        archive.add(at / "b", ".")
    return at


def finished(command: list[str], folder: Path) -> tuple[int, str, str]:
    done = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    out, err = (re.sub(r"\([0-9.]+\S?s\)", "(time)", text) for text in (done.stdout, done.stderr))
    return done.returncode, out, err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_says_what_opa_says(command: str, folder: Path, program: Programs) -> None:
    words = command.split(" ")
    ours = finished([sys.executable, "-m", "webhook", "rego", *words], folder)
    theirs = finished([str(program("opa")), *words], folder)
    if words[0] == "test":  # Of tests that run at once opa tells first what ends first.
        code, out, err = theirs
        assert (ours[0], sorted(ours[1].splitlines()), ours[2]) == (
            code,
            sorted(out.splitlines()),
            err,
        )
    else:
        assert ours == theirs


PROFILED = ["data.p.names", "data.p.j", "data.p.allow", "data.p.h"]


@pytest.mark.parametrize("query", PROFILED)
def test_a_profile_counts_what_opa_counts(query: str, folder: Path, program: Programs) -> None:
    words = [
        "eval",
        "-d",
        "p/p.rego",
        "-i",
        "in.json",
        "--profile-limit",
        "0",
        "--profile-sort",
        "file",
    ]
    words += ["--profile-sort", "line", "-f", "json", query]

    def counts(command: list[str]) -> list[str]:
        _, out, _ = finished(command, folder)
        profile = out[out.index('"profile"') :]
        return [line for line in profile.splitlines() if "total_time_ns" not in line]

    ours = counts([sys.executable, "-m", "webhook", "rego", *words])
    assert ours == counts([str(program("opa")), *words])
