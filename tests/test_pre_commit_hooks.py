"""The hooks that others' pre-commit runs: each entry is a command that runs as pre-commit runs it."""

import pytest
import yaml

from tests.programs import ROOT
from tests.webhook.cli.in_process import waddle

HOOKS = {one["id"]: one for one in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "p.rego").write_text('package main\ndeny contains "no" if input.a\n')
    (tmp_path / "policy" / "p_test.rego").write_text("package main\ntest_x if count(deny) == 0\n")
    (tmp_path / "good.yaml").write_text("b: 1\n")
    (tmp_path / "bad.yaml").write_text("a: 1\n")
    return tmp_path


def run(folder, hook, *files):
    program, *arguments = HOOKS[hook]["entry"].split()
    assert program == "waddle"
    given = files if HOOKS[hook].get("pass_filenames", True) else ()
    return waddle(*arguments, *given, cwd=folder)


def test_files_are_tested_and_a_failure_stops_the_commit(folder):
    assert run(folder, "waddle-conftest-test", "good.yaml").returncode == 0
    failed = run(folder, "waddle-conftest-test", "good.yaml", "bad.yaml")
    assert "FAIL - bad.yaml - main - no" in failed.stdout
    assert failed.returncode == 1


def test_policies_are_verified(folder):
    assert run(folder, "waddle-conftest-verify", "policy/p.rego").returncode == 0
    (folder / "policy" / "p_test.rego").write_text("package main\ntest_x if false\n")
    assert run(folder, "waddle-conftest-verify", "policy/p.rego").returncode == 1


def test_suites_are_verified():
    arguments = HOOKS["waddle-verify"]["entry"].split()[1:]

    assert waddle(*arguments, ROOT / "policies" / "general" / "required-labels").returncode == 0


def test_manifests_are_tested_by_the_policies_among_the_arguments(folder):
    labels = ROOT / "policies" / "general" / "required-labels"
    policies = (
        labels / "template.yaml",
        labels / "samples" / "required-labels" / "constraint.yaml",
    )
    bad = "apiVersion: v1\nkind: Namespace\nmetadata: {name: web}\n"
    (folder / "bad.yaml").write_text(bad)
    (folder / "good.yaml").write_text(bad.replace("web}", "web, labels: {owner: team-shop}}"))

    assert run(folder, "waddle-test", *policies, "good.yaml").returncode == 0
    failed = run(folder, "waddle-test", *policies, "good.yaml", "bad.yaml")
    assert "bad.yaml:1: " in failed.stdout
    assert failed.returncode == 1


def test_every_hook_is_installed_as_python():
    assert {one["language"] for one in HOOKS.values()} == {"python"}
