"""Rows of an attack's table, each a result beside its bound."""

import contextlib
import json
import math
import multiprocessing
import os
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self

from tests.behaviour.serving import REQUIRED_LABELS, Server, constraint, pod, review, write_policies

Verdict = Literal["holds", "broken", "machine"]
"""Of a row; ``machine`` is no pass: not even a server that does nothing is within the bound there."""


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of an attack."""

    attack: str
    figure: str
    result: float
    bound: float = math.inf
    """Infinite for what is only said."""
    unit: str = ""
    floor: float = 0.0
    """The result of a bare server; 0 if none was tried."""

    @property
    def verdict(self) -> Verdict:
        """Whether the result is within its bound; where a bare server's is not, nobody can say."""
        if self.result <= self.bound:
            return "holds"
        return "machine" if self.floor > self.bound else "broken"


@dataclass(frozen=True, slots=True)
class Attack:
    """An attack by name: carried out, it gives its rows."""

    name: str
    run: Callable[[], Iterator[Row]]


@contextmanager
def server(*flags: str, documents: tuple[str, ...] = ()) -> Iterator[Server]:
    """A ready server whose Pods need an owner."""
    with tempfile.TemporaryDirectory(prefix="waddle-drill-") as folder:
        policies = write_policies(
            Path(folder), REQUIRED_LABELS, constraint("needs-owner", "owner"), *documents
        )
        with Server(policies, *flags) as running:
            running.ready()
            for _ in range(200):  # code and connections are warm
                running.admit(pod(owner="me"))
            yield running


@contextmanager
def elsewhere(work: Callable[..., None], *arguments: object) -> Iterator[Callable[[], None]]:
    """Carry this out in a process of its own, to its end; behind the others, as from afar.

    Gives what waits for that end. The process takes a while to begin, and to start it
    holds up the threads of this one: who measures times begins within.
    """
    process = multiprocessing.get_context("spawn").Process(target=_behind, args=(work, *arguments))
    process.start()
    try:
        yield process.join
    finally:
        process.join()


def _behind(work: Callable[..., None], *arguments: object) -> None:
    # Attackers of a cluster are on other machines. Here they run when nobody else of their core
    # wants to: what a measuring client waits for is then the server and not its neighbours.
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    work(*arguments)


LIMIT_MIB = 512
"""The manifests' memory limit."""

LIBRARY = Path(__file__).parents[2] / "policies"


def library() -> tuple[str, ...]:
    """The default set of constraints, and its templates."""
    folders = ("general", "pod-security-baseline", "pod-security-restricted")
    templates = [
        path for name in folders for path in sorted((LIBRARY / name).glob("*/template.yaml"))
    ]
    return tuple(path.read_text() for path in (*templates, LIBRARY / "constraints.yaml"))


@contextmanager
def limited(running: Server) -> Iterator[None]:
    """Have the server end beyond the manifests' memory limit, where a control group can be made."""
    group = Path("/sys/fs/cgroup/memory") / f"waddle-drill-{running.process.pid}"
    limit = "memory.limit_in_bytes"
    if not group.parent.is_dir():
        group, limit = Path("/sys/fs/cgroup") / group.name, "memory.max"
    try:
        group.mkdir()
        (group / limit).write_text(str(LIMIT_MIB * 1024 * 1024))
        (group / "cgroup.procs").write_text(str(running.process.pid))
    except OSError:  # Not ours to make: the figure alone says what it held.
        yield
        return
    try:
        yield
    finally:
        (group.parent / "cgroup.procs").write_text(str(running.process.pid))
        group.rmdir()


def rss_mib(running: Server) -> float:
    """Resident memory now."""
    for line in Path(f"/proc/{running.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("the server is gone")


@dataclass
class Bystander:
    """Good requests at a rate, and the server's memory, until the end of a ``with``.

    The connection is open and used before the first one that counts, as an API server's is.
    """

    running: Server
    per_second: float = 50
    good: bytes = field(default_factory=lambda: json.dumps(review(pod(owner="me"))).encode())
    bad: bytes = field(default_factory=lambda: json.dumps(review(pod())).encode())
    seconds: list[float] = field(default_factory=list)
    wrong: int = 0
    let_in: int = 0
    """Violations that were not refused: by a decision, or for want of one under Ignore."""
    allowed: int = 0
    """Violations that a decision allowed: they are stored under Fail, too."""
    rest_mib: float = 0.0
    peak_mib: float = 0.0

    def __enter__(self) -> Self:
        self._stop = threading.Event()
        self.rest_mib = self.peak_mib = rss_mib(self.running)
        self._threads = [threading.Thread(target=run) for run in (self._ask, self._watch)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.005):
            self.peak_mib = max(self.peak_mib, rss_mib(self.running))

    def _ask(self) -> None:
        connection = self.running.connect()
        with contextlib.suppress(OSError, ssl.SSLError):
            self.running.post(self.good, connection=connection)
        due = time.monotonic()
        number = 0
        while not self._stop.is_set():
            number += 1
            body, allowed = (self.bad, False) if number % 4 == 0 else (self.good, True)
            try:
                answer = self.running.post(body, connection=connection)
                is_allowed = answer.status == 200 and answer.verdict["allowed"]
                right = answer.status == 200 and is_allowed is allowed
                self.allowed += is_allowed and not allowed
            except (OSError, ssl.SSLError):
                right = False
                connection.close()
                connection = self.running.connect()
            # From when it was due: a server that keeps others waiting is not spared them.
            self.seconds.append(time.monotonic() - due)
            self.wrong += not right
            self.let_in += not right and not allowed
            due = max(due + 1 / self.per_second, time.monotonic() - 1)
            self._stop.wait(max(0.0, due - time.monotonic()))
        connection.close()

    @property
    def more_mib(self) -> float:
        """Memory at its peak, above rest."""
        return self.peak_mib - self.rest_mib

    def milliseconds(self, part: float) -> float:
        """A quantile of the good requests' time."""
        ordered = sorted(self.seconds)
        return 1000 * ordered[min(len(ordered) - 1, int(part * len(ordered)))]
