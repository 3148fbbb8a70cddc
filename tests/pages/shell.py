"""A shell in a folder that holds what the pages name, at some cluster."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.behaviour.serving import REQUIRED_LABELS, constraint
from tests.pages.walk import Step
from tests.patience import PATIENCE_SECONDS, until
from tests.programs import ROOT

LABELS = REQUIRED_LABELS.replace("requiredlabel", "k8srequiredlabels").replace(
    "RequiredLabel", "K8sRequiredLabels"
)
OWNER = """
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: K8sRequiredLabels
metadata: {name: ns-must-have-owner}
spec:
  match: {kinds: [{apiGroups: [""], kinds: [Namespace]}]}
  parameters: {label: owner}
"""


def files_of(page: str, folder: str) -> dict[str, str]:
    """Returns the files of a folder that a page shows, by their paths."""
    text = (ROOT / "docs" / page).read_text()
    return dict(re.findall(rf"`({folder}/[\w.]+)`:\n\n```yaml\n(.*?)```", text, re.DOTALL))


FIRST = files_of("first-policy.md", "first")
MUTATOR = """
apiVersion: mutations.gatekeeper.sh/v1alpha1
kind: AssignImage
metadata: {name: registry}
spec:
  applyTo: [{groups: [""], versions: [v1], kinds: [Pod]}]
  location: "spec.containers[name: *].image"
  parameters: {assignDomain: registry.example}
"""


OPERATING = (ROOT / "docs" / "operating.md").read_text()
((_, KUSTOMIZATION),) = re.findall(
    r"`(kustomization\.yaml)`:\n\n```yaml\n(.*?)```", OPERATING, re.DOTALL
)

FILES = {
    "kustomization.yaml": KUSTOMIZATION,
    "template.yaml": LABELS,
    "constraint.yaml": OWNER,
    "policies/template.yaml": REQUIRED_LABELS,
    "policies/constraint.yaml": constraint("needs-owner", "owner"),
    "mutators/registry.yaml": MUTATOR,
    **FIRST,
    **files_of("exceptions.md", "excused"),
}


class Shell:
    """A shell in a folder; ``programs`` are found by their names."""

    def __init__(self, folder: Path, kubeconfig: Path, *programs: Path) -> None:
        self.folder = folder / "folder"
        self.folder.mkdir()
        for name in ("manifests", "loadtest"):
            (self.folder / name).symlink_to(ROOT / name)
        for name, text in FILES.items():
            (self.folder / name).parent.mkdir(exist_ok=True)
            (self.folder / name).write_text(text)
        found = folder / "bin"
        found.mkdir()
        for program in programs:
            (found / program.name).symlink_to(program)
        self._environment = {
            **os.environ,
            "PATH": f"{found}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "KUBECONFIG": str(kubeconfig),
            "HOME": str(folder),
        }

    def type(self, step: Step) -> str:
        """Do what stands before a step, and the step, again and again where it says so.

        What is then not as the step has it; "" for nothing.
        """
        if step.before:
            getattr(self, "before_" + step.before.replace(" ", "_"))()
        if step.until:
            until(lambda: self._fails(step) == "", lambda: self._fails(step))
            return ""
        return self._fails(step)

    def run(self, step: Step) -> None:
        """A step of the test's own."""
        if failure := self._fails(step):
            pytest.fail(failure)

    def _fails(self, step: Step) -> str:
        """Returns the deviation from the step's expected result; "" if there is none."""
        done = subprocess.run(
            ["bash", "-c", step.command],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
        output = done.stdout + done.stderr
        right = done.returncode == step.code and step.words in output
        return "" if right else f"$ {step.command}\n{output}\nexit {done.returncode}"
