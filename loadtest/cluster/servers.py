"""Waddle and Gatekeeper as processes that follow one cluster, each with a new Pod of its own."""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from loadtest import in_pod
from loadtest.bench.servers import Server as Answering
from loadtest.cluster.content import CANARY
from tests.behaviour.serving import unverified
from tests.cluster import Api, ApiError
from tests.patience import until
from tests.ports import free_ports
from tests.programs import build, gatekeeper_sources
from tests.system.replicas import CRD_PATH, NAMESPACE, Plane, config_map, review_of

GATEKEEPER_NAMESPACE = "gatekeeper-system"
OPERATIONS = tuple(f"--operation={name}" for name in ("webhook", "status", "generate"))

READY_SECONDS_MAX = 600.0
STOP_SECONDS_MAX = 60.0
POLL_SECONDS = 0.01

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Server:
    """A running server of admissions, and what its start was like."""

    name: str
    pod: str
    namespace: str
    process: subprocess.Popen[bytes]
    port: int
    health: int
    metrics: int
    began: float
    ready_seconds: float = 0.0
    ready_cpu_seconds: float = 0.0
    first_answer_denies: bool = False
    """Whether its first verdict, ready or not, knew the last of all constraints."""

    ready_answer_denies: bool = False
    """The same of its first verdict once it said that it was ready."""

    @property
    def answering(self) -> Answering:
        """The server as the load generator takes it."""
        url = f"https://127.0.0.1:{self.port}/v1/admit?timeout=30s"
        return Answering(self.name, url, self.process, self.ready_seconds)

    @property
    def cpu_seconds(self) -> float:
        """User and system time so far."""
        return cpu_seconds(self.process.pid)

    @property
    def rss_mib(self) -> float:
        """Resident memory now."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise RuntimeError(f"{self.name} is gone")

    def scrape(self) -> str:
        """Returns the metrics as text."""
        return _get(self.metrics, "/metrics")[1]

    def wait_ready(self) -> None:
        """Wait for `/readyz`; asked for admissions all the while, note what the first answer is."""
        end = time.monotonic() + READY_SECONDS_MAX
        answered = ready = False
        while not (answered and ready):
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended")
            if time.monotonic() > end:
                waits = _get(self.health, "/readyz?verbose")[1]
                raise RuntimeError(
                    f"{self.name} is not ready after {READY_SECONDS_MAX:g} s: {waits}"
                )
            if not answered and (verdict := self.ask(CANARY)) is not None:
                answered, self.first_answer_denies = True, verdict
            if not ready and _status(self.health) == http.client.OK:
                ready = True
                self.ready_seconds = time.monotonic() - self.began
                self.ready_cpu_seconds = self.cpu_seconds
                self.ready_answer_denies = self.ask(CANARY) is True
            time.sleep(POLL_SECONDS)

    def ask(self, word: str) -> bool | None:
        """Whether it denies a ConfigMap with the word; None while it answers no admission."""
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.port, context=unverified(), timeout=30
        )
        body = json.dumps(review_of(config_map(word))).encode()
        try:
            connection.request(
                "POST", "/v1/admit?timeout=30s", body, {"Content-Type": "application/json"}
            )
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()
        if answer.status != http.client.OK:
            return None
        return not json.loads(text)["response"]["allowed"]


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, by the kernel's account."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _status(port: int) -> int:
    try:
        return _get(port, "/readyz")[0]
    except (OSError, http.client.HTTPException):
        return 0


def _get(port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def install_gatekeeper(plane: Plane) -> None:
    """Gatekeeper's CRDs, with Waddle's over those that both have, and its namespace."""
    manifests = (gatekeeper_sources() / "deploy" / "gatekeeper.yaml").read_text()
    names = []
    for manifest in yaml.safe_load_all(manifests):
        if manifest and manifest["kind"] == "CustomResourceDefinition":
            names.append(manifest["metadata"]["name"])
            plane.api.apply(f"{CRD_PATH}/{names[-1]}", manifest)
    until(lambda: all(_is_established(plane, name) for name in names), "Gatekeeper's kinds")
    plane.install()
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": GATEKEEPER_NAMESPACE}}
    plane.api.apply(f"/api/v1/namespaces/{GATEKEEPER_NAMESPACE}", body)
    in_pod.install_rights(plane.api)


def _is_established(plane: Plane, name: str) -> bool:
    definition = plane.api.request("GET", f"{CRD_PATH}/{name}")
    conditions = (definition.get("status") or {}).get("conditions") or []
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


@contextlib.contextmanager
def waddle(plane: Plane, pod: str, *, core: int | str, log: Path) -> Iterator[Server]:
    """A replica that carries out every operation of a Deployment, on a core or a list of them."""
    account = in_pod.command(plane.cluster, plane.certificates.parent / "accounts" / pod)
    command = [*account, "serve", "--kubernetes", *OPERATIONS]
    with (
        pod_object(plane.api, NAMESPACE, pod) as uid,
        _running(
            "waddle",
            pod,
            NAMESPACE,
            [*command, "--health-addr=127.0.0.1:{health}", "--prometheus-host=127.0.0.1"],
            plane=plane,
            core=core,
            log=log,
            environment=in_pod.environment(plane.cluster, pod, uid),
        ) as server,
    ):
        yield server


@contextlib.contextmanager
def gatekeeper(plane: Plane, pod: str, *, core: int, log: Path) -> Iterator[Server]:
    """A Gatekeeper that does the same, on one thread at a time."""
    cache = log.parent / "gatekeeper-cache"
    cache.mkdir(exist_ok=True)
    command = [str(build("gatekeeper")), *OPERATIONS, "--disable-cert-rotation"]
    command += [f"--api-cache-dir={cache}", "--log-level=ERROR"]
    command.append(f"--kubeconfig={plane.cluster.kubeconfig}")
    with pod_object(plane.api, GATEKEEPER_NAMESPACE, pod):
        environment = {
            "POD_NAME": pod,
            "POD_NAMESPACE": GATEKEEPER_NAMESPACE,
            "GOMAXPROCS": "1",
        }
        with _running(
            "gatekeeper",
            pod,
            GATEKEEPER_NAMESPACE,
            [*command, "--health-addr=127.0.0.1:{health}"],
            plane=plane,
            core=core,
            log=log,
            environment=environment,
        ) as server:
            yield server


@contextlib.contextmanager
def pod_object(api: Api, namespace: str, name: str) -> Iterator[str]:
    """A Pod object, deleted at the end; yields its UID."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [{"name": "manager", "image": "image"}]},
    }
    made: dict[str, Any] = {}

    def is_made() -> bool:
        try:
            made.update(api.request("POST", path, body))
        except ApiError as error:
            if error.status not in (403, 409):
                raise
            return False  # its service account comes in a moment, or another Pod is going
        return True

    until(is_made, "a Pod can be made")
    try:
        yield str(made["metadata"]["uid"])
    finally:
        api.request("DELETE", f"{path}/{name}?gracePeriodSeconds=0")


@contextlib.contextmanager
def _running(
    name: str,
    pod: str,
    namespace: str,
    command: list[str],
    *,
    plane: Plane,
    core: int | str,
    log: Path,
    environment: Mapping[str, str],
) -> Iterator[Server]:
    """Start a process on one core; it ends with the block."""
    port, health, metrics = free_ports(3)
    common = [
        "--host=127.0.0.1",
        f"--port={port}",
        f"--prometheus-port={metrics}",
        f"--cert-dir={plane.certificates}",
        "--shutdown-delay=0",
    ]
    arguments = [item.format(health=health) for item in command]
    began = time.monotonic()
    with log.open("ab") as output:
        process = subprocess.Popen(
            ["taskset", "--cpu-list", str(core), *arguments, *common],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        yield Server(name, pod, namespace, process, port, health, metrics, began)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
