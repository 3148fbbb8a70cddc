"""No name makes a line of its own, which a pipeline could take for a command."""

from pathlib import Path

from tests.conformance.gatekeeper import waddle


def test_verify_keeps_the_names_of_tests_and_cases_in_their_lines(tmp_path: Path):
    (tmp_path / "suite.yaml").write_text(
        "apiVersion: test.gatekeeper.sh/v1alpha1\nkind: Suite\ntests:\n"
        '- name: "a\\n::error::forged"\n  template: none.yaml\n  constraint: none.yaml\n'
        '  cases:\n  - name: "b\\n::error::forged"\n    object: none.yaml\n'
    )
    run = waddle("verify", tmp_path, "-v")
    assert "forged" in run.stdout
    assert not [line for line in run.stdout.splitlines() if line.lstrip().startswith("::")]


def test_check_keeps_the_names_of_policies_in_their_lines(tmp_path: Path):
    (tmp_path / "a.yaml").write_text(
        "apiVersion: constraints.gatekeeper.sh/v1beta1\nkind: None\n"
        'metadata:\n  name: "a\\n::error::forged"\n'
    )
    run = waddle("check", "-f", tmp_path)
    assert "forged" in run.stdout + run.stderr
    lines = (run.stdout + run.stderr).splitlines()
    assert not [line for line in lines if line.lstrip().startswith("::")]


def test_conftest_keeps_a_message_in_its_annotation(tmp_path: Path):
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "a.rego").write_text(
        'package main\nimport rego.v1\ndeny contains "a\\n::error::forged"\n'
    )
    (tmp_path / "a.json").write_text("{}")
    run = waddle("conftest", "test", "-p", tmp_path / "policy", "-o", "github", tmp_path / "a.json")
    assert "a%0A::error::forged" in run.stdout
