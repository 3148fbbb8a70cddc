"""Sidecars and replicas as processes, for tests that start, ask and kill them."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from tests.patience import PATIENCE_SECONDS
from tests.ports import free_port

ROOT = Path(__file__).parent.parent.parent

AMPLE = {"maxRecords": 1_000_000, "maxBytes": 2**30}
"""A replica may be kept from its sidecar for a while: from such a queue nothing is dropped."""


class Sidecar:
    """``waddle sidecar`` with a configuration; ``command`` may name another program to run it."""

    def __init__(
        self,
        folder: Path,
        sinks: Sequence[dict[str, Any]],
        *,
        listen: Sequence[dict[str, Any]] | None = None,
        command: Sequence[str] | None = None,
        **settings: Any,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.socket = folder / "decisions.sock"
        self.url = f"unix://{self.socket}"
        self.metrics_port = free_port()
        self.queue = folder / "queue"
        configuration = {
            "listen": list(listen) if listen is not None else [{"url": self.url}],
            "queue": {"directory": str(self.queue)},
            "metricsAddress": f"127.0.0.1:{self.metrics_port}",
            "sinks": list(sinks),
            **settings,
        }
        self.config = folder / "sidecar.yaml"
        self.config.write_text(json.dumps(configuration))  # JSON is YAML
        self._command = list(command or (sys.executable, "-m", "webhook", "sidecar", "--config"))
        self.log = folder / "sidecar.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *arguments: str) -> Self:
        """Start it; returns at once."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self._command, str(self.config), *arguments], stderr=log, stdout=log, cwd=ROOT
            )
        return self

    def ready(self) -> Self:
        """Wait until it listens."""
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until:
            assert self.process is not None
            assert self.process.poll() is None, self.log.read_text()
            if self.get("/readyz")[0] == 200:
                return self
            time.sleep(0.01)
        raise AssertionError(self.log.read_text())

    def get(self, path: str) -> tuple[int, str]:
        """An answer of the metrics port; 0 where there is none."""
        connection = http.client.HTTPConnection("127.0.0.1", self.metrics_port, PATIENCE_SECONDS)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        except (OSError, http.client.HTTPException):
            return 0, ""
        finally:
            connection.close()

    def metric(self, series: str) -> float:
        """A series' value, without the prefix of its name; -1 where there is none.

        Of all the sidecar's queues together, unless ``series`` names one.
        """
        found = []
        for line in self.get("/metrics")[1].splitlines():
            name, _, value = line.rpartition(" ")
            if "queue=" not in series:
                name = re.sub(r'queue="[^"]*",?', "", name).removesuffix("{}")
            if name == f"waddle_decisions_{series}":
                found.append(float(value))
        return sum(found) if found else -1.0

    def await_metric(self, series: str, value: float) -> None:
        """Wait until a series has a value."""
        until = time.monotonic() + PATIENCE_SECONDS
        while (found := self.metric(series)) != value:
            assert time.monotonic() < until, (series, found, self.log.read_text()[-3000:])
            time.sleep(0.02)

    def await_log(self, text: str) -> None:
        """Wait until the log has a text."""
        until = time.monotonic() + PATIENCE_SECONDS
        while text not in (log := self.log.read_text()):
            assert time.monotonic() < until, (text, log[-3000:])
            time.sleep(0.02)

    def memory_kib(self, field: str = "VmRSS") -> int:
        """Resident memory."""
        assert self.process is not None
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(rf"{field}:\s+(\d+)", status)
        assert found is not None
        return int(found[1])

    def cpu_seconds(self) -> float:
        """User and system time so far."""
        assert self.process is not None
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self) -> None:
        """SIGKILL."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_SECONDS)

    def __enter__(self) -> Self:
        try:
            return self.start().ready()
        except BaseException:
            self.kill()
            raise

    def __exit__(self, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.stop()


class Replica:
    """A process of ``tests.decisions.replica``."""

    def __init__(self, folder: Path, config: Path, pod: str) -> None:
        self._log = (folder / f"{pod}.log").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.decisions.replica", str(config), pod, str(folder)],
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=ROOT,
        )

    def kill(self) -> None:
        """SIGKILL: nobody hears of its counters."""
        self.process.kill()
        self.process.communicate()
        self._log.close()

    def stop(self) -> dict[str, Any]:
        """SIGTERM; its counters after it has drained."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"ready\n"  # and then it heeds signals
        self.process.send_signal(signal.SIGTERM)
        output, _ = self.process.communicate(timeout=PATIENCE_SECONDS)
        self._log.close()
        assert self.process.returncode == 0
        found: dict[str, Any] = json.loads(output)
        return found


def run_replica(folder: Path, enough: Any, **settings: Any) -> dict[str, Any]:
    """Send decisions until ``enough`` returns; the counters after the drain."""
    folder.mkdir(exist_ok=True)
    config = folder / "exporter.yaml"
    config.write_text(json.dumps({"flushSeconds": 0.01, "queue": AMPLE, **settings}))
    replica = Replica(folder, config, "pod")
    enough()
    return replica.stop()
