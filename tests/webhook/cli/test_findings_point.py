"""Annotations and SARIF point to the field that is wrong, and say what its policy is about."""

import json

from tests.programs import ROOT
from tests.webhook.cli.in_process import waddle

POLICY = ROOT / "policies" / "pod-security-baseline" / "privileged-containers"
POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: bad
spec:
  containers:
    - name: good
      image: registry.example/good:1
    - name: bad
      image: registry.example/bad:1
      securityContext:
        privileged: true
"""
CONSTRAINT = """
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: DisallowPrivilegedContainers
metadata: {name: baseline, annotations: {waddle.dev/category: pods}}
spec: {match: {kinds: [{apiGroups: [""], kinds: [Pod]}]}}
"""


def test_results_point_to_the_field_and_rules_say_what_they_are_about(tmp_path):
    (tmp_path / "constraint.yaml").write_text(CONSTRAINT)
    (tmp_path / "pod.yaml").write_text(f"# Two objects\n---\n{POD}")
    given = ("test", POLICY / "template.yaml", "constraint.yaml", "pod.yaml")

    annotated = waddle(*given, "-o", "github", cwd=tmp_path).stdout
    assert "::error file=pod.yaml,line=14," in annotated
    (run,) = json.loads(waddle(*given, "-o", "sarif", cwd=tmp_path).stdout)["runs"]
    (result,) = run["results"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 14
    (rule,) = run["tool"]["driver"]["rules"]
    assert rule["shortDescription"]["text"] == "Privileged Containers"
    assert rule["fullDescription"]["text"].startswith("A privileged container has every right")
    assert rule["properties"] == {"security-severity": "9.5", "tags": ["pods"]}
