"""The pages' commands for a cluster run at a real API server, one after another."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from loadtest.bench.gatekeeper import install
from tests.pages.shell import Shell
from tests.pages.walk import TAKEN_OVER, WALK, Step
from tests.patience import until
from tests.programs import Programs, gatekeeper_sources, of_the_system
from tests.system.admission_calls import ask_replica
from tests.system.conftest import control_plane
from tests.system.installed import InstalledPod, InstalledServer, Node
from tests.system.peer import Gatekeeper
from tests.system.replicas import PODS, TEMPLATES, WEBHOOKS, WORKLOADS, Plane, try_request


class Terminal(Shell):
    """A shell at a cluster of the tests', where nodes are processes of this machine."""

    def __init__(self, plane: Plane, folder: Path, helm: Path) -> None:
        self._plane = plane
        self._stack = ExitStack()
        config = yaml.safe_load(plane.cluster.kubeconfig.read_text())
        config["contexts"][0]["context"]["namespace"] = WORKLOADS
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(config))
        super().__init__(folder, kubeconfig, helm)

    def before_without_helm(self) -> None:
        """The second release goes as the first did, so that kustomize's objects are its own."""
        for command in (
            "waddle uninstall --webhooks --yes",
            "helm uninstall waddle --namespace waddle-system --no-hooks",
        ):
            self.run(Step(command))

    def before_an_interrupted_uninstall(self) -> None:
        """The rights of the chart's Job, which Helm removes if it may wait for its end."""
        name = "waddle-uninstall"
        self.run(Step(f"kubectl create clusterrole {name} --verb=get --resource=pods"))
        self.run(Step(f"kubectl create clusterrolebinding {name} --clusterrole={name} --user=a"))

    def before_a_replica(self) -> None:
        """The Pod of the Deployment that was applied, as a process that the API server asks."""
        until(lambda: try_request(self._plane.api, "GET", TEMPLATES), "templates are served")
        node = Node(self._plane, self.folder / "node", {})
        pod = InstalledPod(node, "waddle-webhook")
        self.replica = self._stack.enter_context(InstalledServer(pod, "webhook"))
        self.replica.wait_ready()
        ask_replica(self._plane, self.replica)

    def before_a_policy_with_exceptions(self) -> None:
        """The constraint of the page about exceptions, in force."""
        self.run(Step("kubectl create namespace shop"))
        self.type(Step("kubectl apply -f excused/policies.yaml", words="nobody", until=True))
        self.run(Step("waddle wait NoPrivileged/nobody"))

    def before_a_mutator(self) -> None:
        """Applied: the page speaks of one that is."""
        self.run(Step("kubectl apply -f mutators/"))

    def before_gatekeeper(self) -> None:
        """Gatekeeper by its own manifests, with a policy, and a process that the API server asks."""
        install(self._plane.api)
        self.run(Step(f"kubectl apply -f {gatekeeper_sources() / 'deploy' / 'gatekeeper.yaml'}"))
        until(lambda: try_request(self._plane.api, "GET", TEMPLATES), "templates are served")
        self.run(Step("kubectl apply -f template.yaml", words="created"))
        folder = self.folder / "gatekeeper"
        folder.mkdir()
        gatekeeper = Gatekeeper(self._plane, folder)
        self._stack.callback(gatekeeper.stop)
        until(lambda: gatekeeper.is_ready, "Gatekeeper is ready")
        path = f"{WEBHOOKS}/gatekeeper-validating-webhook-configuration"
        configuration = self._plane.api.request("GET", path)
        for webhook in configuration["webhooks"]:
            url = f"https://127.0.0.1:{gatekeeper.port}{webhook['clientConfig']['service']['path']}"
            webhook["clientConfig"] = {"url": url, "caBundle": self._plane.bundle}
        self._plane.api.request("PUT", path, configuration)

    def before_no_replica(self) -> None:
        """Stops the running replica and deletes its Pod, as when a Deployment is deleted."""
        self._stack.close()
        self.run(Step("waddle uninstall --webhooks --yes"))
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
        assert terminal.type(step) == ""


@pytest.mark.slow(20)
def test_the_commands_of_the_page_take_gatekeeper_s_place(terminal: Terminal) -> None:
    for step in TAKEN_OVER:
        assert terminal.type(step) == ""
