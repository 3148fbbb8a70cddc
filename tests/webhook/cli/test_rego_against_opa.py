"""What `waddle rego` prints, and how it ends, beside the real opa: word for word but for times."""

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
}
ONE = ["test_names", "test_f", "test_every", "test_not", "test_j"]
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
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of all commands."""
    at = tmp_path_factory.mktemp("opa")
    for name, text in FILES.items():
        (at / name).parent.mkdir(parents=True, exist_ok=True)
        (at / name).write_text(text)
    with tarfile.open(at / "b.tar.gz", "w:gz") as archive:
        archive.add(at / "b", ".")
    return at


def told(command: list[str], folder: Path) -> tuple[int, str, str]:
    done = subprocess.run(
        command,
        cwd=folder,
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
    ours = told([sys.executable, "-m", "webhook", "rego", *words], folder)
    assert ours == told([str(program("opa")), *words], folder)


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
        _, out, _ = told(command, folder)
        profile = out[out.index('"profile"') :]
        return [line for line in profile.splitlines() if "total_time_ns" not in line]

    ours = counts([sys.executable, "-m", "webhook", "rego", *words])
    assert ours == counts([str(program("opa")), *words])
