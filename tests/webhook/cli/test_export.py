"""``waddle export --static``: what is written for an API server that loads policies from files."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.policies import exception
from tests.programs import ROOT
from tests.webhook.cli.in_process import waddle

if TYPE_CHECKING:
    from pathlib import Path

SUFFIX = ".static.k8s.io"
TEMPLATE: dict[str, Any] = {
    "apiVersion": "templates.gatekeeper.sh/v1",
    "kind": "ConstraintTemplate",
    "metadata": {"name": "said"},
    "spec": {
        "crd": {"spec": {"names": {"kind": "Said"}}},
        "targets": [
            {
                "target": "admission.k8s.gatekeeper.sh",
                "code": [
                    {
                        "engine": "K8sNativeValidation",
                        "source": {"validations": [{"expression": "true", "message": "no"}]},
                    }
                ],
            }
        ],
    },
}
CONSTRAINT: dict[str, Any] = {
    "apiVersion": "constraints.gatekeeper.sh/v1beta1",
    "kind": "Said",
    "metadata": {"name": "one"},
    "spec": {"match": {"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}]}},
}
REGO = copy.deepcopy(TEMPLATE)
REGO["metadata"]["name"] = "reg"
REGO["spec"]["crd"]["spec"]["names"]["kind"] = "Reg"
REGO["spec"]["targets"] = [
    {
        "target": "admission.k8s.gatekeeper.sh",
        "rego": 'package reg\nviolation[{"msg": "x"}] { true }',
    }
]


@pytest.fixture
def files(tmp_path: Path) -> Any:
    """Writes documents, and gives the file."""

    def write(*documents: dict[str, Any]) -> Path:
        file = tmp_path / "policies.yaml"
        file.write_text(yaml.safe_dump_all(documents))
        return file

    return write


def written(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The objects that an API server would read, by kind and name."""
    objects: dict[tuple[str, str], dict[str, Any]] = {}
    for path in (folder / "validating-policies").iterdir():
        assert path.suffix == ".yaml"
        for one in yaml.safe_load_all(path.read_text()):
            key = one["kind"], one["metadata"]["name"]
            assert key not in objects, "an API server does not start with two of a name"
            objects[key] = one
    return objects


def test_a_constraint_is_a_policy_and_a_binding_that_refer_to_nothing(tmp_path, files) -> None:
    file = files(TEMPLATE, CONSTRAINT)
    run = waddle("export", "--static", tmp_path / "out", file, "--path", "/etc/own/")
    assert run.returncode == 0, run.stderr
    assert "no guard is written: name the users" in run.stderr
    name = f"gatekeeper-said-one{SUFFIX}"
    made = written(tmp_path / "out")
    assert set(made) == {
        ("ValidatingAdmissionPolicy", name),
        ("ValidatingAdmissionPolicyBinding", name),
    }
    policy = made["ValidatingAdmissionPolicy", name]
    assert policy["metadata"] == {"name": name}
    assert policy["apiVersion"] == "admissionregistration.k8s.io/v1"
    assert "paramKind" not in policy["spec"]
    (_, spared) = policy["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"]
    assert {"waddle-system", "kube-system"} <= set(spared["values"])
    binding = made["ValidatingAdmissionPolicyBinding", name]["spec"]
    assert binding["policyName"] == name
    assert "paramRef" not in binding
    configuration = yaml.safe_load((tmp_path / "out" / "admission-configuration.yaml").read_text())
    (plugin,) = configuration["plugins"]
    assert plugin["configuration"]["staticManifestsDir"] == "/etc/own/validating-policies"


def test_what_cannot_be_written_is_named_and_the_rest_is_written(tmp_path, files) -> None:
    rego = {**CONSTRAINT, "kind": "Reg"}
    ratchet = copy.deepcopy(CONSTRAINT)
    ratchet["metadata"] = {"name": "eased", "annotations": {"waddle.dev/existing": "allow"}}
    excused = copy.deepcopy(CONSTRAINT)
    excused["metadata"]["name"] = "excused"
    made = exception("legacy", "Said/excused", match={"name": "web"})
    file = files(TEMPLATE, REGO, CONSTRAINT, rego, ratchet, excused, made)
    run = waddle("export", "--static", tmp_path / "out", file)
    assert run.returncode == 1
    assert "Reg/one has none: its template has no CEL" in run.stdout
    assert "Said/eased has none: withdrawn for waddle.dev/existing: allow" in run.stdout
    assert "Said/excused has none: withdrawn for ClusterPolicyException legacy" in run.stdout
    assert {name for _, name in written(tmp_path / "out")} == {f"gatekeeper-said-one{SUFFIX}"}
    configuration = (tmp_path / "out" / "admission-configuration.yaml").read_text()
    assert configuration.startswith("# Incomplete: Reg/one has none: its template has no CEL")
    assert yaml.safe_load(configuration)["kind"] == "AdmissionConfiguration"


def test_another_export_takes_the_place_of_the_last_and_of_nothing_else(tmp_path, files) -> None:
    folder = tmp_path / "out"
    assert waddle("export", "--static", folder, files(TEMPLATE, CONSTRAINT)).returncode == 0
    own = folder / "validating-policies" / "own.yaml"
    own.write_text("# mine\n")
    other = copy.deepcopy(CONSTRAINT)
    other["metadata"]["name"] = "two"
    assert waddle("export", "--static", folder, files(TEMPLATE, other)).returncode == 0
    names = {path.name for path in own.parent.iterdir()}
    assert names == {"own.yaml", "gatekeeper-said-two.yaml"}


def test_a_guard_names_who_may_change_our_configurations(tmp_path, files) -> None:
    run = waddle(
        *("export", "--static", tmp_path / "out", files(TEMPLATE, CONSTRAINT), "--name", "guard"),
        *("-n", "own", "--allow-user", 'a"b', "--allow-group", "platform"),
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    guard = written(tmp_path / "out")["ValidatingAdmissionPolicy", f"guard-guard{SUFFIX}"]["spec"]
    assert guard["failurePolicy"] == "Fail"
    (validation,) = guard["validations"]
    assert 'request.userInfo.username in ["a\\"b"]' in validation["expression"]
    assert "system:serviceaccount:own:guard" in validation["expression"]
    assert validation["message"].startswith('only a"b, platform may change or delete this')
    (condition,) = guard["matchConditions"]
    assert "guard-validating-webhook-configuration" in condition["expression"]


def test_a_configuration_among_the_files_says_what_policies_are_about(tmp_path, files) -> None:
    webhook = {
        "name": "validation.gatekeeper.sh",
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["pods"],
                "scope": "*",
            }
        ],
        "matchPolicy": "Exact",
    }
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "c"},
        "webhooks": [webhook],
    }
    run = waddle("export", "--static", tmp_path / "out", files(TEMPLATE, CONSTRAINT, configuration))
    assert run.returncode == 0, run.stderr
    policy = written(tmp_path / "out")["ValidatingAdmissionPolicy", f"gatekeeper-said-one{SUFFIX}"][
        "spec"
    ]
    assert policy["matchConstraints"]["resourceRules"] == webhook["rules"]


def test_a_relative_place_is_refused(tmp_path, files) -> None:
    run = waddle("export", "--static", tmp_path / "out", files(TEMPLATE), "--path", "here")
    assert run.returncode == 64
    assert "give an absolute path" in run.stderr


def test_the_page_s_command_writes_what_the_page_says(tmp_path) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "all.yaml").write_text(yaml.safe_dump_all([TEMPLATE, CONSTRAINT]))
    page = (ROOT / "docs" / "failing-closed.md").read_text()
    command = page.partition("$ waddle ")[2].partition("\n")[0]
    run = waddle(*command.split(), cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    there = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.yaml")}
    assert there == {
        "policies/all.yaml",
        "admission/admission-configuration.yaml",
        "admission/validating-policies/gatekeeper-said-one.yaml",
        "admission/validating-policies/waddle-guard.yaml",
    }
