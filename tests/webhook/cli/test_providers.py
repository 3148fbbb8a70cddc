"""Commands over files have providers answered by files, and name those that nobody answers for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.policies import template
from tests.webhook.cli.in_process import waddle
from tests.webhook.external_data.recorded import ANSWERS, POLICIES, SIGNED, provider
from tests.webhook.mutation.documents import mutator, pod
from webhook.cli import exit_codes

if TYPE_CHECKING:
    from pathlib import Path

OWNER = mutator(
    "Assign",
    "owner",
    "spec.owner",
    parameters={
        "assign": {
            "externalData": {
                "provider": "owners",
                "dataSource": "Username",
                "failurePolicy": "Ignore",
            }
        }
    },
)
NOBODY = "no provider images answers here: give its answers with --provider images=FILE"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A Pod with a good image and a bad one, the policies, and answers as YAML and as JSON."""
    documents = (*POLICIES, pod("good", "bad"))
    (tmp_path / "all.yaml").write_text("\n---\n".join(map(json.dumps, documents)))
    (tmp_path / "mutated.yaml").write_text("\n---\n".join(map(json.dumps, (OWNER, pod("good")))))
    (tmp_path / "answers.yaml").write_text(yaml.safe_dump(ANSWERS))
    (tmp_path / "answers.json").write_text(json.dumps(ANSWERS))
    (tmp_path / "broken.yaml").write_text(yaml.safe_dump({"systemError": "no disk"}))
    (tmp_path / "owners.yaml").write_text(yaml.safe_dump({"items": {"": {"value": "ada"}}}))
    return tmp_path


@pytest.mark.parametrize("name", ["answers.yaml", "answers.json"])
def test_what_a_file_says_decides(files: Path, name: str) -> None:
    run = waddle("test", "-f", "all.yaml", "--provider", f"images={name}", cwd=files)
    assert run.returncode == 1
    assert "bad: not signed" in run.stdout
    assert "1 violation" in run.stdout
    assert not run.stderr


def test_without_answers_there_is_no_verdict_and_the_provider_is_named(files: Path) -> None:
    run = waddle("test", "-f", "all.yaml", cwd=files)
    assert run.returncode == 1
    assert NOBODY in run.stderr
    assert "violation" not in run.stdout.replace("it found no violation", "")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("images", "'images' must be NAME=FILE: a provider and the file with its answers"),
        ("images=", "'images=' must be NAME=FILE"),
        ("images=none.yaml", "none.yaml: No such file or directory"),
        ("images=all.yaml", "all.yaml: expected one document with items, got 3"),
        ("images=wrong.yaml", "wrong.yaml: items['k'] must hold a value or an error"),
    ],
)
def test_answers_that_cannot_be_read_are_reported_with_their_place(
    files: Path, given: str, message: str
) -> None:
    (files / "wrong.yaml").write_text("items: {k: {values: 1}}")
    run = waddle("test", "-f", "all.yaml", "--provider", given, cwd=files)
    assert run.returncode == exit_codes.USAGE
    assert message in run.stderr.replace("\n", " ")


def test_each_placeholder_that_nobody_answered_is_named(files: Path) -> None:
    run = waddle("mutate", "-f", "mutated.yaml", cwd=files)
    assert (run.returncode, run.stdout) == (2, "")
    assert "give its answers with --provider owners=FILE" in run.stderr
    (files / "away.yaml").write_text("systemError: away")
    run = waddle("mutate", "-f", "mutated.yaml", "--provider", "owners=away.yaml", cwd=files)
    assert run.returncode == 0
    assert yaml.safe_load(run.stdout)["spec"]["owner"] == ""
    assert "Pod shop/p: spec.owner: the provider owners has no answer" in run.stderr
    run = waddle("mutate", "-f", "mutated.yaml", "--provider", "owners=owners.yaml", cwd=files)
    assert yaml.safe_load(run.stdout)["spec"]["owner"] == "ada"
    assert not run.stderr


def test_check_names_providers_that_are_not_there_and_keys_in_a_set(files: Path) -> None:
    sets = SIGNED.replace("[c.image | c := input.review.object.spec.containers[_]]", '{"a"}')
    (files / "sets.yaml").write_text(json.dumps(template("Sets", sets)))
    run = waddle("check", "-f", "all.yaml", "-f", "sets.yaml", "-f", "mutated.yaml", cwd=files)
    output = run.stdout
    assert "ConstraintTemplate/sets: line 4: external_data gets its keys as a set" in output
    assert "ConstraintTemplate/signed: it asks the provider images, and no Provider" in output
    assert "Assign/owner: it asks the provider owners, and no Provider" in output
    assert NOBODY in run.stderr
    run = waddle("check", "-f", "all.yaml", "--provider", "images=answers.yaml", cwd=files)
    assert "no Provider" not in run.stdout
    assert "bad: not signed" in run.stdout


def test_a_resource_list_is_judged_by_answers(files: Path) -> None:
    items = {
        "apiVersion": "config.kubernetes.io/v1",
        "kind": "ResourceList",
        "items": [*POLICIES, pod("bad")],
    }
    (files / "list.json").write_text(json.dumps(items))
    with (files / "list.json").open() as stdin:
        run = waddle("krm", "--provider", "images=answers.yaml", cwd=files, stdin=stdin)
    assert run.returncode == 1
    assert "bad: not signed" in run.stdout


SUITE = """
apiVersion: test.gatekeeper.sh/v1alpha1
kind: Suite
providers: {images: answers.yaml}
tests:
- name: signed
  template: template.json
  constraint: constraint.json
  cases:
  - {name: bad, object: pod.json, assertions: [{message: "bad: not signed"}]}
  - {name: down, object: pod.json, providers: {images: broken.yaml}, assertions: [{violations: no}]}
- name: unread
  template: template.json
  constraint: constraint.json
  providers: {images: none.yaml}
  cases:
  - {name: bad, object: pod.json, assertions: [{violations: 1}]}
"""


def test_suites_name_answers_for_all_their_tests_for_one_and_for_a_case(files: Path) -> None:
    for name, document in zip(
        ("template", "constraint", "pod"), (*POLICIES, pod("bad")), strict=True
    ):
        (files / f"{name}.json").write_text(json.dumps(document))
    (files / "suite.yaml").write_text(SUITE)
    run = waddle("verify", "suite.yaml", "-v", cwd=files)
    assert run.returncode == 1
    assert "--- PASS: bad" in run.stdout
    assert "--- PASS: down" in run.stdout
    assert "answers of the provider images: none.yaml: No such file or directory" in run.stdout
    (files / "suite.yaml").write_text(SUITE.replace("providers: {images: answers.yaml}", ""))
    run = waddle("verify", "suite.yaml", cwd=files)
    assert "name a file of its answers in providers" in run.stdout


@pytest.mark.parametrize("command", [("check",), ("test", "-f")])
def test_a_timeout_beyond_the_longest_and_a_group_s_idle_member_are_reported_once(
    files: Path, command: tuple[str, ...]
) -> None:
    group = {
        "apiVersion": "waddle.dev/v1alpha1",
        "kind": "ConstraintGroup",
        "metadata": {"name": "g"},
        "spec": {
            "members": {"a": {"kind": "Signed"}, "b": {"kind": "Signed"}},
            "expression": "a()",
        },
    }
    documents = (POLICIES[0], group, provider(timeout=45))
    (files / "warned.yaml").write_text("\n---\n".join(map(json.dumps, documents)))
    run = waddle(*command, "warned.yaml", cwd=files)
    output = run.stdout + run.stderr
    assert output.count("Provider/images: its spec.timeout is 45 s") == 1
    assert output.count("ConstraintGroup/g: its member b is never asked") == 1
