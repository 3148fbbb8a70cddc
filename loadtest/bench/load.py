"""Sending: the generator as a process on the clients' core, and single requests."""

import http.client
import json
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from loadtest.bench.servers import Server
from tests.programs import build

SLACK_SECONDS = 60
COUNT_SECONDS_MAX = 1500


@dataclass(frozen=True, slots=True)
class Generator:
    """The load generator, pinned to a core."""

    core: int

    def closed(
        self, server: Server, body: Path, *, connections: int, seconds: float, expected: str
    ) -> dict[str, Any]:
        """Each connection sends its next request when it has its answer, for some seconds."""
        arguments = [f"-c={connections}", f"-d={seconds}s"]
        return self._run(server, body, expected, arguments, seconds)

    def count(
        self, server: Server, body: Path, *, connections: int, requests: int, expected: str
    ) -> dict[str, Any]:
        """So many requests, however long they take."""
        arguments = [f"-c={connections}", f"-n={requests}", f"-d={COUNT_SECONDS_MAX}s"]
        report = self._run(server, body, expected, arguments, COUNT_SECONDS_MAX)
        if report["requests"] < requests:
            raise RuntimeError(f"{server.name} answers {report['requests']} of {requests} in time")
        return report

    def open(
        self,
        server: Server,
        body: Path,
        *,
        connections: int,
        seconds: float,
        rate: float,
        expected: str,
    ) -> dict[str, Any]:
        """A fixed schedule; latencies count from the scheduled time."""
        arguments = [f"-c={connections}", f"-d={seconds}s", f"-rate={rate}"]
        return self._run(server, body, expected, arguments, seconds)

    def _run(
        self, server: Server, body: Path, expected: str, arguments: list[str], seconds: float
    ) -> dict[str, Any]:
        finished = subprocess.run(
            [
                "taskset",
                "--cpu-list",
                str(self.core),
                build("loadgen"),
                f"-url={server.url}",
                f"-body={body}",
                *([f"-expect={expected}"] if expected else []),
                f"-pid={server.process.pid}",
                *arguments,
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds + SLACK_SECONDS,
            check=False,
        )
        if finished.returncode != 0:
            raise RuntimeError(f"{server.name}, {body.name}: {finished.stderr.strip()}")
        report: dict[str, Any] = json.loads(finished.stdout)
        return report


def ask(server: Server, body: Path) -> dict[str, Any]:
    """The response to one review: verdict, code and message."""
    url = urlsplit(server.url)
    context = ssl.create_default_context()
    context.check_hostname = False  # the certificate is made for this run
    context.verify_mode = ssl.CERT_NONE
    connection = http.client.HTTPSConnection(url.netloc, timeout=30, context=context)
    try:
        headers = {"Content-Type": "application/json"}
        connection.request("POST", f"{url.path}?{url.query}", body.read_bytes(), headers)
        response: dict[str, Any] = json.loads(connection.getresponse().read())["response"]
        return response
    finally:
        connection.close()
