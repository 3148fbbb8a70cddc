"""What the pages tell a reader to type at a cluster is typed at a real API server, in one life of it."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from tests.behaviour.serving import REQUIRED_LABELS, constraint
from tests.pages.walk import WALK, Step
from tests.patience import PATIENCE_SECONDS, until
from tests.programs import ROOT, Programs, of_the_system
from tests.system.conftest import control_plane
from tests.system.installed import InstalledPod, InstalledServer, Node
from tests.system.replicas import PODS, TEMPLATES, WORKLOADS, Plane, try_request
from tests.system.test_installed_by_helm import ask_replica

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
PAGE = (ROOT / "docs" / "first-policy.md").read_text()
FIRST = dict(re.findall(r"`(first/[\w.]+)`:\n\n```yaml\n(.*?)```", PAGE, re.DOTALL))
MUTATOR = """
apiVersion: mutations.gatekeeper.sh/v1alpha1
kind: AssignImage
metadata: {name: registry}
spec:
  applyTo: [{groups: [""], versions: [v1], kinds: [Pod]}]
  location: "spec.containers[name: *].image"
  parameters: {assignDomain: registry.example}
"""


class Terminal:
    """A shell in a folder that holds what the pages name, at a cluster."""

    def __init__(self, plane: Plane, folder: Path, helm: Path) -> None:
        self._plane, self._folder = plane, folder / "folder"
        self._stack = ExitStack()
        for name in ("manifests", "loadtest"):
            self._folder.mkdir(exist_ok=True)
            (self._folder / name).symlink_to(ROOT / name)
        files = {
            "template.yaml": LABELS,
            "constraint.yaml": OWNER,
            "policies/template.yaml": REQUIRED_LABELS,
            "policies/constraint.yaml": constraint("needs-owner", "owner"),
            "mutators/registry.yaml": MUTATOR,
            **FIRST,
        }
        for name, text in files.items():
            (self._folder / name).parent.mkdir(exist_ok=True)
            (self._folder / name).write_text(text)
        programs = folder / "bin"
        programs.mkdir()
        (programs / "helm").symlink_to(helm)
        config = yaml.safe_load(plane.cluster.kubeconfig.read_text())
        config["contexts"][0]["context"]["namespace"] = WORKLOADS
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(config))
        self._environment = {
            **os.environ,
            "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "KUBECONFIG": str(kubeconfig),
            "HOME": str(folder),
        }

    def type(self, step: Step) -> None:
        """What stands before a step, and the step, again and again where it says so."""
        if step.before:
            getattr(self, "before_" + step.before.replace(" ", "_"))()
        if step.until:
            until(lambda: self._fails(step) == "", lambda: self._fails(step))
        else:
            self._run(step)

    def _run(self, step: Step) -> None:
        if told := self._fails(step):
            pytest.fail(told)

    def _fails(self, step: Step) -> str:
        """What is not as the step has it; "" for nothing."""
        done = subprocess.run(
            ["bash", "-c", step.command],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
        told = done.stdout + done.stderr
        right = done.returncode == step.code and step.words in told
        return "" if right else f"$ {step.command}\n{told}\nexit {done.returncode}"

    def before_without_helm(self) -> None:
        """The second release goes as the first did, so that kustomize's objects are its own."""
        for command in (
            "waddle uninstall --webhooks --yes",
            "helm uninstall waddle --namespace waddle-system --no-hooks",
        ):
            self._run(Step(command))

    def before_a_replica(self) -> None:
        """The Pod of the Deployment that was applied, as a process that the API server asks."""
        until(lambda: try_request(self._plane.api, "GET", TEMPLATES), "templates are served")
        node = Node(self._plane, self._folder / "node", {})
        pod = InstalledPod(node, "waddle-webhook")
        self.replica = self._stack.enter_context(InstalledServer(pod, "webhook"))
        self.replica.wait_ready()
        ask_replica(self._plane, self.replica)

    def before_a_mutator(self) -> None:
        """Applied: the page speaks of one that is."""
        self._run(Step("kubectl apply -f mutators/"))

    def before_no_replica(self) -> None:
        """What runs ends, and its Pod goes, as when a Deployment is deleted."""
        self._stack.close()
        self._run(Step("waddle uninstall --webhooks --yes"))
        self._plane.api.request("DELETE", f"{PODS}/waddle-webhook-0?gracePeriodSeconds=0")

    def close(self) -> None:
        """End the replica."""
        self._stack.close()


@pytest.fixture
def terminal(tmp_path: Path, program: Programs) -> Iterator[Terminal]:
    if of_the_system("kubectl") is None:
        pytest.skip("no kubectl on this machine")

    def namespace(plane: Plane) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": WORKLOADS}}
        plane.api.apply(f"/api/v1/namespaces/{WORKLOADS}", body)

    with control_plane(tmp_path, install=namespace) as plane:
        terminal = Terminal(plane, tmp_path, program("helm"))
        try:
            yield terminal
        finally:
            terminal.close()


@pytest.mark.slow(20)
def test_a_cluster_lives_by_the_commands_of_the_pages(terminal: Terminal) -> None:
    for step in WALK:
        terminal.type(step)
