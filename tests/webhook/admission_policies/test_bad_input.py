"""Commands name the file and line of a fault in the API server's own policies, and what to do."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from waddle import InvalidPoliciesError, Policies, PolicyWarning

from tests.webhook.admission_policies.making import binding, pod, policy
from tests.webhook.cli.in_process import waddle
from tests.webhook.policies.loading import Loader
from webhook.policies.loader import API_SERVERS

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
TYPES = {"fieldRef": "spec.validations[0].expression", "warning": "undefined field 'a'"}
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
            "ValidatingAdmissionPolicyBinding/b: its paramRef finds no ConfigMap with for=policies in "
            "namespace shop among what was given: failurePolicy decides. Add one, or mend paramRef"
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
    "a kind that is not served": (
        [policy("true", rule=DEPLOYMENT), binding()],
        1,
        (
            "ValidatingAdmissionPolicy/p: its matchConstraints.resourceRules[0].resources names "
            '"deployment" of apps: is deployments meant?'
        ),
    ),
    "a short name that is not served": (
        [policy("true", rule={"resources": ["podz"]}), binding()],
        1,
        (
            "ValidatingAdmissionPolicy/p: its matchConstraints.resourceRules[0].resources names "
            '"podz": is pods meant?'
        ),
    ),
    "a resource of another group": (
        [policy("true", rule={"apiGroups": [""], "resources": ["deployments"]}), binding()],
        1,
        (
            "ValidatingAdmissionPolicy/p: its matchConstraints.resourceRules[0].resources names "
            '"deployments" of the group "": is the group "apps" meant?'
        ),
    ),
    "a version that is served no longer": (
        [
            policy("true", rule={**DEPLOYMENT, "resources": ["*"], "apiVersions": ["v1beta1"]}),
            binding(),
        ],
        1,
        (
            "ValidatingAdmissionPolicy/p: its matchConstraints.resourceRules[0].apiVersions: an API "
            "server serves nothing of apps/v1beta1 since Kubernetes 1.16: name a version"
        ),
    ),
    "a warning of the type check": (
        [
            {**policy("true"), "status": {"typeChecking": {"expressionWarnings": [TYPES]}}},
            binding(),
        ],
        1,
        "ValidatingAdmissionPolicy/p: spec.validations[0].expression: undefined field 'a'",
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


@pytest.mark.parametrize("case", CASES)
def test_the_library_warns_of_it_with_file_and_line(tmp_path: Path, case: str):
    documents, number, text = CASES[case]
    file = written(tmp_path, documents)
    begun = f"{file}:{2 * number - 1}: {text}"
    if case in {"no binding", "no policy"}:  # nothing would be reviewed at all
        with pytest.raises(InvalidPoliciesError, match=re.escape(begun)):
            Policies.load(file)
        return
    with pytest.warns(PolicyWarning) as warned:
        Policies.load(file)
    assert [str(one.message).startswith(begun) for one in warned].count(True) == 1


@pytest.mark.parametrize("case", sorted(CASES.keys() - {"no binding", "no policy"}))
def test_verify_names_it_once_for_a_suite(tmp_path: Path, case: str):
    documents, number, text = CASES[case]
    file = written(tmp_path, documents[:2])
    (tmp_path / "more.yaml").write_text("\n---\n".join(map(json.dumps, documents[2:])))
    (tmp_path / "pod.yaml").write_text(json.dumps(pod()))
    inventory = ["more.yaml"] if documents[2:] else []
    cases = [
        {"name": name, "object": "pod.yaml", "inventory": inventory, "assertions": [{}]}
        for name in ("one", "two")
    ]
    test = {"name": "t", "template": file.name, "constraint": file.name, "cases": cases}
    head = {"apiVersion": "test.gatekeeper.sh/v1alpha1", "kind": "Suite"}
    suite = tmp_path / "suite.yaml"
    suite.write_text(json.dumps({**head, "tests": [test]}))
    output = waddle("verify", suite).stderr
    assert output.count(f"WARNING - {file}:{2 * number - 1}: {text}") == 1


@pytest.mark.parametrize("case", CASES)
def test_verify_names_it_in_kyverno_s_tests(tmp_path: Path, case: str):
    documents, number, text = CASES[case]
    file = written(tmp_path, documents[:2])
    (tmp_path / "more.yaml").write_text("\n---\n".join(map(json.dumps, documents[2:])))
    (tmp_path / "pod.yaml").write_text(json.dumps(pod()))
    result = {"policy": "p", "kind": "Pod", "resources": ["shop/web"], "result": "pass"}
    test = {
        "apiVersion": "cli.kyverno.io/v1alpha1",
        "kind": "Test",
        "metadata": {"name": "t"},
        "policies": [file.name],
        "paramResources": ["more.yaml"],
        "resources": ["pod.yaml"],
        "results": [result],
    }
    (tmp_path / "kyverno-test.yaml").write_text(json.dumps(test))
    output = waddle("verify", tmp_path).stderr
    assert output.count(f"WARNING - {file}:{2 * number - 1}: {text}") == 1


@pytest.mark.parametrize("case", CASES)
def test_serve_logs_it_once_at_load(tmp_path: Path, case: str):
    documents, number, text = CASES[case]
    file = written(tmp_path, documents)
    loader = Loader(tmp_path)
    for _ in range(2):
        loader.loader.load()
    output = [json.loads(line)["policy"] for line in loader.lines if b'"policy"' in line]
    assert len([one for one in output if one.startswith(f"{file}:{2 * number - 1}: {text}")]) == 1
    is_policy = documents[0]["kind"] == "ValidatingAdmissionPolicy"
    notice = f"{file}:1: ValidatingAdmissionPolicy p: {API_SERVERS}"
    assert output.count(notice) == is_policy


@pytest.mark.parametrize("door", ["test", "check", "serve"])
def test_a_policy_of_kyverno_that_is_doubtful_is_named_as_well(tmp_path: Path, door: str):
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    document = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": "k"},
        "spec": {
            "matchConstraints": {"resourceRules": [{**rule, "resources": ["pod"]}]},
            "validations": [{"expression": f"!has(object.spec.a) || {LOOPS}"}],
        },
    }
    file, reviewed = written(tmp_path, [document]), tmp_path / "pod.json"
    reviewed.write_text(json.dumps(pod()))
    if door == "serve":
        loader = Loader(file, kyverno="enforce")
        loader.loader.load()
        output = b"".join(loader.lines).decode().replace("\\", "")
    else:
        done = waddle(door, "-f", file, "-f", reviewed)
        output = done.stdout + done.stderr
    begun = f"{file}:1: ValidatingPolicy/k: "
    assert f'{begun}its matchConstraints.resourceRules[0].resources names "pod": is pods' in output
    assert f"{begun}spec: Waddle would end it where lists and maps have" in output


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


@pytest.mark.parametrize(
    ("missing", "field", "subject"),
    [
        ("template", "tests[0].template", "ConstraintTemplate"),
        ("constraint", "tests[0].constraint", "ValidatingAdmissionPolicyBinding"),
        ("object", "tests[0].cases[0].object", "object"),
        ("inventory", "tests[0].cases[0].inventory[0]", "inventory"),
    ],
)
def test_a_test_that_names_a_file_that_is_not_there_says_where(
    tmp_path: Path, missing: str, field: str, subject: str
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
    suite.write_text(json.dumps({**head, "tests": [{**test, "cases": [case]}]}, indent=1))
    line = 1 + suite.read_text().split("nothing.yaml")[0].count("\n")
    done = waddle("verify", suite)
    assert done.returncode != 0
    assert (
        f'{suite}:{line}: {field}: reading {subject} from "{tmp_path}/nothing.yaml": '
        "No such file or directory; correct the name, or add the file"
    ) in done.stdout


def test_a_field_of_a_suite_that_has_another_shape_is_named_with_its_line(tmp_path: Path):
    suite = tmp_path / "suite.yaml"
    suite.write_text(
        "# a suite\nkind: Suite\napiVersion: test.gatekeeper.sh/v1alpha1\n"
        "tests:\n- name: a\n- name: 3\n"
    )
    output = waddle("verify", suite).stderr
    assert f"{suite}:6: tests[1].name must be a string" in output


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


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"namespaceSelector": "shop"}, "namespaceSelector: write a list of objects"),
        ({"policies": [{"name": "p", "resources": [2]}]}, "policies[0].resources: write a list"),
        ({"globalValues": 3}, "globalValues: write values by their names"),
        (
            {"globalValues": {"request.operation": "UPDAT"}},
            "globalValues: request.operation: 'UPDAT' is none of CONNECT, CREATE, DELETE, UPDATE",
        ),
        (
            {"policies": [{"name": "p", "resources": [{"values": {"request.operation": [1]}}]}]},
            "policies[0].resources[0].values: request.operation: [1] is none of CONNECT",
        ),
    ],
)
def test_values_of_another_shape_are_named(tmp_path: Path, values: Json, why: str):
    """They would have no effect, so that a test would pass or be skipped without them."""
    test = {
        "apiVersion": "cli.kyverno.io/v1alpha1",
        "kind": "Test",
        "metadata": {"name": "t"},
        "policies": ["policies.yaml"],
        "resources": ["pod.yaml"],
        "results": [{"policy": "p", "kind": "Pod", "resources": ["web"], "result": "pass"}],
        "variables": "values.yaml",
    }
    written(tmp_path, [policy("true"), binding()])
    (tmp_path / "pod.yaml").write_text(json.dumps(pod()))
    (tmp_path / "values.yaml").write_text(json.dumps(values))
    (tmp_path / "kyverno-test.yaml").write_text(json.dumps(test))
    done = waddle("verify", tmp_path)
    assert done.returncode != 0
    assert f"{tmp_path}/kyverno-test.yaml:1: variables: {why}" in done.stdout


def test_a_result_that_is_no_text_is_named(tmp_path: Path):
    test = {
        "apiVersion": "cli.kyverno.io/v1alpha1",
        "kind": "Test",
        "metadata": {"name": "t"},
        "policies": ["policies.yaml"],
        "results": [{"policy": "p", "result": ["pass"]}],
    }
    (tmp_path / "kyverno-test.yaml").write_text(json.dumps(test))
    done = waddle("verify", tmp_path)
    assert "results[0].result: ['pass'] is none of error, fail, pass, skip, warn" in done.stdout
