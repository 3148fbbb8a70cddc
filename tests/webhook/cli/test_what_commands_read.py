"""Files as arguments, pipes as a shell makes them, standard input, and colours."""

import contextlib
import io
import os
import sys
import threading

import pytest

from tests.programs import ROOT
from tests.webhook.cli.in_process import waddle

TEMPLATE = ROOT / "policies/general/required-labels/template.yaml"
CONSTRAINT = ROOT / "policies/general/required-labels/samples/required-labels/constraint.yaml"
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: web}\n"
DENIED = 'label "owner" is required'


@contextlib.contextmanager
def substituted(text):
    """What a shell puts in place of `<(command)`."""
    reading, writing = os.pipe()

    def write():
        with os.fdopen(writing, "w") as stream:
            stream.write(text)

    threading.Thread(target=write, daemon=True).start()
    try:
        yield f"/dev/fd/{reading}"
    finally:
        os.close(reading)


@contextlib.contextmanager
def standard_input(text):
    """The process' own standard input, of which /dev/stdin is the name."""
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    before = os.dup(0)
    os.dup2(reading, 0)
    os.close(reading)
    try:
        yield
    finally:
        os.dup2(before, 0)
        os.close(before)


@pytest.fixture
def manifest(tmp_path):
    file = tmp_path / "namespace.yaml"
    file.write_text(NAMESPACE)
    return file


def test_files_are_arguments_or_options_or_both(manifest):
    for given in (
        (TEMPLATE, CONSTRAINT, manifest),
        ("-f", TEMPLATE, CONSTRAINT, manifest),
        (TEMPLATE, "-f", CONSTRAINT, "-o", "table", manifest),
        ("-f", TEMPLATE, "-f", CONSTRAINT, "-f", manifest),
    ):
        run = waddle("test", *given)
        assert DENIED in run.stdout
        assert run.returncode == 1


@pytest.mark.parametrize("command", ["check", "mutate", "expand", "test", "migrate gatekeeper"])
def test_every_command_on_files_takes_arguments(command, manifest):
    option = waddle(*command.split(), "-f", TEMPLATE, "-f", CONSTRAINT, "-f", manifest)
    argument = waddle(*command.split(), TEMPLATE, CONSTRAINT, manifest)

    assert argument == option


def test_policies_and_objects_come_by_process_substitution():
    with substituted(TEMPLATE.read_text()) as template, substituted(NAMESPACE) as namespace:
        run = waddle("test", template, CONSTRAINT, namespace)

    assert DENIED in run.stdout
    assert namespace in run.stdout


@pytest.mark.parametrize("command", ["check", "mutate", "expand", "migrate gatekeeper"])
def test_every_command_on_files_takes_pipes(command):
    with substituted(TEMPLATE.read_text()) as template:
        run = waddle(*command.split(), template)

    assert (run.returncode, run.stderr) == (0, "")


def test_policies_that_records_are_tried_on_come_by_a_pipe_or_standard_input():
    policies = f"{TEMPLATE.read_text()}\n---\n{CONSTRAINT.read_text()}"
    with substituted(policies) as piped, substituted("") as records:
        assert "0 replayed" in waddle("decisions", "replay", "--policies", piped, records).stdout
    with standard_input(policies), substituted("") as records:
        assert "0 replayed" in waddle("decisions", "replay", "--policies", "-", records).stdout


def test_options_of_files_take_standard_input():
    with standard_input(NAMESPACE):
        assert waddle("cel", "eval", "--object", "-", "object.kind").stdout == '"Namespace"\n'
    piped = io.StringIO('{"a": 1}')
    run = waddle("rego", "eval", "-i", "-", "-f", "pretty", "input.a", stdin=piped)
    assert run.stdout == "1\n"


REGO = "package p\nx := 7\ntest_x if x == 7\n"
DENY = "package main\ndeny contains 'no' if input.a == data.d\n".replace("'", '"')
SUITE = """\
kind: Suite
apiVersion: test.gatekeeper.sh/v1alpha1
tests:
- name: labels
  template: template.yaml
  constraint: constraint.yaml
  cases:
  - {name: none, object: namespace.yaml, assertions: [{violations: yes}]}
"""


@pytest.mark.parametrize(
    ("command", "text", "code", "told"),
    [
        ("verify {}", SUITE, 0, "PASS"),
        ("rego check {}", REGO.replace("7", "y", 1), 1, "rego_unsafe_var_error"),
        ("rego test {}", REGO, 0, "PASS: 1/1"),
        ("rego eval -d {} -f pretty data.p.x", REGO, 0, "7"),
        (
            "rego check -s {} typed.rego",
            '{"type": "object", "properties": {"a": {"type": "string"}}}',
            1,
            "undefined ref",
        ),
        ("rego check --capabilities {} p.rego", '{"builtins": []}', 1, "rego_v1"),
        ("conftest test -p {} -d data.json in.json", DENY, 1, "1 failure"),
        ("conftest test -p deny.rego -d {} in.json", '{"d": 1}', 1, "1 failure"),
        ("conftest test -p deny.rego --capabilities {} in.json", '{"builtins": []}', 1, "equal"),
        ("simulate --measured {}", "{}", 2, "no array named rounds_ms"),
        ("sidecar --config {}", "{}", 1, "queue.directory"),
        ("cel eval --object {} object.kind", NAMESPACE, 0, "Namespace"),
        ("decisions stats {}", "", 0, "0 decisions"),
    ],
)
def test_every_option_of_a_file_takes_a_pipe_and_standard_input(
    command, text, code, told, tmp_path
):
    (tmp_path / "template.yaml").write_text(TEMPLATE.read_text())
    (tmp_path / "constraint.yaml").write_text(CONSTRAINT.read_text())
    (tmp_path / "namespace.yaml").write_text(NAMESPACE)
    (tmp_path / "p.rego").write_text(REGO)
    (tmp_path / "typed.rego").write_text("package p\nx := input.b\n")
    (tmp_path / "deny.rego").write_text(DENY)
    (tmp_path / "data.json").write_text('{"d": 1}')
    (tmp_path / "in.json").write_text('{"a": 1}')
    with substituted(text) as piped:
        by_pipe = waddle(*command.format(piped).split(), cwd=tmp_path)
    with standard_input(text):
        by_dash = waddle(*command.format("-").split(), cwd=tmp_path, stdin=sys.__stdin__)
    for run in (by_pipe, by_dash):
        assert told in run.stdout + run.stderr
        assert run.returncode == code


def test_krm_says_that_its_standard_input_is_taken():
    assert "standard input is the ResourceList" in waddle("krm", "-f", "-").stderr


def test_a_kubeconfig_may_be_piped():
    with standard_input("{}"):
        assert "/dev/stdin" in waddle("status", "--kubeconfig", "-").stderr


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [
        ({}, False),  # the standard output of a test is no terminal
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "0"}, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ({"NO_COLOR": "", "FORCE_COLOR": "1"}, True),
    ],
)
def test_colours_are_as_the_environment_says(variables, coloured, manifest, monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    shown = waddle("test", TEMPLATE, CONSTRAINT, manifest).stdout

    assert ("\x1b[31m" in shown) is coloured


def test_conftest_knows_no_color_too(tmp_path, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "p.rego").write_text("package main\n")
    (tmp_path / "a.yaml").write_text("a: 1\n")
    assert "\x1b[" in waddle("conftest", "test", "a.yaml", cwd=tmp_path).stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in waddle("conftest", "test", "a.yaml", cwd=tmp_path).stdout
