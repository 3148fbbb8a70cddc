"""Input that is not judged is reported, and never passes as good."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.policies import config, expansion_template
from tests.programs import ROOT
from tests.webhook.cli.in_process import waddle
from tests.webhook.constraint.policies import constraint, pod, template

if TYPE_CHECKING:
    from pathlib import Path

PODS = {"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}]}
ON_CREATE = 'package p\nviolation[{"msg": "new"}] { input.review.operation == "CREATE" }\n'


def put(folder: Path, *documents: Any, name: str = "all.yaml") -> Path:
    file = folder / name
    file.write_text(yaml.safe_dump_all(documents))
    return file


def request(**fields: Any) -> dict[str, Any]:
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": "u", "kind": kind, "namespace": "shop", **fields},
    }


def test_an_admission_review_is_tested_as_its_request(tmp_path: Path) -> None:
    review = request(operation="CREATE", object=pod())
    file = put(tmp_path, template(rego=ON_CREATE), constraint(match=PODS), review)
    run = waddle("test", "-f", file)
    assert run.returncode == 1
    assert "v1/Pod shop/web" in run.stdout
    assert run.stderr == ""
    run = waddle("check", "-f", file)
    assert "0 violations now, 1 then" in run.stdout


def test_an_admission_review_without_a_request_is_named(tmp_path: Path) -> None:
    empty = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    run = waddle("test", "-f", put(tmp_path, template(), constraint(), empty, pod()))
    assert run.returncode == 1
    assert "all.yaml:" in run.stderr
    assert "AdmissionReview: request must be an object" in run.stderr
    assert "Pod shop/web" in run.stdout, "the rest is reviewed"


def test_mutate_and_expand_take_what_a_review_is_about(tmp_path: Path) -> None:
    mutator = {
        "apiVersion": "mutations.gatekeeper.sh/v1",
        "kind": "AssignMetadata",
        "metadata": {"name": "owner"},
        "spec": {"location": "metadata.labels.owner", "parameters": {"assign": {"value": "me"}}},
    }
    file = put(tmp_path, mutator, request(operation="CREATE", object=pod()))
    run = waddle("mutate", "-f", file, "-o", "json")
    [made] = json.loads(run.stdout)
    assert (made["kind"], made["metadata"]["labels"]) == ("Pod", {"owner": "me"})


def test_a_constraint_that_matched_nothing_is_named_with_the_kind_that_was_meant(
    tmp_path: Path,
) -> None:
    misspelt = {"kinds": [{"apiGroups": [""], "kinds": ["pods"]}]}
    file = put(tmp_path, template(), constraint(match=misspelt), pod())
    run = waddle("test", "-f", file)
    assert run.returncode == 0
    assert '"pods": is Pod meant?' in run.stderr
    assert "1 of 1 constraint matched no object: K8sDeny/c" in run.stderr
    run = waddle("check", "-f", file)
    assert '"pods": is Pod meant?' in run.stdout
    assert "it matched none of them" in run.stdout


def test_a_kind_of_ones_own_is_the_nearest_one_where_it_is_given(tmp_path: Path) -> None:
    misspelt = {"kinds": [{"apiGroups": ["*"], "kinds": ["widgets"]}]}
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    run = waddle("test", "-f", put(tmp_path, template(), constraint(match=misspelt), widget))
    assert "is Widget meant?" in run.stderr


def test_a_constraint_that_matched_what_is_implied_matched(tmp_path: Path) -> None:
    expansion = expansion_template("e")
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "shop"},
        "spec": {"template": {"spec": {}}},
    }
    file = put(tmp_path, template(), constraint(match=PODS), expansion, deployment)
    run = waddle("test", "-f", file)
    assert (run.returncode, run.stderr) == (1, "")


@pytest.mark.parametrize("command", ["test", "check"])
@pytest.mark.parametrize("spec", [None, {}, {"template": "x"}], ids=repr)
def test_what_an_object_implies_that_cannot_be_known_is_named_with_its_line(
    tmp_path: Path, command: str, spec: Any
) -> None:
    """``check`` exited with 0, and neither said of which file the object was."""
    put(tmp_path, template(), constraint(match=PODS), expansion_template())
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    put(tmp_path, deployment | {"spec": spec}, name="d.yaml")
    run = waddle(command, "-f", ".", cwd=tmp_path)
    assert run.returncode == {"test": 1, "check": 2}[command]
    (line,) = (line for line in run.stderr.splitlines() if "could not find source field" in line)
    assert line.startswith("d.yaml:1: ")
    assert "d" in line


def test_a_template_that_decides_by_the_operation_is_warned_of(tmp_path: Path) -> None:
    policies = template(rego=ON_CREATE), constraint(match=PODS)
    run = waddle("test", "-f", put(tmp_path, *policies, pod()))
    assert run.returncode == 0
    assert "it decides by input.review.operation" in run.stderr
    run = waddle("check", "-f", put(tmp_path, *policies))
    assert "ConstraintTemplate/k8sdeny: it decides by input.review.operation" in run.stdout
    assert run.returncode == 0


@pytest.mark.parametrize("command", ["test", "check"])
def test_what_a_config_excludes_is_left_out_and_said(tmp_path: Path, command: str) -> None:
    excluding = config(match=[{"excludedNamespaces": ["shop"], "processes": ["*"]}])
    file = put(tmp_path, template(), constraint(match=PODS), excluding, pod())
    run = waddle(command, "-f", file)
    assert "Config excludes" in run.stdout + run.stderr
    assert "1 violation" not in run.stdout


def suite(folder: Path) -> Path:
    """A folder in which a suite is tried on a Deployment."""
    test = {
        "name": "t",
        "template": "t.yaml",
        "constraint": "c.yaml",
        "cases": [{"name": "c", "object": "pod.yaml", "assertions": [{"violations": "yes"}]}],
    }
    document = {"apiVersion": "test.gatekeeper.sh/v1alpha1", "kind": "Suite", "tests": [test]}
    put(folder, document, name="suite.yaml")
    put(folder, template(), name="t.yaml")
    put(folder, constraint(match=PODS), name="c.yaml")
    put(folder, pod(), name="pod.yaml")
    return folder


def test_what_test_suites_are_tried_on_is_left_out_and_the_last_line_says_so(
    tmp_path: Path,
) -> None:
    put(suite(tmp_path), pod(name="other"), name="other.yaml")
    run = waddle("test", "-f", tmp_path)
    assert run.returncode == 1
    assert "left out: samples of test suites: " in run.stdout.splitlines()[-1]
    assert "pod.yaml" in run.stdout.splitlines()[-1]


@pytest.mark.parametrize("others", [True, False])
def test_a_terminal_shows_once_what_is_left_out(tmp_path: Path, others: bool) -> None:
    suite(tmp_path)
    if others:
        put(tmp_path, pod(name="other"), name="other.yaml")
    ours, theirs = os.openpty()
    try:
        command = (sys.executable, "-m", "webhook", "test", str(tmp_path))
        subprocess.run(command, stdout=theirs, stderr=theirs, cwd=ROOT, check=False)
        shown = os.read(ours, 1 << 16).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert shown.count("/pod.yaml") == 1, shown
    assert "sample of a test suite" not in shown


@pytest.mark.parametrize("command", ["test", "check"])
def test_what_a_scenario_of_chainsaw_expects_is_no_policy_in_force(
    tmp_path: Path, command: str
) -> None:
    put(tmp_path, template(), constraint(match=PODS), pod())
    folder = tmp_path / ".chainsaw-test"
    folder.mkdir()
    put(
        folder,
        {"kind": "Test", "apiVersion": "chainsaw.kyverno.io/v1alpha1"},
        name="chainsaw-test.yaml",
    )
    ready = {**constraint(match=PODS), "spec": {"match": {"(kinds)": [{}]}}}
    put(folder, ready, pod(name="bad"), name="policy-ready.yaml")
    run = waddle(command, "-f", tmp_path)
    assert run.returncode == (1 if command == "test" else 0)
    assert f"{folder}" in run.stdout + run.stderr
    assert "policy-ready.yaml" not in run.stdout + run.stderr
    named = waddle(command, "-f", folder)
    assert "policy-ready.yaml:1: " in named.stdout + named.stderr
    assert "sample" not in named.stdout + named.stderr


def test_where_everything_was_left_out_nothing_is_known(tmp_path: Path) -> None:
    run = waddle("test", "-f", suite(tmp_path))
    assert run.returncode == 2
    assert run.stderr.splitlines()[-1].startswith("nothing was checked: samples of test suites: ")
    for name in ("t.yaml", "c.yaml"):
        (tmp_path / name).unlink()
    run = waddle("test", "-f", tmp_path)
    assert run.returncode == 2
    assert "pod.yaml" in run.stderr.splitlines()[-1]


def test_objects_without_a_constraint_are_not_reviewed_in_silence(tmp_path):
    """The output ended with a heading and nothing below it."""
    (tmp_path / "t.yaml").write_text(yaml.safe_dump_all([template(), pod()]))

    run = waddle("check", tmp_path / "t.yaml")

    assert "1 object of the manifests: the files have no constraint" in run.stdout
    assert run.returncode == 0


def test_samples_are_tested_where_their_folder_is_named(tmp_path: Path) -> None:
    """Samples were left out, and nothing was checked."""
    (tmp_path / "samples").mkdir()
    put(suite(tmp_path), pod(name="sample"), name="samples/pod.yaml")
    run = waddle("test", "-f", tmp_path, "-f", tmp_path / "samples")
    assert "Pod shop/sample" in run.stdout
    assert f"{tmp_path}/samples" not in run.stderr
    assert run.returncode == 1
    assert "Pod shop/sample" not in waddle("test", "-f", tmp_path).stdout


@pytest.mark.parametrize(
    ("command", "named"),
    [("mutate", "mutator or mutating policy"), ("expand", "ExpansionTemplate")],
)
def test_where_nothing_came_of_any_object_it_is_said_why(
    tmp_path: Path, command: str, named: str
) -> None:
    run = waddle(command, put(tmp_path, pod()))
    assert run.stderr == f"the files have no {named}\n"
    policies: dict[str, dict[str, Any]] = {
        "mutate": {
            "apiVersion": "mutations.gatekeeper.sh/v1",
            "kind": "AssignMetadata",
            "metadata": {"name": "owner"},
            "spec": {
                "match": {"kinds": [{"apiGroups": [""], "kinds": ["pod"]}]},
                "location": "metadata.labels.owner",
                "parameters": {"assign": {"value": "x"}},
            },
        },
        "expand": expansion_template(
            "pods",
            version="v1beta1",
            applyTo=[{"groups": ["apps"], "versions": ["v1"], "kinds": ["deployment"]}],
        ),
    }
    run = waddle(command, put(tmp_path, policies[command], pod()))
    assert run.stderr == f"no {named} of the files matches an object in them\n"
    assert run.returncode == 0


def test_a_selection_that_matches_nothing_is_quoted(tmp_path: Path) -> None:
    """The message was "matches nothing", which was the expression."""
    run = waddle("verify", suite(tmp_path), "--run", "nothing")
    assert run.stderr == f'no test or case in {tmp_path} matches "nothing"\n'
    assert run.returncode == 2


METADATA = "input.review.object.metadata"
LOST = {
    "object": (f"violation[x] {{ x := {METADATA} }}", 'held an object without "msg"'),
    "text": (f"violation[x] {{ x := {METADATA}.name }}", "held a member of type string"),
    "beside": (
        f'violation[x] {{ x := [{METADATA}, {{"msg": "m"}}][_] }}',
        'held an object without "msg"',
    ),
    "value": (f"violation = x {{ x := {METADATA} }}", "was of type object"),
    "late_key": (
        'violation[{k: "m"}] { k := concat("", ["m", "gs"]) }',
        'held an object without "msg"',
    ),
}
"""Rules whose members have no message, which only an evaluation shows."""


@pytest.mark.parametrize("rule", LOST)
def test_violations_without_a_message_are_warned_of_when_they_are_found(
    tmp_path: Path, rule: str
) -> None:
    rego, words = LOST[rule]
    policies = template(rego=f"package p\n{rego}\n"), constraint(match=PODS)
    file = put(tmp_path, *policies, pod())
    run = waddle("test", "-f", file)
    assert f'ConstraintTemplate/k8sdeny: "violation" {words}' in run.stderr
    assert run.returncode == (rule == "beside"), "the message beside it denies"
    run = waddle("check", "-f", put(tmp_path, *policies, name="alone.yaml"))
    assert f'alone.yaml:1: ConstraintTemplate/k8sdeny: "violation" {words}' in run.stdout
    assert run.returncode == 0


def test_violations_without_a_message_are_warned_of_by_verify(tmp_path: Path) -> None:
    """A case without violations passes by them."""
    rego = f"package p\n{LOST['object'][0]}\n"
    put(tmp_path, template(rego=rego), name="t.yaml")
    put(tmp_path, constraint(match=PODS), name="c.yaml")
    put(tmp_path, pod(), name="pod.yaml")
    case = {"name": "a", "object": "pod.yaml", "assertions": [{"violations": "no"}]}
    suite = {"apiVersion": "test.gatekeeper.sh/v1alpha1", "kind": "Suite"}
    test = {"name": "t", "template": "t.yaml", "constraint": "c.yaml", "cases": [case]}
    put(tmp_path, {**suite, "tests": [test]}, name="suite.yaml")
    run = waddle("verify", tmp_path)
    assert run.returncode == 0
    assert 'WARNING - ConstraintTemplate/k8sdeny: "violation" held an object' in run.stderr


def test_violations_with_messages_are_not_warned_of(tmp_path: Path) -> None:
    """An empty result, and a partial object, which has its violations as keys."""
    rego = 'package p\nviolation[{"msg": "m"}] = 1 { input.review.object.spec.x }\n'
    run = waddle("test", "-f", put(tmp_path, template(rego=rego), constraint(match=PODS), pod()))
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("source", [{}, {"validations": []}, {"variables": []}])
def test_a_template_without_validations_is_warned_of(tmp_path: Path, source: Any) -> None:
    policies = template(rego="", cel=source), constraint(match=PODS)
    for command in ("test", "check"):
        run = waddle(command, "-f", put(tmp_path, *policies, pod()))
        assert "it denies nothing: its source has no validations" in run.stdout + run.stderr


def test_an_unknown_field_of_a_template_is_warned_of(tmp_path: Path) -> None:
    """Its libraries would be missing, or its schema."""
    policies = template(target={"librs": []}), constraint(match=PODS)
    for command in ("test", "check"):
        run = waddle(command, "-f", put(tmp_path, *policies, pod()))
        warning = 'spec.targets[0].librs: unknown field, without effect: is "libs" meant?'
        assert f"ConstraintTemplate/k8sdeny: {warning}" in run.stdout + run.stderr
