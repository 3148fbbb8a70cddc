"""The servers that are compared, as processes pinned to one core."""

import contextlib
import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.ports import free_ports

READY_SECONDS_MAX = 120
STOP_SECONDS_MAX = 60
POLL_SECONDS = 0.002


@dataclass(frozen=True, slots=True)
class Cores:
    """The cores of servers and clients: separate if the machine has two."""

    server: int
    client: int

    @classmethod
    def of_this_machine(cls) -> "Cores":
        """The first core for clients and the last for servers."""
        usable = sorted(os.sched_getaffinity(0))
        return cls(server=usable[-1], client=usable[0])


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: where it answers, and how long it took until it was ready."""

    name: str
    url: str
    process: subprocess.Popen[bytes]
    ready_seconds: float

    def cpu_seconds(self) -> float:
        """Of its whole process so far, by the kernel's clock of it (clock_getcpuclockid(3))."""
        return time.clock_gettime(~self.process.pid << 3 | 2)

    def rss_mib(self) -> float:
        """Resident memory now, in MiB."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise RuntimeError(f"{self.name} is gone")

    def family_mib(self) -> float:
        """Resident memory with the anonymous pages of the processes that it started, in MiB."""
        return self.rss_mib() + sum(map(_anonymous_mib, _children(self.process.pid)))


def _children(pid: int) -> Iterator[int]:
    listed = subprocess.run(
        ["ps", "--ppid", str(pid), "-o", "pid="], capture_output=True, text=True, check=False
    )
    for child in map(int, listed.stdout.split()):
        yield child
        yield from _children(child)


def _anonymous_mib(pid: int) -> float:
    """Their files' pages are mostly those of the process that started them."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    return 0.0


@contextlib.contextmanager
def running(
    name: str,
    command: Sequence[str | Path],
    *,
    port: int,
    health_port: int,
    core: int | str,
    log: Path,
    environment: Mapping[str, str] | None = None,
    ready: Callable[[], bool] | None = None,
) -> Iterator[Server]:
    """Run a server from here until it is ready, and stop it at the end; ``core`` may list several.

    ``ready`` says it where ``/readyz`` at the health port does not; it may raise OSError.
    """
    started = time.perf_counter()
    with log.open("ab") as output:
        process = subprocess.Popen(
            ["taskset", "--cpu-list", str(core), *command],
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        _await_ready(name, process, ready or (lambda: _says_ready(health_port)), log)
        seconds = time.perf_counter() - started
        yield Server(name, f"https://127.0.0.1:{port}/v1/admit?timeout=30s", process, seconds)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await_ready(
    name: str, process: subprocess.Popen[bytes], ready: Callable[[], bool], log: Path
) -> None:
    end = time.monotonic() + READY_SECONDS_MAX
    while time.monotonic() < end:
        if process.poll() is not None:
            tail = "\n".join(log.read_text().splitlines()[-10:])
            raise RuntimeError(f"{name} ended:\n{tail}")
        with contextlib.suppress(OSError, http.client.HTTPException):
            if ready():
                return
        time.sleep(POLL_SECONDS)
    raise RuntimeError(f"{name} is not ready after {READY_SECONDS_MAX} s: see {log}")


def _says_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.client.OK
    finally:
        connection.close()


def waddle(
    policies: Path | None,
    certificates: Path,
    *,
    core: int | str,
    log: Path,
    flags: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    keeps_results: bool = False,
    program: Sequence[str] = (sys.executable, "-m", "webhook"),
) -> contextlib.AbstractContextManager[Server]:
    """Our server with a directory of policies, and flags and variables of the caller's own.

    Without a directory the flags say where policies are. ``program`` runs `waddle`.

    Benchmarks send few bodies many times. Results of earlier reviews would decide all of them, so
    none are kept unless ``keeps_results`` says otherwise.
    """
    port, health, metrics = free_ports(3)
    command: list[str | Path] = [
        *program,
        "serve",
        *([] if policies is None else [f"--policies={policies}"]),
        "--host=127.0.0.1",
        f"--port={port}",
        f"--health-addr=127.0.0.1:{health}",
        "--prometheus-host=127.0.0.1",
        f"--prometheus-port={metrics}",
        f"--cert-dir={certificates}",
        "--shutdown-delay=0",
        *(() if keeps_results else ("--memo-bytes=0",)),
        *flags,
    ]
    return running(
        "waddle",
        command,
        port=port,
        health_port=health,
        core=core,
        log=log,
        # Every start compiles all policies.
        environment={"WADDLE_CACHE": "", **(environment or {})},
    )


def floor(certificates: Path, *, core: int, log: Path) -> contextlib.AbstractContextManager[Server]:
    """The bare application of :mod:`loadtest.bench.floor`."""
    port, health = free_ports(2)
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "loadtest.bench.floor",
        str(port),
        str(health),
        certificates,
    ]
    return running("floor", command, port=port, health_port=health, core=core, log=log)
