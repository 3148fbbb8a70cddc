"""docs/mutation.md is true: its manifests can be read, and its commands print its output."""

import json
import re
from pathlib import Path

import pytest
import yaml

from tests.webhook.cli.in_process import waddle

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "mutation.md").read_text()
POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec: {containers: [{name: app, image: "IMAGE"}]}
"""
POLICY = """
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: registry}
spec:
  crd: {spec: {names: {kind: Registry}}}
  targets:
  - target: admission.k8s.gatekeeper.sh
    rego: |
      package registry
      violation[{"msg": "a foreign image"}] {
        image := input.review.object.spec.containers[_].image
        not startswith(image, "registry.example/")
      }
"""
CONSTRAINT = """
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: Registry
metadata: {name: ours}
spec: {match: {kinds: [{apiGroups: [""], kinds: [Pod]}]}}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec: {template: {spec: {containers: [{name: app, image: "app:v1"}]}}}
"""


def blocks(language: str) -> list[str]:
    """The page's blocks in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def block(kind: str) -> str:
    """The one manifest of a kind."""
    [found] = [text for text in blocks("yaml") if f"kind: {kind}\n" in text]
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files that the page's commands name."""
    for name, text in (
        ("mutators/registry.yaml", block("AssignImage")),
        ("mutators.yaml", block("AssignImage")),
        ("pod.yaml", POD.replace("IMAGE", "app:v1")),
        ("pod-with-registry.yaml", POD.replace("IMAGE", "registry.example/app:v1")),
        ("policies/template.yaml", POLICY),
        ("policies/constraint.yaml", CONSTRAINT),
        ("template.yaml", POLICY),
        ("constraint.yaml", CONSTRAINT),
        ("suite.yaml", block("Suite")),
        ("expansion/deployments.yaml", block("ExpansionTemplate")),
        ("deployment.yaml", DEPLOYMENT),
    ):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    return tmp_path


def test_every_manifest_of_the_page_can_be_read() -> None:
    for text in blocks("yaml"):
        assert list(yaml.safe_load_all(text)), text
    assert len(blocks("yaml")) > 4


def test_the_patch_and_the_picture_of_it_are_what_the_mutator_makes(folder: Path) -> None:
    found = waddle("mutate", "-f", "mutators/", "-f", "pod.yaml", "-o", "patch", cwd=folder)
    assert found.returncode == 0, found.stderr
    [shown] = [text for text in blocks("json") if "mutators" in text]
    assert json.loads(found.stdout) == json.loads(shown)
    [operation] = json.loads(shown)[0]["patch"]
    picture = (DOCS / "pictures" / "mutation-patch.svg").read_text()
    for text in (operation["op"], operation["path"], operation["value"], "image: app:v1"):
        assert text in picture
    found = waddle("mutate", "-f", "mutators/", "-f", "pod.yaml", cwd=folder)
    assert "image: registry.example/app:v1" in found.stdout


def test_what_the_page_says_to_try_works(folder: Path) -> None:
    finished = waddle("test", "-f", "policies/", "-f", "pod.yaml", cwd=folder)
    assert finished.returncode == 1, "without the mutator it is refused"
    for command in (
        "test -f policies/ -f mutators/ -f pod.yaml",
        "check -f mutators/ -f pod.yaml",
        "verify suite.yaml",
        "expand -f expansion/ -f deployment.yaml",
    ):
        found = waddle(*command.split(), cwd=folder)
        assert found.returncode == 0, (command, found.stdout, found.stderr)
    files = ("-f", "policies/", "-f", "expansion/", "-f", "deployment.yaml")
    implied = waddle("test", *files, cwd=folder)
    assert "[Implied by deployments] a foreign image" in implied.stdout
    assert waddle("test", *files, "-f", "mutators/", cwd=folder).returncode == 0
