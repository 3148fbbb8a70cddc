"""``waddle check`` says which policies of files nobody is asked about, by the configuration beside them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests import policies
from tests.manifests import ROOT
from tests.webhook.cli.in_process import waddle

OURS = ROOT / "manifests" / "base" / "webhook-configuration.yaml"
REGO = 'package leased\nviolation[{"msg": "no"}] { input.review.object.metadata.name == "x" }'


def warnings(folder: Path, *kinds: str, configuration: bool = True) -> tuple[int, list[str]]:
    """The exit code, and what is said of a constraint on kinds."""
    document: dict[str, Any] = policies.constraint("Leased", "c")
    listed = [{"apiGroups": ["", "coordination.k8s.io"], "kinds": list(kinds)}]
    document["spec"]["match"] = {"kinds": listed}
    file = folder / "policies.yaml"
    file.write_text("\n---\n".join(map(json.dumps, [policies.template("Leased", REGO), document])))
    given = ["-f", str(file), *(["-f", str(OURS)] if configuration else [])]
    found = waddle("check", *given, "-o", "json")
    problems = json.loads(found.stdout)["problems"]
    return found.returncode, [one["message"] for one in problems if one["code"] == "not_asked"]


@pytest.mark.parametrize(
    ("kinds", "begins"),
    [
        (["Pod"], ""),
        (["Lease"], "NotAsked: nobody is asked about it: the matchCondition exclude-leases"),
        (["Pod", "Lease"], "asked only in part: the matchCondition"),
    ],
)
def test_a_constraint_on_leases_is_reported(tmp_path: Path, kinds: list[str], begins: str) -> None:
    code, output = warnings(tmp_path, *kinds)
    assert code == 0  # it can be used, and the audit does
    assert [one[: len(begins)] for one in output] == ([begins] if begins else [])


def test_without_a_configuration_nothing_is_said(tmp_path: Path) -> None:
    assert warnings(tmp_path, "Lease", configuration=False) == (0, [])


def test_a_policy_of_kyverno_on_leases_is_reported(tmp_path: Path) -> None:
    rule = {
        "apiGroups": ["coordination.k8s.io"],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["leases"],
    }
    document = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": "leased"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "true"}],
        },
    }
    file = tmp_path / "policy.json"
    file.write_text(json.dumps(document))
    found = waddle("check", "-f", str(file), "-f", str(OURS))
    assert found.returncode == 0, found.stdout
    assert "ValidatingPolicy/leased: NotAsked: nobody is asked about it" in found.stdout
