"""Helm itself installs the chart, upgrades to it and removes it; nothing is held up meanwhile."""

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import ApiError
from tests.manifests import CHART, CONFIGURATION
from tests.patience import PATIENCE_SECONDS, until
from tests.programs import ROOT, Programs
from tests.system.admission_calls import ask_replica
from tests.system.conftest import control_plane
from tests.system.installed import InstalledPod, InstalledServer, Node, credentials
from tests.system.replicas import (
    CONFIG_MAPS,
    CONSTRAINTS,
    CRD_PATH,
    NAMESPACE,
    PODS,
    TEMPLATES,
    WEBHOOKS,
    WORKLOADS,
    Plane,
    config_map,
    constraint,
    template,
    try_request,
)

FIRST = ROOT / "tests" / "golden" / "chart" / "first.yaml"
MUTATING = WEBHOOKS.replace("validating", "mutating")
RBAC = "/apis/rbac.authorization.k8s.io/v1"
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/waddle-webhook"
VALUES = "mutation.enabled=true,webhook.failurePolicy=Fail"


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Plane]:
    """A cluster without anything of ours: Helm brings it."""

    def namespace(plane: Plane) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": WORKLOADS}}
        plane.api.apply(f"/api/v1/namespaces/{WORKLOADS}", body)

    with control_plane(tmp_path, install=namespace) as alone:
        yield alone


class Helm:
    """Helm, as an administrator of the cluster."""

    def __init__(self, program: Path, plane: Plane, folder: Path) -> None:
        self._program = program
        self._options = [f"--kubeconfig={plane.cluster.kubeconfig}", f"--namespace={NAMESPACE}"]
        self._environment = {**os.environ, "HELM_CACHE_HOME": str(folder / "helm")}

    def __call__(self, *arguments: str | Path) -> str:
        command = [self._program, *arguments, *self._options]
        done = subprocess.run(
            [str(part) for part in command],
            check=False,
            capture_output=True,
            text=True,
            env=self._environment,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def first_chart(folder: Path) -> Path:
    """The first chart, of what it rendered."""
    chart = folder / "first" / "waddle"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("{apiVersion: v2, name: waddle, version: 0.0.1}")
    shutil.copytree(CHART / "crds", chart / "crds")
    shutil.copy(FIRST, chart / "templates" / "all.yaml")
    return chart


class Writer:
    """A user who creates harmless ConfigMaps all the time; refusals are recorded."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._end = threading.Event()
        self.refused: list[str] = []
        self.written = 0
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        while not self._end.wait(0.05):
            body = config_map("fine") | {"metadata": {"generateName": "w-"}}
            try:
                self._plane.api.request("POST", f"{CONFIG_MAPS}?dryRun=All", body)
            except ApiError as error:
                self.refused.append(str(error))
            self.written += 1

    def stop(self) -> None:
        self._end.set()
        self._thread.join()


def denied(plane: Plane) -> bool:
    try:
        plane.api.request("POST", f"{CONFIG_MAPS}?dryRun=All", config_map("bad"))
    except ApiError as error:
        return "denied by bad" in error.body
    return False


def waddle(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "webhook", *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )


def play_job(plane: Plane, node: Node) -> None:
    """Run the Job before the uninstall as its Pod would, with the rights that it has."""
    job: dict[str, Any] = {}

    def there() -> bool:
        job.update(try_request(plane.api, "GET", f"{JOBS}/waddle-uninstall") or {})
        return bool(job)

    until(there, "the Job before the uninstall")
    assert try_request(plane.api, "GET", f"{WEBHOOKS}/{CONFIGURATION}"), "it is the Job's to remove"
    pod = InstalledPod.__new__(InstalledPod)
    pod.node, pod.spec = node, job["spec"]["template"]["spec"]
    pod.folder = node.folder / "uninstall"
    (container,) = pod.spec["containers"]
    done = waddle(*container["args"], f"--kubeconfig={credentials(pod)}")
    assert (done.returncode, done.stderr) == (0, "")
    for path in (WEBHOOKS, MUTATING):
        names = [item["metadata"]["name"] for item in plane.api.request("GET", path)["items"]]
        assert names == [], "nothing is asked any more"
    assert try_request(plane.api, "GET", DEPLOYMENT), "and only then Pods go"
    at = job["metadata"]["creationTimestamp"]
    ends = [{"type": kind, "status": "True"} for kind in ("SuccessCriteriaMet", "Complete")]
    for end in ends:
        end["lastTransitionTime"] = at
    job["status"] = {"startTime": at, "completionTime": at, "succeeded": 1, "conditions": ends}
    plane.api.request("PUT", f"{JOBS}/waddle-uninstall/status", job)


def play_test(helm: Helm, plane: Plane, replica: InstalledServer) -> None:
    """`helm test`, whose Pod's command runs here; what it asks is not the Service but a replica."""
    lines: list[str] = []
    testing = threading.Thread(target=lambda: lines.append(helm("test", "waddle")), daemon=True)
    testing.start()
    path = f"{PODS}/waddle-answers"
    until(lambda: try_request(plane.api, "GET", path), "the Pod of helm test")
    pod = plane.api.request("GET", path)
    (container,) = pod["spec"]["containers"]
    script, url, namespace = container["args"]
    assert url == f"https://waddle-webhook-service.{NAMESPACE}.svc/v1/admit"
    port = replica.ports["admission"]
    for address, code in ((f"localhost:{port}", 0), (f"localhost:{replica.ports['metrics']}", 1)):
        done = subprocess.run(
            [sys.executable, "-c", script, f"https://{address}/v1/admit", namespace],
            check=False,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == code, done.stdout + done.stderr
        assert ("'allowed': True" in done.stdout) == (code == 0)
    plane.api.request("PUT", f"{path}/status", pod | {"status": {"phase": "Succeeded"}})
    testing.join(PATIENCE_SECONDS)
    assert [re.findall("^Phase: +(.*)$", text, re.MULTILINE) for text in lines] == [["Succeeded"]]


def left(plane: Plane) -> list[str]:
    """Returns Waddle's objects in the cluster, except the namespace."""
    paths = [
        *(WEBHOOKS, MUTATING, CRD_PATH, f"{RBAC}/clusterroles", f"{RBAC}/clusterrolebindings"),
        *(f"{RBAC}/roles", f"{RBAC}/rolebindings"),
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
        *(f"/api/v1/{kind}" for kind in ("secrets", "services", "configmaps", "serviceaccounts")),
        *(f"/apis/apps/v1/{kind}" for kind in ("deployments", "replicasets")),
        *("/apis/batch/v1/jobs", "/apis/policy/v1/poddisruptionbudgets", "/api/v1/resourcequotas"),
        *("/apis/networking.k8s.io/v1/networkpolicies", "/api/v1/pods"),
    ]
    found = []
    for path in paths:
        for item in plane.api.request("GET", path)["items"]:
            name = item["metadata"]["name"]
            if re.search("waddle|gatekeeper|denied", name):
                found.append(f"{path}: {name}")
    return found


@pytest.mark.slow(30)
def test_an_upgrade_replaces_nothing_and_an_uninstall_leaves_nothing_and_blocks_nobody(
    plane, program, tmp_path
):
    helm = Helm(program("helm"), plane, tmp_path)
    helm("install", "waddle", first_chart(tmp_path), "--create-namespace")
    before = plane.api.request("GET", DEPLOYMENT)["metadata"]["uid"]
    helm("upgrade", "waddle", CHART, "--set", VALUES)
    after = plane.api.request("GET", DEPLOYMENT)["metadata"]
    assert after["uid"] == before, "Pods are replaced one by one, not all at once"
    assert after["labels"]["helm.sh/chart"].startswith("waddle-")

    node = Node(plane, tmp_path / "node", {})
    pod = InstalledPod(node, "waddle-webhook")
    with InstalledServer(pod, "webhook") as replica:
        until(lambda: try_request(plane.api, "GET", TEMPLATES) is not None, "templates are served")
        ask_replica(plane, replica)
        plane.put_template(template())
        plane.put_constraint(constraint("denied", "bad"))
        until(lambda: denied(plane), "the webhook denies")
        play_test(helm, plane, replica)
        writer = Writer(plane)
        removal = threading.Thread(target=helm, args=("uninstall", "waddle"), daemon=True)
        removal.start()
        play_job(plane, node)
        until(lambda: try_request(plane.api, "GET", DEPLOYMENT) is None, "the Deployment is gone")
    removal.join()
    refusal = waddle("uninstall", "--policies", "--yes", f"--kubeconfig={plane.cluster.kubeconfig}")
    assert refusal.returncode == 1
    assert "Pods of Waddle in waddle-system (waddle-webhook-0)" in refusal.stderr
    plane.api.request("DELETE", f"{PODS}/{pod.name}?gracePeriodSeconds=0")
    assert try_request(plane.api, "GET", f"{CONSTRAINTS}/denied/denied"), "policies outlive it"

    options = ("uninstall", "--policies", f"--kubeconfig={plane.cluster.kubeconfig}")
    shown = waddle(*options)
    assert shown.returncode == 0
    assert "customresourcedefinitions/denied.constraints.gatekeeper.sh would be" in shown.stdout
    assert try_request(plane.api, "GET", TEMPLATES) is not None, "showing removes nothing"
    removed = waddle(*options, "--yes")
    assert removed.returncode == 0, removed.stderr
    until(lambda: left(plane) == [], lambda: f"nothing of it is left, but {left(plane)}")
    written = writer.written
    until(lambda: writer.written > written + 3, "and writes go on")
    writer.stop()
    assert writer.refused == []
    assert waddle(*options).stdout == "this cluster has no objects of Waddle\n"


def test_turning_autoscaling_on_sets_no_fewer_replicas_than_there_are(plane, program, tmp_path):
    """With failurePolicy Fail, Helm's notes show the lockout."""
    helm = Helm(program("helm"), plane, tmp_path)
    helm("install", "waddle", CHART, "--create-namespace")
    scale = plane.api.request("GET", f"{DEPLOYMENT}/scale")
    plane.api.request("PUT", f"{DEPLOYMENT}/scale", scale | {"spec": {"replicas": 5}})

    values = "console.enabled=true,networkPolicy.enabled=false,certificates.existingSecret=a"
    finished = helm("upgrade", "waddle", CHART, "--set", f"autoscaling.enabled=true,{values}")
    assert all(word in finished for word in ("inject-ca-from: waddle-system", "no login."))
    assert plane.api.request("GET", DEPLOYMENT)["spec"]["replicas"] == 5
    assert "While no replica answers" not in finished
    finished = helm(
        "upgrade", "waddle", CHART, "--set", "autoscaling.enabled=true,webhook.failClosed=true"
    )
    assert plane.api.request("GET", DEPLOYMENT)["spec"]["replicas"] == 5
    assert f"{NAMESPACE}, kube-system, kube-node-lease, kube-public, calico-system" in finished
    assert "kubectl delete validatingwebhookconfiguration waddle-validating" in finished
    values = "webhook.failClosed=true,webhook.failurePolicy=Fail"
    finished = helm("upgrade", "waddle", CHART, "--set", values)
    assert "calico-system" not in finished, "it is not spared where everything is refused"
    assert f"except in these namespaces:\n\n  {NAMESPACE}, kube-system\n" in finished


@pytest.fixture
def registry(program: Programs, tmp_path: Path) -> Iterator[str]:
    """An OCI registry on loopback, by its address; what is pushed is gone with it."""
    log = tmp_path / "registry.log"
    with log.open("w") as output:
        process = subprocess.Popen([program("registry"), "-port=0"], stderr=output)
    try:
        pattern = re.compile(r"serving on port (\d+)\n")
        until(lambda: pattern.search(log.read_text()) is not None, "the registry serves")
        found = pattern.search(log.read_text())
        assert found is not None
        yield f"127.0.0.1:{found[1]}"
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def test_the_chart_is_installed_from_a_registry_as_from_its_folder(
    plane, program, registry, tmp_path
):
    helm = Helm(program("helm"), plane, tmp_path)
    helm("package", CHART, f"--destination={tmp_path}")
    (package,) = tmp_path.glob("waddle-*.tgz")
    helm("push", package, f"oci://{registry}/charts", "--plain-http")
    version = package.stem.removeprefix("waddle-")
    chart = f"oci://{registry}/charts/waddle"
    options = ("--plain-http", f"--version={version}", "--create-namespace", "--set", VALUES)
    helm("install", "waddle", chart, *options)

    for path in (
        DEPLOYMENT,
        f"{WEBHOOKS}/{CONFIGURATION}",
        f"{CRD_PATH}/assign.mutations.gatekeeper.sh",
    ):
        assert try_request(plane.api, "GET", path), path
    folder = helm(
        "template", "waddle", CHART, "--no-hooks", "--kube-version=1.35.0", "--set", VALUES
    )
    documents = [part for part in folder.split("---\n") if part.strip()]
    installed = [part for part in helm("get", "manifest", "waddle").split("---\n") if part.strip()]
    assert sorted(map(str.strip, installed)) == sorted(map(str.strip, documents))
    refused = subprocess.run(
        [
            *(program("helm"), "upgrade", "waddle", chart, *options[:2]),
            *("--set", "webhook.failurePolicy=Fial", f"--kubeconfig={plane.cluster.kubeconfig}"),
            f"--namespace={NAMESPACE}",
        ],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "HELM_CACHE_HOME": str(tmp_path / "helm")},
        timeout=PATIENCE_SECONDS,
    )
    assert refused.returncode != 0
    assert "failurePolicy" in refused.stderr, "the schema of values travels with the chart"
    helm("uninstall", "waddle", "--no-hooks")
    assert try_request(plane.api, "GET", DEPLOYMENT) is None


@pytest.mark.slow(20)
def test_what_gatekeeper_enforces_stays(plane):
    helm_less = {"apiVersion": "admissionregistration.k8s.io/v1", "webhooks": []}
    name = "gatekeeper-validating-webhook-configuration"
    body = {**helm_less, "kind": "ValidatingWebhookConfiguration", "metadata": {"name": name}}
    plane.api.request("POST", WEBHOOKS, body)
    options = ("uninstall", "--policies", "--yes", f"--kubeconfig={plane.cluster.kubeconfig}")
    refusal = waddle(*options)
    assert refusal.returncode == 1
    assert "Gatekeeper is installed" in refusal.stderr
