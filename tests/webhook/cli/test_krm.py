"""``waddle krm``: a ResourceList in, the same list with results out."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys

import pytest
import yaml

from tests.patience import PATIENCE_SECONDS
from tests.policies import exception
from tests.webhook.cli.in_process import waddle
from tests.webhook.constraint.policies import constraint, pod, template

ANNOTATIONS = {"config.kubernetes.io/path": "app/pod.yaml", "config.kubernetes.io/index": "2"}


def resource_list(*items, **fields):
    kind = {"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList"}
    return {**kind, "items": list(items), **fields}


def krm(value, *arguments, cwd):
    text = value if isinstance(value, str) else yaml.safe_dump(value, sort_keys=False)
    stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
    return waddle("krm", *arguments, cwd=cwd, stdin=stdin)


def pods(**spec):
    return constraint(match={"kinds": [{"kinds": ["Pod"]}]}, **spec)


def test_each_violation_is_a_result_with_its_resource_and_file(tmp_path):
    item = pod(annotations=ANNOTATIONS)
    run = krm(resource_list(template(), pods(), item), cwd=tmp_path)

    assert run.returncode == 1
    printed = yaml.safe_load(run.stdout)
    (result,) = printed.pop("results")
    assert printed == resource_list(template(), pods(), item)
    assert result == {
        "message": "no",
        "severity": "error",
        "resourceRef": {"apiVersion": "v1", "kind": "Pod", "name": "web", "namespace": "shop"},
        "tags": {"constraint": "K8sDeny/c", "action": "deny"},
        "file": {"path": "app/pod.yaml", "index": 2},
    }
    assert run.stderr == "v1/Pod shop/web: K8sDeny/c (deny): no\n", "kustomize shows no results"


@pytest.mark.parametrize(("action", "severity"), [("warn", "warning"), ("dryrun", "info")])
def test_what_does_not_deny_does_not_stop_the_pipeline(tmp_path, action, severity):
    run = krm(resource_list(template(), pods(enforcementAction=action), pod()), cwd=tmp_path)

    assert run.returncode == 0
    assert [one["severity"] for one in yaml.safe_load(run.stdout)["results"]] == [severity]


def test_what_is_excused_is_something_to_know_with_its_exception(tmp_path):
    closed = pods(enforcementAction="deny")
    closed["metadata"]["annotations"] = {"waddle.dev/exceptions": "all"}
    excuse = exception("for-web", "K8sDeny/c", match={"name": "web"})
    run = krm(resource_list(template(), closed, excuse, pod()), cwd=tmp_path)

    assert run.returncode == 0
    (result,) = yaml.safe_load(run.stdout)["results"]
    assert (result["message"], result["severity"]) == ("no", "info")
    assert result["tags"] == {
        "constraint": "K8sDeny/c",
        "action": "excused",
        "exception": "ClusterPolicyException for-web",
    }


def test_an_item_that_cannot_be_used_is_named_with_its_line_in_the_list(tmp_path):
    broken = exception("for-web", "K8sDeny/c", reason=None)
    text = yaml.safe_dump(resource_list(template(), pods(), broken, pod()), sort_keys=False)
    (line,) = (
        number
        for number, written in enumerate(text.splitlines(), start=1)
        if written == "- apiVersion: waddle.dev/v1alpha1"
    )
    run = krm(text, cwd=tmp_path)
    assert run.returncode == 1
    assert f"stdin:{line}: ClusterPolicyException for-web: " in run.stderr


def test_the_list_is_printed_as_it_came_comments_and_all(tmp_path):
    (tmp_path / "p.yaml").write_text(yaml.safe_dump_all([template(), pods()]))
    text = f"# whose\n{yaml.safe_dump(resource_list(pod()), sort_keys=False)}# end\n"

    run = krm(text, "-f", "p.yaml", cwd=tmp_path)

    assert run.stdout.startswith(text + "results:\n")
    assert len(yaml.safe_load(run.stdout)["results"]) == 1
    # JSON, and a list that has results already, are written anew.
    for before in (json.dumps(resource_list(pod())), f"{text}results: [{{message: x}}]\n"):
        again = yaml.safe_load(krm(before, "-f", "p.yaml", cwd=tmp_path).stdout)
        assert [one["message"] for one in again["results"]] == ["no"]


@pytest.mark.parametrize(
    "config",
    [
        {"kind": "ConfigMap", "data": {"policies": "p.yaml"}},
        {"kind": "Policies", "spec": {"policies": ["p.yaml"]}},
    ],
)
def test_policies_are_named_by_the_function_config(tmp_path, config):
    (tmp_path / "p.yaml").write_text(yaml.safe_dump_all([template(), pods(), pod("beside")]))

    run = krm(resource_list(pod(), functionConfig=config), cwd=tmp_path)

    assert run.returncode == 1
    (result,) = yaml.safe_load(run.stdout)["results"]
    assert result["resourceRef"]["name"] == "web", "what lies beside policies is no item"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("", "expected one ResourceList"),
        ("a: [", "stdin"),
        (pod(), "expected one ResourceList"),
        (resource_list(7), "items must be an array of objects"),
        (resource_list(functionConfig=7), "functionConfig must be an object"),
        (resource_list(functionConfig={"spec": {"policies": 7}}), "spec.policies must be paths"),
        (resource_list(functionConfig={"spec": {"policies": "none"}}), 'path "none"'),
        (resource_list(template(rego="package p")), "missing required rules"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_what_cannot_be_validated_says_why_and_passes_nothing(tmp_path, value, message):
    if isinstance(value, bytes):
        run = waddle("krm", stdin=io.TextIOWrapper(io.BytesIO(value)), cwd=tmp_path)
    else:
        run = krm(value, cwd=tmp_path)

    assert run.returncode == 1
    assert message in run.stderr
    assert run.stdout == ""


def test_every_file_of_policies_that_cannot_be_read_is_named(tmp_path):
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text("x: [")
    run = krm(resource_list(pod()), "-f", "a.yaml", "-f", "b.yaml", cwd=tmp_path)
    assert (run.returncode, run.stdout) == (1, "")
    assert "reading: a.yaml: " in run.stderr
    assert "reading: b.yaml: " in run.stderr


def test_nothing_to_check_is_an_error_in_the_results_too(tmp_path):
    run = krm(resource_list(pod()), cwd=tmp_path)

    assert run.returncode == 2
    (result,) = yaml.safe_load(run.stdout)["results"]
    assert result == {"message": "nothing was checked: there is no constraint", "severity": "error"}


@pytest.mark.parametrize(("action", "code"), [("deny", 1), ("warn", 0)])
def test_kustomize_runs_it_as_a_function(program, tmp_path, action, code):
    (tmp_path / "waddle").write_text(
        f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m webhook krm -f "$(dirname "$0")/p.yaml"\n'
    )
    (tmp_path / "waddle").chmod(0o755)
    (tmp_path / "p.yaml").write_text(
        yaml.safe_dump_all([template(), pods(enforcementAction=action)])
    )
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(pod()))
    function = {"exec": {"path": "./waddle"}}
    (tmp_path / "validator.yaml").write_text(
        yaml.safe_dump(
            {
                "apiVersion": "waddle.dev/v1",
                "kind": "Validator",
                "metadata": {
                    "name": "policies",
                    "annotations": {"config.kubernetes.io/function": yaml.safe_dump(function)},
                },
            }
        )
    )
    # As `validators` it would refuse whatever comes back as it went: it writes annotations of its
    # own before it compares (kubernetes-sigs/kustomize#5036).
    (tmp_path / "kustomization.yaml").write_text(
        yaml.safe_dump({"resources": ["pod.yaml"], "transformers": ["validator.yaml"]})
    )

    run = subprocess.run(
        [str(program("kustomize")), "build", "--enable-alpha-plugins", "--enable-exec", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )

    assert bool(run.returncode) == bool(code), run.stderr
    if code == 0:
        assert yaml.safe_load(run.stdout)["metadata"]["name"] == "web"


def test_an_item_that_is_a_policy_which_is_not_evaluated_is_named(tmp_path):
    deleting = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "DeletingPolicy",
        "metadata": {"name": "old"},
        "spec": {"schedule": "* * * * *"},
    }
    run = krm(resource_list(template(), pods(), deleting, pod()), cwd=tmp_path)
    assert "DeletingPolicy old: not evaluated: " in run.stderr
    (violation, warning) = yaml.safe_load(run.stdout)["results"]
    assert violation["severity"] == "error"
    assert warning["severity"] == "warning"
    assert "DeletingPolicy old: not evaluated: " in warning["message"]


def test_what_a_foreign_policy_lacks_is_a_warning_in_the_results(tmp_path):
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "b"},
        "spec": {"policyName": "absent", "validationActions": ["Deny"]},
    }
    (tmp_path / "binding.yaml").write_text(yaml.safe_dump(binding))
    (tmp_path / "values.yaml").write_text("name: web\n")
    run = krm(resource_list(template(), pods(), pod()), "-f", str(tmp_path), cwd=tmp_path)
    results = yaml.safe_load(run.stdout)["results"][1:]
    assert {one["severity"] for one in results} == {"warning"}
    lines = [line.removeprefix("WARNING - ") for line in run.stderr.splitlines()]
    assert lines.pop() == "v1/Pod shop/web: K8sDeny/c (deny): no"
    assert [one["message"] for one in results] == lines
    assert lines[0].startswith("skipped, because it is not a Kubernetes object")
    assert "absent" in lines[1]


def test_the_items_of_a_list_among_the_items_are_reviewed(tmp_path):
    listed = {"apiVersion": "v1", "kind": "List", "items": [pod()]}

    assert krm(resource_list(template(), pods(), listed), cwd=tmp_path).returncode == 1
    listed["items"] = "x"
    run = krm(resource_list(template(), pods(), listed), cwd=tmp_path)
    assert run.returncode
    assert "items: expected a list, got a text" in run.stderr
