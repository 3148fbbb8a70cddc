"""Kyverno's MutatingPolicies, and its policies of documents, at the commands over files."""

import io
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.webhook.cli.in_process import waddle
from tests.webhook.kyverno.making import LABEL, PODS, applied, document, patch, pod
from tests.webhook.mutation.documents import label
from webhook.library import InvalidInputError, Policies

Json = dict[str, Any]


def put(folder: Path, name: str, *documents: Json) -> Path:
    """The documents in one file."""
    file = folder / name
    file.write_text("\n---\n".join(map(json.dumps, documents)))
    return file


def labelled(name: str = "p", **spec: Any) -> Json:
    made = document(applied(LABEL), **spec)
    return {**made, "metadata": {"name": name}}


def test_mutate_prints_the_object_and_the_patch_of_a_mutating_policy(tmp_path: Path) -> None:
    file = put(tmp_path, "a.yaml", labelled(), label("owner", "owner", "me"), pod())
    run = waddle("mutate", "-f", file)
    assert run.returncode == 0, run.stderr
    (made,) = yaml.safe_load_all(run.stdout)
    assert made["metadata"]["labels"] == {"team": "a", "owner": "me"}
    (patched,) = json.loads(waddle("mutate", "-o", "patch", "-f", file).stdout)
    assert patched == {
        "resource": "Pod shop/web",
        "mutators": "MutatingPolicy/p, AssignMetadata//owner:0",
        "patch": [{"op": "add", "path": "/metadata/labels", "value": {"owner": "me", "team": "a"}}],
    }


def test_mutate_says_what_cannot_be_used_and_what_has_another_effect(tmp_path: Path) -> None:
    refused = labelled(evaluation={"mutateExisting": {"enabled": True}})
    run = waddle("mutate", "-f", put(tmp_path, "a.yaml", refused, pod()))
    assert run.returncode == 2
    assert "spec.evaluation.mutateExisting: Waddle changes objects on their way" in run.stderr
    noted = document(patch("true ? [] : [JSONPatch{op: 'remove', path: '/spec'}]"))
    noted["metadata"] = {"name": "p"}
    file = put(tmp_path, "a.yaml", noted, pod())
    run = waddle("mutate", "-f", file)
    begun = f"WARNING - {file}:1: MutatingPolicy/p: spec.autogen: a JSON Patch keeps the paths"
    assert begun in run.stderr
    failing = document(applied(LABEL.replace('"a"', "object.none")))
    run = waddle("mutate", "-f", put(tmp_path, "a.yaml", failing, pod()))
    assert run.returncode == 2
    assert "mutating Pod shop/web: MutatingPolicy/p no such key: none" in run.stderr


def validating(expression: str, **spec: Any) -> Json:
    made = {"validations": [{"expression": expression, "message": "no team"}], **spec}
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": "team"},
        "spec": made,
    }


def test_what_is_reviewed_is_what_mutating_policies_leave(tmp_path: Path) -> None:
    matched = labelled()["spec"]["matchConstraints"]
    policy = validating("has(object.metadata.labels.team)", matchConstraints=matched)
    alone = put(tmp_path, "a.yaml", policy, pod())
    assert waddle("test", "-f", alone).returncode == 1
    both = put(tmp_path, "b.yaml", policy, labelled(), pod())
    run = waddle("test", "-f", both)
    assert run.returncode == 0, run.stdout
    assert "MutatingPolicy/p" in run.stdout
    checked = json.loads(waddle("check", "-f", both, "-o", "json").stdout)
    assert checked["problems"] == []
    assert Policies.load(alone).review(pod())
    assert Policies.load(both).review(pod()) == []


@pytest.mark.parametrize(
    ("actions", "code", "action", "level"),
    [
        (["Deny"], 1, "deny", "error"),
        (["Warn"], 0, "warn", "warning"),
        (["Audit"], 0, "dryrun", "notice"),
        (["Deny", "Audit"], 1, "deny%2Cdryrun", "error"),
        (["Audit", "Warn"], 0, "dryrun%2Cwarn", "warning"),
    ],
)
def test_the_actions_of_a_policy_are_exit_code_and_level_of_test(
    tmp_path: Path, actions: list[str], code: int, action: str, level: str
) -> None:
    about = {"resourceRules": [PODS]}
    policy = validating("false", matchConstraints=about, validationActions=actions)
    run = waddle("test", "-o", "github", "-f", put(tmp_path, "a.yaml", policy, pod()))
    assert run.returncode == code, run.stderr
    assert run.stdout.startswith(f"::{level} ")
    assert f"title=ValidatingPolicy/team ({action})::" in run.stdout


PLAN = {"size": "large"}
OF_DOCUMENTS = validating("object.?size.orValue('') != 'large'", evaluation={"mode": "JSON"})


def test_a_policy_of_documents_reviews_them_in_test(tmp_path: Path) -> None:
    policy = put(tmp_path, "policy.yaml", OF_DOCUMENTS)
    plan, small = put(tmp_path, "plan.json", PLAN), put(tmp_path, "small.json", {"a": 1})
    listed = tmp_path / "list.json"
    listed.write_text("[1]")
    run = waddle("test", "--target=json", "-f", policy, "-f", plan, "-f", small, "-o", "json")
    assert run.returncode == 1
    (review,) = json.loads(run.stdout)
    assert (review["target"], review["msg"]) == ("json", "no team")
    assert review["violatingObject"] == PLAN
    run = waddle("test", "--target=json", "-f", policy, "-f", small)
    assert run.returncode == 0, run.stderr
    assert "1 reviewed document, by 1 constraint" in run.stdout
    # An expression that is no use for a list is a violation, and never passes.
    assert waddle("test", "--target=json", "-f", policy, "-f", listed).returncode == 1


def test_each_door_says_what_does_not_review_there(tmp_path: Path) -> None:
    policy, plan = put(tmp_path, "policy.yaml", OF_DOCUMENTS), put(tmp_path, "plan.json", PLAN)
    run = waddle("test", "-f", policy, "-f", plan)
    assert run.returncode == 2
    assert "mode JSON reviews documents and no admission: waddle test --target json" in run.stderr
    objects = put(tmp_path, "o.yaml", validating("true", matchConstraints={"resourceRules": []}))
    run = waddle("test", "--target=json", "-f", objects, "-f", plan)
    assert run.returncode == 2
    assert "ValidatingPolicy/team: it reviews no document, since spec.evaluation." in run.stderr
    assert "there is no constraint" in run.stderr


def test_check_shows_what_a_policy_of_documents_would_say(tmp_path: Path) -> None:
    policy, plan = put(tmp_path, "policy.yaml", OF_DOCUMENTS), put(tmp_path, "plan.json", PLAN)
    run = waddle("check", "-f", policy, "-f", plan, "-o", "json")
    assert run.returncode == 0, run.stderr
    checked = json.loads(run.stdout)
    assert checked["problems"] == []
    (one,) = checked["manifests"]["constraints"]
    assert (one["name"], one["violationsAfter"], one["matched"]) == ("team", 1, True)
    named = put(tmp_path, "named.json", {**PLAN, "metadata": {"name": "plan"}})
    run = waddle("check", "-f", policy, "-f", named, "-o", "json")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["manifests"]["constraints"][0]["violationsAfter"] == 1
    alone = json.loads(waddle("check", "-f", policy, "-o", "json").stdout)
    assert "mode JSON reviews documents" in alone["problems"][0]["message"]
    other = put(tmp_path, "other.yaml", labelled())
    run = waddle("check", "-f", other, "-f", plan)
    assert "skipped, because it is not a Kubernetes object" in run.stderr


def test_the_library_reviews_any_value_by_them(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        policies = Policies.load(put(tmp_path, "policy.yaml", OF_DOCUMENTS))
    assert policies.constraints == ("ValidatingPolicy/team",)
    assert policies.unmatched == policies.constraints
    (found,) = policies.review_document(PLAN)
    assert (found.constraint, found.message) == ("ValidatingPolicy/team", "no team")
    assert policies.review_document({"size": "small"}) == []
    assert not policies.unmatched
    with pytest.raises(InvalidInputError, match="no constraint is for admission"):
        policies.review(pod())


def test_tests_of_kyverno_and_what_they_are_about_are_no_manifests(tmp_path: Path) -> None:
    put(tmp_path, "policy.yaml", labelled())
    put(tmp_path, "sample.yaml", pod())
    put(tmp_path, "patched.yaml", pod())
    test = {
        "kind": "Test",
        "metadata": {"name": "t"},
        "policies": ["policy.yaml"],
        "resources": ["sample.yaml"],
        "results": [{"policy": "p", "result": "pass", "patchedResources": "patched.yaml"}],
    }
    put(tmp_path, "kyverno-test.yaml", test)
    other = {**pod(), "metadata": {"name": "other", "namespace": "shop"}}
    put(tmp_path, "other.yaml", other)
    run = waddle("mutate", "-f", tmp_path)
    assert run.returncode == 0, run.stderr
    (made,) = yaml.safe_load_all(run.stdout)
    assert made["metadata"] == {"name": "other", "namespace": "shop", "labels": {"team": "a"}}
    # A named sample is used.
    run = waddle("mutate", "-f", tmp_path / "policy.yaml", "-f", tmp_path / "sample.yaml")
    assert "team: a" in run.stdout


def test_mutate_names_what_is_no_object_of_kubernetes(tmp_path: Path) -> None:
    odd = {"kind": "Odd", "metadata": {"name": "o"}}
    run = waddle("mutate", "-f", put(tmp_path, "odd.yaml", labelled(), odd))
    assert run.returncode == 2
    assert "odd.yaml:3: Odd o: invalid request object: resource o has no version" in run.stderr


def test_migrate_says_that_a_mutating_policy_runs_or_why_it_does_not(tmp_path: Path) -> None:
    run = waddle("migrate", "kyverno", "-f", put(tmp_path, "a.yaml", labelled()))
    assert (run.returncode, "as it is" in run.stdout) == (0, True)
    refused = labelled(targetMatchConditions=[{"name": "a", "expression": "true"}])
    run = waddle("migrate", "kyverno", "-f", put(tmp_path, "a.yaml", refused))
    assert run.returncode == 1
    assert "spec.targetMatchConditions: Waddle changes objects on their way" in run.stdout


def test_audit_annotations_are_shown_by_commands_and_the_library(tmp_path: Path) -> None:
    matched = {
        "resourceRules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["pods"],
            }
        ]
    }
    annotations = [{"key": "who", "valueExpression": "string(object.metadata.name)"}]
    policy = validating("true", matchConstraints=matched, auditAnnotations=annotations)
    file = put(tmp_path, "a.yaml", policy, pod())
    remark = "ValidatingPolicy/team: audit annotation who: web"
    for command in ("test", "check"):
        run = waddle(command, "-f", file)
        assert run.returncode == 0, run.stderr
        assert remark in run.stderr
    found = Policies.load(values=[policy]).review(pod())
    assert (list(found), list(found.remarks)) == ([], [remark])
    policy["spec"]["validations"][0]["expression"] = "false"
    (violation,) = Policies.load(values=[policy]).review(pod())
    assert violation.details == {"auditAnnotations": {"who": "web"}}


ODD_CONTROLLERS: dict[str, tuple[str, Json, str, str]] = {
    "no template": ("apps/v1", {}, "no such key: template", "Deployment"),
    "a text": ("apps/v1", {"template": "x"}, "no such key: spec", "Deployment"),
    "a list": ("apps/v1", {"template": {"spec": []}}, "in list", "StatefulSet"),
    "no job": ("batch/v1", {"jobTemplate": {}}, "no such key: spec", "CronJob"),
}


@pytest.mark.parametrize("shape", ODD_CONTROLLERS)
def test_an_odd_controller_of_pods_is_reported_with_its_place_and_what_to_write(
    tmp_path: Path, shape: str
) -> None:
    api_version, spec, fault, kind = ODD_CONTROLLERS[shape]
    matched = {"resourceRules": [PODS]}
    policy = validating("object.spec.containers.size() > 0", matchConstraints=matched)
    odd = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "odd"}, "spec": spec}
    policies, objects = put(tmp_path, "p.yaml", policy), put(tmp_path, "o.yaml", pod(), odd)
    place = "spec.jobTemplate.spec.template" if kind == "CronJob" else "spec.template"
    advice = f"the policy is about Pods: write the spec of the {kind}'s Pods at {place}.spec"
    run = waddle("test", "-f", policies, "-f", objects)
    assert run.returncode == 1
    assert f"{objects}:3: {api_version}/{kind} odd\n" in run.stdout
    assert f"{fault}; {advice}\n" in run.stdout

    run = waddle("check", "-f", policies, "-f", objects)
    assert f"{objects}:3: {kind} odd: validations[0].expression resulted in error: " in run.stdout
    assert advice in run.stdout

    annotations = {"config.kubernetes.io/path": "app/odd.yaml"}
    item = {**odd, "metadata": {"name": "odd", "annotations": annotations}}
    items = {"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": [item]}
    stdin = io.TextIOWrapper(io.BytesIO(json.dumps(items).encode()))
    run = waddle("krm", "-f", policies, stdin=stdin)
    (result,) = yaml.safe_load(run.stdout)["results"]
    assert result["file"]["path"] == "app/odd.yaml"
    assert result["message"].endswith(advice)


NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
NAMESPACES = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["namespaces"]}


@pytest.mark.parametrize("operation", ["", "CREATE", "UPDATE"])
def test_a_request_about_a_namespace_is_in_that_namespace(tmp_path: Path, operation: str) -> None:
    """As at the API server, with or without a request; Kyverno has the stored Namespace beside."""
    stored = "namespaceObject == null"
    if operation == "UPDATE":
        stored = "namespaceObject.metadata.name == 'shop'"
    policy = validating(
        f"request.namespace == 'shop' && {stored}",
        matchConstraints={"resourceRules": [{**NAMESPACES, "operations": ["*"]}]},
    )
    about = {
        "uid": "u",
        "kind": {"group": "", "version": "v1", "kind": "Namespace"},
        "resource": {"group": "", "version": "v1", "resource": "namespaces"},
        "operation": operation,
        "name": "shop",
        "namespace": "shop",
        "object": NAMESPACE,
        "oldObject": NAMESPACE if operation == "UPDATE" else None,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": about}
    run = waddle("test", "-f", put(tmp_path, "a.yaml", policy, review if operation else NAMESPACE))
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_mutating_policy_sees_a_namespace_in_itself(tmp_path: Path) -> None:
    rule = {**NAMESPACES, "operations": ["CREATE"]}
    value = 'Object{metadata: Object.metadata{labels: {"in": request.namespace}}}'
    policy = document(applied(value), matchConstraints={"resourceRules": [rule]})
    file = put(tmp_path, "a.yaml", {**policy, "metadata": {"name": "p"}}, NAMESPACE)
    run = waddle("mutate", "-f", file)
    assert yaml.safe_load(run.stdout)["metadata"]["labels"] == {"in": "shop"}, run.stderr
