"""The real Gatekeeper in a control plane of replicas, with its own Pod, statuses and ports."""

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from loadtest.bench.gatekeeper import NAMESPACE, POD, install
from tests.behaviour.serving import unverified
from tests.patience import PATIENCE_SECONDS, running, until
from tests.ports import free_ports
from tests.programs import program
from tests.system.replicas import Plane, config_map, review_of, try_request

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
ALL_OPERATIONS = ("webhook", "status", "generate", "audit")


class Gatekeeper:
    """A process with every operation that writes what Waddle would write too."""

    def __init__(
        self, plane: Plane, folder: Path, operations: Sequence[str] = ALL_OPERATIONS, *flags: str
    ) -> None:
        self.plane = plane
        self.log = folder / "gatekeeper.log"
        self._cache = folder / "api-cache"
        self._cache.mkdir(exist_ok=True)
        self.port, self._health, metrics = free_ports(3)
        command: list[str | Path] = [
            program("gatekeeper"),
            *(f"--operation={name}" for name in operations),
            f"--kubeconfig={plane.cluster.kubeconfig}",
            "--host=127.0.0.1",
            f"--port={self.port}",
            f"--health-addr=127.0.0.1:{self._health}",
            f"--prometheus-port={metrics}",
            f"--cert-dir={plane.certificates}",
            f"--api-cache-dir={self._cache}",
            "--disable-cert-rotation",
            "--log-level=ERROR",
            "--shutdown-delay=0",
            *flags,
        ]
        environment = {**os.environ, "POD_NAME": POD, "POD_NAMESPACE": NAMESPACE}
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
        running.add(self)

    def last_lines(self) -> str:
        """Returns its name, whether it runs, and the end of its log."""
        return f"Gatekeeper ({self.process.poll()}): {self.log.read_text()[-2000:]}"

    @staticmethod
    def install(plane: Plane) -> None:
        """Gatekeeper's own CRDs and its Pod; Waddle's CRDs are not there."""
        install(plane.api)
        plane.make_namespaces()

    @property
    def is_ready(self) -> bool:
        """Returns whether `/readyz` succeeds."""
        assert self.process.poll() is None, self.log.read_text()[-2000:]
        try:
            url = f"http://127.0.0.1:{self._health}/readyz"
            with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def denies(self, word: str) -> bool:
        """Whether it denies a ConfigMap with the word."""
        request = urllib.request.Request(
            f"https://127.0.0.1:{self.port}/v1/admit?timeout=10s",
            data=json.dumps(review_of(config_map(word))).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(
            request, timeout=PATIENCE_SECONDS, context=unverified()
        ) as answer:
            verdict: dict[str, Any] = json.load(answer)["response"]
        return not verdict["allowed"]

    def __enter__(self) -> Self:
        try:
            until(lambda: self.is_ready, "Gatekeeper is ready")
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Remove it, its Pod included."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        try_request(self.plane.api, "DELETE", f"{PODS}/{POD}?gracePeriodSeconds=0")

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.stop()
