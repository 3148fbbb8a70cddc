"""Results of any size are printed, and null fields of Pods are none to mutators."""

import json
import subprocess
import sys

import pytest

MUTATOR = """
apiVersion: mutations.gatekeeper.sh/v1
kind: Assign
metadata: {name: pull}
spec:
  applyTo: [{groups: [""], kinds: [Pod], versions: [v1]}]
  location: "spec.initContainers[name:*].imagePullPolicy"
  parameters: {assign: {value: Always}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: d}
spec: {initContainers: null, containers: [{name: a, image: b}]}
"""
POLICY = """
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: allowall}
spec:
  crd: {spec: {names: {kind: AllowAll}}}
  targets:
  - target: admission.k8s.gatekeeper.sh
    rego: |
      package allowall
      violation[{"msg": "never"}] { input.review.object.kind == "None" }
---
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: AllowAll
metadata: {name: allow}
spec: {match: {kinds: [{apiGroups: [""], kinds: [Pod]}]}}
"""


def waddle(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "webhook", *arguments],
        check=False,
        cwd=cwd,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    "command",
    [
        ["conftest", "parse", "large.json"],
        *(
            ["rego", "eval", "-d", "large.json", "-f", f, "data.a"]
            for f in ("raw", "json", "pretty")
        ),
    ],
)
def test_more_values_than_a_policy_may_write_are_printed(tmp_path, command):
    (tmp_path / "large.json").write_text(json.dumps({"a": list(range(300_000))}))

    done = waddle(*command, cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert "299999" in done.stdout


@pytest.mark.parametrize("command", ["mutate", "expand", "test"])
def test_a_null_list_of_a_pod_is_none_to_mutators(tmp_path, command):
    (tmp_path / "all.yaml").write_text(f"{MUTATOR}---{POD}---{POLICY}")

    done = waddle(command, "-f", "all.yaml", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "mismatch" not in done.stdout + done.stderr
