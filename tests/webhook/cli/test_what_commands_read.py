"""Files as arguments, pipes as a shell makes them, standard input, and colours."""

import io

import pytest

from tests.programs import ROOT
from tests.webhook.cli.in_process import waddle
from tests.webhook.cli.pipes import standard_input, substituted

TEMPLATE = ROOT / "policies/general/required-labels/template.yaml"
CONSTRAINT = ROOT / "policies/general/required-labels/samples/required-labels/constraint.yaml"
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: web}\n"
DENIED = 'label "owner" is required'


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
        assert (
            "0 decisions replayed"
            in waddle("decisions", "replay", "--policies", piped, records).stdout
        )
    with standard_input(policies), substituted("") as records:
        assert (
            "0 decisions replayed"
            in waddle("decisions", "replay", "--policies", "-", records).stdout
        )


def test_options_of_files_take_standard_input():
    with standard_input(NAMESPACE):
        assert waddle("cel", "eval", "--object", "-", "object.kind").stdout == '"Namespace"\n'
    piped = io.StringIO('{"a": 1}')
    run = waddle("rego", "eval", "-i", "-", "-f", "pretty", "input.a", stdin=piped)
    assert run.stdout == "1\n"


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
