"""The real Kyverno beside us: its admission controller out of its cluster, at a real API server.

It gets what its chart would give it: its CRDs, its configuration, its roles, and its flags and
environment, which are read from the chart's Deployment. It makes its certificates itself, elects
itself, and writes its webhook configuration; from that one comes where admissions are sent.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import yaml

from loadtest.bench.servers import Server, running
from tests.behaviour.serving import unverified
from tests.cluster import Api, ApiError, Cluster, serves
from tests.patience import until
from tests.ports import free_port
from tests.programs import build, module_folder
from webhook.api.gvk import gvk_of, name_of, plural_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from webhook.api.shapes import Json

NAMESPACE: Final = "kyverno"
MODULE: Final = "github.com/kyverno/kyverno"
_CONFIGURATION: Final = (
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/"
    "kyverno-resource-validating-webhook-cfg"
)
_APPLIED: Final = (
    "ServiceAccount",
    "ConfigMap",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "Service",
)
_GROUP: Final = "policies.kyverno.io"


class Kyverno:
    """A cluster with Kyverno's kinds, and what its chart has for an admission controller."""

    def __init__(self, folder: Path, cluster: Cluster, core: int) -> None:
        """Install what the controller needs. Raises ProgramUnavailableError."""
        self._folder, self._cluster, self._core = folder, cluster, core
        self._program = build("kyverno")
        self.sources = module_folder("tests/oracles/kyverno", MODULE)
        chart = list(_chart(self.sources, folder))
        _install(cluster.api, self.sources, chart)
        (container,) = next(
            one["spec"]["template"]["spec"]["containers"]
            for one in chart
            if one["kind"] == "Deployment" and name_of(one) == "kyverno-admission-controller"
        )
        self._arguments: list[str] = container["args"]
        self._environment = {one["name"]: one.get("value", "") for one in container["env"]}

    @contextlib.contextmanager
    def serving(self, name: str, flags: Sequence[str] = ()) -> Iterator[Server]:
        """A controller with the chart's flags and these, on one core and one thread at a time."""
        port = free_port()
        command: list[str | Path] = [
            self._program,
            *self._arguments,
            f"--kubeconfig={self._cluster.kubeconfig}",
            f"--serverIP=127.0.0.1:{port}",
            "--webhookServerHost=127.0.0.1",
            f"--webhookServerPort={port}",
            f"--servicePort={port}",
            f"--metricsPort={free_port()}",
            "--controllerRuntimeMetricsAddress=0",
            *flags,
        ]
        environment = {
            **self._environment,
            "GOMAXPROCS": "1",
            "KYVERNO_NAMESPACE": NAMESPACE,
            "KYVERNO_POD_NAME": name,
            "TUF_ROOT": str(self._folder / "sigstore"),
        }
        with running(
            name,
            command,
            port=port,
            health_port=port,
            core=self._core,
            log=self._folder / f"{name}.log",
            environment=environment,
            ready=lambda: _is_ready(port),
        ) as server:
            yield server

    def apply(self, policies: Sequence[Json]) -> str:
        """Apply policies, and return the path to which an API server then sends Pods.

        Raises RuntimeError where it would send them to several.
        """
        paths: list[str] = []

        def has_all() -> bool:
            """Fine-grained paths name their policies."""
            paths[:] = self._paths()
            return bool(paths) and not (
                paths[0].startswith("/vpol")
                and {name_of(one) for one in policies} - set(paths[0].split("/"))
            )

        for policy in policies:
            path = _path_of(policy)
            until(lambda path=path, one=policy: self._is_taken(path, one), f"{path} is taken")
        until(has_all, lambda: f"Kyverno's webhook configuration has Pods: {paths}")
        if len(paths) > 1:
            raise RuntimeError(f"a Pod is sent to several: {', '.join(paths)}")
        return paths[0]

    def delete(self, policies: Sequence[Json]) -> None:
        """Delete policies, and wait until no Pod is sent any more."""
        for policy in policies:
            self._cluster.api.request("DELETE", _path_of(policy))
        until(lambda: not self._paths(), "Kyverno's webhook configuration has no Pods")

    def _is_taken(self, path: str, policy: Json) -> bool:
        try:
            self._cluster.api.apply(path, policy)
        except ApiError as error:
            if error.status not in (404, 409, 500):  # its own webhook is not there yet
                raise
            return False
        return True

    def _paths(self) -> list[str]:
        """Returns the paths for a new Pod, by Kyverno's configuration."""
        try:
            configuration = self._cluster.api.request("GET", _CONFIGURATION)
        except ApiError as error:
            if error.status != 404:
                raise
            return []
        return [
            urlsplit(one["clientConfig"]["url"]).path
            for one in configuration.get("webhooks") or ()
            if any("pods" in rule["resources"] for rule in one.get("rules") or ())
        ]


def _is_ready(port: int) -> bool:
    """Whether it says so, by a certificate of its own authority."""
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=unverified())
    try:
        connection.request("GET", "/health/readiness")
        return connection.getresponse().status == http.client.OK
    finally:
        connection.close()


def _path_of(document: Json) -> str:
    gvk = gvk_of(document)
    plural = "clusterpolicies" if gvk.kind == "ClusterPolicy" else plural_of(gvk.kind)
    return f"/apis/{gvk.group}/{gvk.version}/{plural}/{name_of(document)}"


def _chart(sources: Path, folder: Path) -> Iterator[Json]:
    """The objects of Kyverno's chart with its defaults."""
    chart = folder / "chart"
    shutil.copytree(sources / "charts" / "kyverno", chart, copy_function=shutil.copyfile)
    for one in (chart, *chart.rglob("*")):
        if one.is_dir():
            one.chmod(0o755)  # a module's folders are read-only
    # Charts of CRDs and of servers that are not wanted come from other places.
    for one in yaml.safe_load((chart / "Chart.yaml").read_text())["dependencies"]:
        stub = chart / "charts" / one["name"]
        if not stub.exists():
            stub.mkdir()
            made = {"apiVersion": "v2", "name": one["name"], "version": one["version"]}
            (stub / "Chart.yaml").write_text(json.dumps(made))
    command: list[str | Path] = [
        build("helm"),
        "template",
        "kyverno",
        str(chart),
        "--namespace",
        NAMESPACE,
    ]
    rendered = subprocess.run(
        [*command, "--kube-version", "1.36", "--set", "crds.install=false"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    for document in yaml.safe_load_all(rendered.stdout):
        if document:
            yield document


def _install(api: Api, sources: Path, chart: Sequence[Json]) -> None:
    """CRDs, the namespace, and the chart's configuration and roles."""
    definitions = [
        document
        for file in sorted((sources / "config" / "crds").rglob("*.yaml"))
        for document in yaml.safe_load_all(file.read_text())
        if document and document["kind"] == "CustomResourceDefinition"
    ]
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for crd in definitions:
        api.apply(f"{crds}/{name_of(crd)}", crd)
    for crd in definitions:
        until(lambda crd=crd: serves(api, crd), f"{name_of(crd)} is served")
    for name in (NAMESPACE, "payments"):  # that of the bodies
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        api.apply(f"/api/v1/namespaces/{name}", body)
    for document in chart:
        metadata: dict[str, Any] = document["metadata"]
        is_hook = "helm.sh/hook" in (metadata.get("annotations") or {})
        if document["kind"] not in _APPLIED or is_hook:
            continue
        version = document["apiVersion"]
        prefix = f"/api/{version}" if version == "v1" else f"/apis/{version}"
        place = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
        plural = plural_of(document["kind"])
        api.apply(f"{prefix}{place}/{plural}/{metadata['name']}", document)
