"""``waddle check --vap``: whether generated policies say what the webhook says."""

import functools
import json

import pytest
import yaml

from tests.policies import exception
from tests.webhook.cli.in_process import waddle

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"hostNetwork": True, "containers": []},
}


def policies(tmp_path, match=None, **source):
    """A file with a template in CEL, its constraint and a Pod."""
    target = {
        "target": "admission.k8s.gatekeeper.sh",
        "code": [{"engine": "K8sNativeValidation", "source": source}],
    }
    template = {
        "apiVersion": "templates.gatekeeper.sh/v1",
        "kind": "ConstraintTemplate",
        "metadata": {"name": "k8snative"},
        "spec": {"crd": {"spec": {"names": {"kind": "K8sNative"}}}, "targets": [target]},
    }
    constraint = {
        "apiVersion": "constraints.gatekeeper.sh/v1beta1",
        "kind": "K8sNative",
        "metadata": {"name": "one"},
        "spec": {"match": {"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}], **(match or {})}},
    }
    file = tmp_path / "policies.yaml"
    file.write_text(yaml.safe_dump_all([template, constraint, POD]))
    return file


@pytest.mark.parametrize("mode", ["template", "constraint"])
def test_policies_that_say_the_same_are_fine(tmp_path, mode):
    file = policies(
        tmp_path,
        validations=[{"expression": "!has(object.spec.hostNetwork)", "message": "no"}],
    )
    run = waddle("check", "-f", file, "--vap", mode, "-o", "json")
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)["generated"]
    assert found == {"compared": 2, "leftToTheWebhook": 0, "without": {}, "differences": []}


@pytest.mark.parametrize("process", ["webhook", "audit", "*"])
def test_a_namespace_that_one_process_leaves_out_is_compared_as_admissions_see_it(
    tmp_path, process
):
    """The audit's match was compared: it was said that webhook and policy differ."""
    match = {"excludedNamespaces": ["shop"], "processes": [process]}
    file = policies(tmp_path, match, validations=[{"expression": "false", "message": "no"}])
    run = waddle("check", "-f", file, "--vap", "constraint", "-o", "json")
    assert json.loads(run.stdout)["generated"]["differences"] == []


@pytest.mark.parametrize("points", [["vap.k8s.io"], ["validation.gatekeeper.sh", "vap.k8s.io"]])
def test_a_constraint_that_is_enforced_at_the_api_server_alone_is_compared_as_well(
    tmp_path, points
):
    """It was said that the webhook admits what its policy refuses, and that it cannot be used."""
    file = policies(tmp_path, validations=[{"expression": "false", "message": "no"}])
    documents = list(yaml.safe_load_all(file.read_text()))
    at = [{"name": point} for point in points]
    documents[1]["spec"]["enforcementAction"] = "scoped"
    documents[1]["spec"]["scopedEnforcementActions"] = [{"action": "deny", "enforcementPoints": at}]
    file.write_text(yaml.safe_dump_all(documents))
    run = waddle("check", "-f", file, "--vap", "template")
    assert run.returncode == 0
    assert "2 verdicts of generated policies, 0 differ" in run.stdout


def with_exception(file, **metadata):
    """The policies with an exception for their constraint, in force now."""
    documents = list(yaml.safe_load_all(file.read_text()))
    documents[1]["metadata"] |= metadata
    documents.append(exception("legacy", "K8sNative/one", match={"name": "web"}))
    file.write_text(yaml.safe_dump_all(documents))
    return file, documents


def test_a_constraint_that_is_excused_from_is_not_carried_by_a_policy_and_that_is_said(tmp_path):
    """A policy of the API server was compared as if it knew what the webhook excuses."""
    source = {"validations": [{"expression": "!has(object.spec.hostNetwork)", "message": "no"}]}
    file, documents = with_exception(policies(tmp_path, **source))
    run = waddle("check", "-f", file, "--vap", "template")
    assert run.returncode == 0, run.stderr
    message = (
        "K8sNative/one has none: withdrawn for ClusterPolicyException legacy, and others maybe"
    )
    assert message in run.stdout
    documents[-1]["spec"]["notBefore"] = "2099-12-31T00:00:00Z"
    file.write_text(yaml.safe_dump_all(documents))
    later = waddle("check", "-f", file, "--vap", "template")
    assert "2 verdicts of generated policies, 0 differ" in later.stdout


def test_a_ratchet_is_not_carried_by_a_policy_and_that_is_said(tmp_path):
    """The check ended by a bug of ours."""
    file = policies(tmp_path, validations=[{"expression": "false", "message": "no"}])
    documents = list(yaml.safe_load_all(file.read_text()))
    documents[1]["metadata"]["annotations"] = {"waddle.dev/existing": "allow"}
    file.write_text(yaml.safe_dump_all(documents))
    run = waddle("check", "-f", file, "--vap", "template")
    assert run.returncode == 0, run.stderr
    assert "K8sNative/one has none: withdrawn for waddle.dev/existing" in run.stdout


def test_what_admission_would_refuse_of_an_exception_is_reported_before(tmp_path):
    """The check reported each exception as usable."""
    file, documents = with_exception(policies(tmp_path, validations=[{"expression": "false"}]))
    documents[1]["metadata"]["annotations"] = {"waddle.dev/exceptions": "none"}
    documents.append(exception("typo", "K8sNative/two", match={"name": "web"}))
    file.write_text(yaml.safe_dump_all(documents))
    run = waddle("check", "-f", file)
    assert run.returncode == 1
    assert "K8sNative one allows no exceptions" in run.stdout
    assert "there is no constraint K8sNative/two" in run.stdout


TEN = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
LOOPS = functools.reduce(lambda within, name: f"{TEN}.all({name}, {within})", "abcde", "true")
"""Costs about half of what the webhook pays for a constraint, and a twentieth of an API server's."""


def test_a_difference_is_reported_with_what_each_says_and_is_a_no(tmp_path):
    file = policies(
        tmp_path, validations=[{"expression": f"!{LOOPS}", "message": name} for name in "abc"]
    )
    run = waddle("check", "-f", file, "--vap", "template", "--evaluation-budget-ms", "60000")
    assert run.returncode == 1
    assert "2 verdicts of generated policies, 2 differ" in run.stdout
    assert "K8sNative/one: CREATE Pod shop/web" in run.stdout
    assert "actual cost limit exceeded" in run.stdout
    assert "policy: a; b; c" in run.stdout


def test_errors_that_a_policy_leaves_to_the_webhook_are_counted_and_no_difference(tmp_path):
    file = policies(tmp_path, validations=[{"expression": "object.spec.missing == 1"}])
    run = waddle("check", "-f", file, "--vap", "template", "-o", "json")
    assert run.returncode == 0
    assert json.loads(run.stdout)["generated"]["leftToTheWebhook"] == 2
    run = waddle("check", "-f", file, "--vap", "constraint", "-o", "json")
    found = json.loads(run.stdout)["generated"]
    assert (found["leftToTheWebhook"], found["differences"]) == (0, [])


def test_a_template_that_no_policy_can_say_is_named_with_the_reason(tmp_path):
    file = policies(
        tmp_path,
        matchCondition=[{"name": "m", "expression": "variables.anyObject != null"}],
        validations=[{"expression": "true"}],
    )
    run = waddle("check", "-f", file, "--vap", "template")
    assert run.returncode == 0
    assert "k8snative has none: its match condition m reads variables" in run.stdout


def test_recorded_decisions_are_asked_about_too(tmp_path):
    file = policies(
        tmp_path,
        validations=[{"expression": "!has(object.spec.hostNetwork)", "message": "no"}],
    )
    record = {
        "eventType": "decision",
        "enforcementPoint": "validation.gatekeeper.sh",
        "constraintsEvaluated": 1,
        "verdict": "deny",
        "operation": "UPDATE",
        "resourceGroup": "",
        "resourceAPIVersion": "v1",
        "resourceKind": "Pod",
        "requestResource": {"group": "", "version": "v1", "resource": "pods"},
        "resourceName": "web",
        "resourceNamespace": "shop",
        "object": POD,
        "oldObject": POD,
        "results": [],
    }
    records = tmp_path / "records.jsonl"
    records.write_text(json.dumps(record) + "\n")
    run = waddle("check", "-f", file, "--vap", "template", "--decisions", records, "-o", "json")
    assert json.loads(run.stdout)["generated"]["compared"] == 3, run.stderr
