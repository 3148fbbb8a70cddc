"""Sending: the generator as a process on the clients' core, and single requests."""

import functools
import http.client
import json
import ssl
import subprocess
from collections.abc import Mapping, Sequence
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
    first: bool = False
    """Whether it goes before everything else on its core, where that is allowed: what shares the
    core, as an API server does, then adds nothing to latencies."""

    def closed(
        self, server: Server, body: Path, *, connections: int, seconds: float, expected: str
    ) -> dict[str, Any]:
        """Each connection sends its next request when it has its answer, for some seconds."""
        arguments = [f"-c={connections}", f"-d={seconds}s"]
        return self._run(server, body, expected, arguments, seconds)

    def count(
        self, server: Server, body: Path, *, connections: int, requests: int, expected: str
    ) -> dict[str, Any]:
        """Sends so many requests, without a time limit."""
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

    def mixed(
        self,
        server: Server,
        expected: Mapping[Path, str],
        *,
        connections: int,
        seconds: float,
        rate: float,
        samples: Path,
    ) -> dict[str, Any]:
        """A fixed schedule of bodies in turn; wrong and missing answers are counted, not raised.

        ``samples`` takes a line for each request: when it was due, sent and answered.
        """
        arguments = [f"-c={connections}", f"-d={seconds}s", f"-rate={rate}", f"-samples={samples}"]
        bodies, verdicts = ",".join(map(str, expected)), ",".join(expected.values())
        finished = self._finished(server, bodies, verdicts, arguments, seconds)
        if not finished.stdout:
            raise RuntimeError(f"{server.name}: {finished.stderr.strip()}")
        report: dict[str, Any] = json.loads(finished.stdout)
        report["fault"] = finished.stderr.strip()
        return report

    def compare(
        self,
        servers: Sequence[Server],
        body: Path | Sequence[Path],
        *,
        connections: int,
        requests: int,
        rounds: int,
        expected: str,
        apart: bool = True,
        skip: int = 0,
    ) -> list[list[dict[str, float]]]:
        """Sends so many requests to each server in turn, and returns each round's costs.

        ``body`` is for all, or one for each; a server may be there several times. Without ``apart``
        several bodies, or the lines of a ``.jsonl`` file, are sent in turn to all, each round going
        on where the one before it ended; ``skip`` bodies come first that are not sent. ``cpu_us`` is the CPU of a server's whole process
        from round to round, for each request, and ``own_cpu_us`` that while it was asked itself.
        """
        urls, pids = (",".join(each) for each in zip(*map(_place, servers), strict=True))
        bodies = [body] if isinstance(body, Path) else body
        verdicts = ",".join(expected for _ in bodies) if expected else ""
        finished = subprocess.run(
            [
                *("taskset", "--cpu-list", str(self.core), build("loadgen")),
                *(f"-url={urls}", f"-pid={pids}", f"-expect={verdicts}"),
                *(
                    f"-body={','.join(map(str, bodies))}",
                    f"-apart={str(apart and len(bodies) > 1).lower()}",
                ),
                *(f"-c={connections}", f"-n={requests}", f"-rounds={rounds}"),
                f"-skip={skip}",
                f"-d={COUNT_SECONDS_MAX}s",
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COUNT_SECONDS_MAX,
            check=False,
        )
        if finished.returncode != 0:
            names = ", ".join(one.name for one in bodies[:8])
            raise RuntimeError(f"{names}: {finished.stderr.strip()}")
        taken: list[list[dict[str, float]]] = json.loads(finished.stdout)
        return taken

    def _run(
        self, server: Server, body: Path, expected: str, arguments: list[str], seconds: float
    ) -> dict[str, Any]:
        finished = self._finished(server, str(body), expected, arguments, seconds)
        if finished.returncode != 0:
            raise RuntimeError(f"{server.name}, {body.name}: {finished.stderr.strip()}")
        report: dict[str, Any] = json.loads(finished.stdout)
        return report

    def _finished(
        self, server: Server, bodies: str, expected: str, arguments: list[str], seconds: float
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                *(_FIRST if self.first and may_go_first() else ()),
                "taskset",
                "--cpu-list",
                str(self.core),
                build("loadgen"),
                f"-url={server.url}",
                f"-body={bodies}",
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


def _place(server: Server) -> tuple[str, str]:
    return server.url, str(server.process.pid)


_FIRST = ("chrt", "--fifo", "10")


def go_first(pid: int) -> None:
    """Have a process go before everything else on its core, where that is allowed, as generators do."""
    if may_go_first():
        subprocess.run(
            ["chrt", "--fifo", "--all-tasks", "--pid", "10", str(pid)],
            capture_output=True,
            check=True,
        )


@functools.cache
def may_go_first() -> bool:
    """Whether this user may have a process go before all others on a core."""
    try:
        tried = subprocess.run([*_FIRST, "true"], capture_output=True, timeout=10, check=False)
    except FileNotFoundError:
        return False
    return tried.returncode == 0


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
