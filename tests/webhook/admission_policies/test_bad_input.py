"""Commands name the file and line of a fault in the API server's own policies, and what to do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.webhook.admission_policies.making import binding, pod, policy
from tests.webhook.cli.in_process import waddle

if TYPE_CHECKING:
    from pathlib import Path

Json = dict[str, Any]

CONFIG_MAPS = {"apiVersion": "v1", "kind": "ConfigMap"}
LOOPS = "object.spec.a.all(x, object.spec.b.all(y, object.spec.c.exists(z, z == x + y)))"
LABELLED = {
    "namespace": "shop",
    "selector": {"matchLabels": {"for": "policies"}},
    "parameterNotFoundAction": "Deny",
}
ABOUT_LABELLED = policy("params.data.x == '1'", paramKind=CONFIG_MAPS)
DEPLOYMENT = {"apiGroups": ["apps"], "resources": ["deployment"]}


def parameters(name: str) -> Json:
    metadata = {"name": name, "namespace": "shop", "labels": {"for": "policies"}}
    return {**CONFIG_MAPS, "metadata": metadata, "data": {"x": "1"}}


CASES: dict[str, tuple[list[Json], int, str]] = {
    "no binding": (
        [policy("true")],
        1,
        (
            "ValidatingAdmissionPolicy/p: no binding names it, so nothing is reviewed by it: add a "
            "ValidatingAdmissionPolicyBinding"
        ),
    ),
    "no policy": (
        [binding()],
        1,
        (
            "ValidatingAdmissionPolicyBinding/b: there is no ValidatingAdmissionPolicy p, so nothing "
            "is reviewed by it: add the policy, or mend policyName"
        ),
    ),
    "many parameters": (
        [ABOUT_LABELLED, binding(paramRef=LABELLED), parameters("one"), parameters("two")],
        2,
        (
            "ValidatingAdmissionPolicyBinding/b: its paramRef finds 2, and a request must satisfy "
            "each: shop/one, shop/two"
        ),
    ),
    "no parameters": (
        [ABOUT_LABELLED, binding(paramRef=LABELLED)],
        2,
        (
            "ValidatingAdmissionPolicyBinding/b: its paramRef finds no ConfigMap among what was "
            "given: failurePolicy decides. Add one, or mend paramRef"
        ),
    ),
    "too costly": (
        [policy(f"!has(object.spec.a) || {LOOPS}"), binding()],
        1,
        (
            "ValidatingAdmissionPolicy/p: spec.validations[0].expression: an API server would end it "
            "where lists and maps have 39 entries and more"
        ),
    ),
}


def written(folder: Path, documents: list[Json]) -> Path:
    """A file with a document on each line."""
    file = folder / "policies.yaml"
    file.write_text("\n---\n".join(map(json.dumps, documents)) + "\n")
    return file


@pytest.mark.parametrize("door", ["test", "check"])
@pytest.mark.parametrize("case", CASES)
def test_it_is_named_with_file_and_line_and_what_to_do(tmp_path: Path, case: str, door: str):
    documents, number, text = CASES[case]
    file, reviewed = written(tmp_path, documents), tmp_path / "pod.json"
    reviewed.write_text(json.dumps(pod()))
    done = waddle(door, "-f", file, "-f", reviewed)
    line = 2 * number - 1
    assert f"{file}:{line}: {text}" in done.stdout + done.stderr


@pytest.mark.parametrize("door", ["test", "check", "verify"])
def test_a_field_that_no_api_server_takes_is_named(tmp_path: Path, door: str):
    file = written(tmp_path, [policy("object.spec.", name="broken"), binding("b", "broken")])
    suite = tmp_path / "suite.yaml"
    case = {"name": "c", "object": "policies.yaml", "assertions": [{"violations": "no"}]}
    test = {"name": "t", "template": file.name, "constraint": file.name, "cases": [case]}
    head = {"apiVersion": "test.gatekeeper.sh/v1alpha1", "kind": "Suite"}
    suite.write_text(json.dumps({**head, "tests": [test]}))
    (tmp_path / "broken.json").write_text(json.dumps(policy("object.spec.", name="broken")))
    done = waddle(door, suite) if door == "verify" else waddle(door, "-f", file)
    assert done.returncode != 0
    output = done.stdout + done.stderr
    assert file.name in output
    assert "spec.validations[0].expression: " in output


def test_a_resource_that_no_api_server_serves_is_named_with_the_one_that_is_meant(tmp_path: Path):
    file = written(tmp_path, [policy("true", rule=DEPLOYMENT), binding()])
    done = waddle("check", "-f", file)
    output = done.stdout + done.stderr
    assert f"{file}:1: ValidatingAdmissionPolicy/p: its matchConstraints.resourceRules[0]" in output
    assert "is deployments meant?" in output


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("template", 'reading ConstraintTemplate from "{folder}/nothing.yaml"'),
        ("constraint", 'reading ValidatingAdmissionPolicyBinding from "{folder}/nothing.yaml"'),
        ("object", 'reading object from "{folder}/nothing.yaml"'),
        ("inventory", "{folder}/nothing.yaml"),
    ],
)
def test_a_test_that_names_a_file_that_is_not_there_says_which(
    tmp_path: Path, missing: str, message: str
):
    (tmp_path / "policy.yaml").write_text(json.dumps(policy("true")))
    (tmp_path / "binding.yaml").write_text(json.dumps(binding()))
    (tmp_path / "pod.yaml").write_text(json.dumps(pod()))
    case: Json = {"name": "c", "object": "pod.yaml", "assertions": [{"violations": "no"}]}
    test: Json = {"name": "t", "template": "policy.yaml", "constraint": "binding.yaml"}
    named: Any = ["nothing.yaml"] if missing == "inventory" else "nothing.yaml"
    (case if missing in {"object", "inventory"} else test)[missing] = named
    head = {"apiVersion": "test.gatekeeper.sh/v1alpha1", "kind": "Suite"}
    suite = tmp_path / "suite.yaml"
    suite.write_text(json.dumps({**head, "tests": [{**test, "cases": [case]}]}))
    done = waddle("verify", suite)
    assert done.returncode != 0
    assert message.format(folder=tmp_path).lower() in done.stdout.lower()
    assert "suite.yaml" in done.stdout
    assert "No such file or directory" in done.stdout


@pytest.mark.parametrize("field", ["policies", "resources"])
def test_a_test_of_kyverno_s_that_names_a_file_that_is_not_there_says_which(
    tmp_path: Path, field: str
):
    result = {"policy": "p", "kind": "Pod", "resources": ["web"], "result": "pass"}
    test = {
        "apiVersion": "cli.kyverno.io/v1alpha1",
        "kind": "Test",
        "metadata": {"name": "t"},
        "policies": ["pod.yaml"],
        "resources": ["pod.yaml"],
        "results": [result],
        field: ["nothing.yaml"],
    }
    (tmp_path / "pod.yaml").write_text(json.dumps(pod()))
    (tmp_path / "kyverno-test.yaml").write_text(json.dumps(test))
    done = waddle("verify", tmp_path)
    assert done.returncode != 0
    assert f"{field}[0]: {tmp_path}/nothing.yaml: No such file or directory" in done.stdout
    assert "kyverno-test.yaml" in done.stdout
