"""The real Gatekeeper beside us: out of its cluster, against a real API server.

It gets what its manifests would give it: its CRDs, a namespace and a Pod object of its own (statuses
belong to a Pod). Templates and constraints are applied while it runs, because it makes the
constraints' CRDs; what is measured is a process started anew on them.
"""

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import yaml

from loadtest.bench.servers import Server, running
from tests.cluster import Api, ApiError, Cluster
from tests.ports import free_ports
from tests.programs import build, gatekeeper_sources

NAMESPACE = "gatekeeper-system"
POD = "gatekeeper-bench"
# The namespace of the bodies: Gatekeeper refuses a review whose namespace the cluster does not know.
REVIEWED_NAMESPACE = "payments"
OPERATIONS = ("webhook", "status", "generate")
"""Without the last no constraint's CRD is ever made."""
ENFORCED_SECONDS_MAX = 180
POLL_SECONDS = 0.1


@contextmanager
def prepared(
    policies: Path, certificates: Path, folder: Path, *, core: int
) -> Iterator["Installation"]:
    """A cluster that holds a set of policies, enforced once by a Gatekeeper that is gone again."""
    cluster = Cluster.start(build("testcluster"), folder / "cluster")
    try:
        api = cluster.api
        install(api)
        installation = Installation(cluster, certificates, folder / "gatekeeper.log", core)
        with installation.gatekeeper():
            apply_policies(api, policies)
        yield installation
    finally:
        cluster.stop()


class Installation:
    """A cluster with Gatekeeper's kinds and policies in it."""

    def __init__(self, cluster: Cluster, certificates: Path, log: Path, core: int) -> None:
        """``core`` is Gatekeeper's core."""
        self._cluster = cluster
        self._certificates = certificates
        self._log = log
        self._core = core

    def pin(self, core: int) -> None:
        """Keep the cluster on a core from here on."""
        command = ["taskset", "--all-tasks", "--cpu-list", "--pid", str(core)]
        subprocess.run(
            [*command, str(self._cluster.pid)], stdout=subprocess.DEVNULL, timeout=10, check=True
        )

    def gatekeeper(
        self,
        core: int | None = None,
        *,
        operations: Sequence[str] = OPERATIONS,
        flags: Sequence[str] = (),
    ) -> AbstractContextManager[Server]:
        """A Gatekeeper that serves admission, on one core and one thread at a time."""
        port, health, metrics = free_ports(3)
        cache = self._log.parent / "api-cache"
        cache.mkdir(exist_ok=True)
        command: list[str | Path] = [
            build("gatekeeper"),
            *(f"--operation={operation}" for operation in operations),
            f"--kubeconfig={self._cluster.kubeconfig}",
            "--host=127.0.0.1",
            f"--port={port}",
            f"--health-addr=127.0.0.1:{health}",
            f"--prometheus-port={metrics}",
            f"--cert-dir={self._certificates}",
            f"--api-cache-dir={cache}",
            "--disable-cert-rotation",
            "--log-level=ERROR",
            "--shutdown-delay=0",
            *flags,
        ]
        environment = {"GOMAXPROCS": "1", "POD_NAME": POD, "POD_NAMESPACE": NAMESPACE}
        return running(
            "gatekeeper",
            command,
            port=port,
            health_port=health,
            core=self._core if core is None else core,
            log=self._log,
            environment=environment,
        )


def install(api: Api) -> None:
    """Gatekeeper's CRDs, and a Pod whose statuses it writes."""
    manifests = (gatekeeper_sources() / "deploy" / "gatekeeper.yaml").read_text()
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    names = []
    for manifest in yaml.safe_load_all(manifests):
        if manifest and manifest["kind"] == "CustomResourceDefinition":
            names.append(manifest["metadata"]["name"])
            api.apply(f"{definitions}/{names[-1]}", manifest)
    for name in names:
        _await(lambda name=name: _established(api.request("GET", f"{definitions}/{name}")), name)
    for name in (NAMESPACE, REVIEWED_NAMESPACE):
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        api.apply(f"/api/v1/namespaces/{name}", namespace)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    api.apply(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default", account)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": POD},
        "spec": {"containers": [{"name": "manager", "image": "gatekeeper"}]},
    }
    api.apply(f"/api/v1/namespaces/{NAMESPACE}/pods/{POD}", pod)


def read_policies(policies: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Returns the templates and the constraints of a folder."""
    documents = [
        document
        for file in sorted(policies.glob("*.yaml"))
        for document in yaml.safe_load_all(file.read_text())
        if document
    ]
    templates = [one for one in documents if one["kind"] == "ConstraintTemplate"]
    return templates, [one for one in documents if one["kind"] != "ConstraintTemplate"]


def apply_policies(api: Api, policies: Path) -> None:
    """Apply templates and constraints, and wait until a Gatekeeper that runs enforces them."""
    templates, constraints = read_policies(policies)
    for template in templates:
        name = template["metadata"]["name"]
        api.apply(f"/apis/templates.gatekeeper.sh/v1/constrainttemplates/{name}", template)
    paths = [
        f"/apis/constraints.gatekeeper.sh/v1beta1/{one['kind'].lower()}/{one['metadata']['name']}"
        for one in constraints
    ]
    for path, constraint in zip(paths, constraints, strict=True):
        _await(lambda path=path, one=constraint: api.apply(path, one), path)
    for path in paths:
        _await(lambda path=path: _enforced(api.request("GET", path)), path)


def _established(definition: dict[str, Any]) -> bool:
    conditions = definition.get("status", {}).get("conditions", [])
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


def _enforced(constraint: dict[str, Any]) -> bool:
    by_pod = constraint.get("status", {}).get("byPod") or []
    return any(pod.get("enforced") for pod in by_pod)


def await_enforced(condition: Callable[[], bool]) -> None:
    """Wait until Gatekeeper says that it enforces what was applied."""
    _await(condition, "what was applied")


def _await(condition: Any, description: str) -> None:
    """Ask until it holds: Gatekeeper reports in statuses, and its CRDs take a while to be served."""
    end = time.monotonic() + ENFORCED_SECONDS_MAX
    while time.monotonic() < end:
        try:
            if condition():
                return
        except ApiError as error:
            if error.status not in (404, 409):
                raise
        time.sleep(POLL_SECONDS)
    raise RuntimeError(f"Gatekeeper does not get to {description}")
