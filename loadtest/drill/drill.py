"""Rows of an attack's table, each a result beside its bound."""

import contextlib
import http.client
import json
import math
import multiprocessing
import os
import re
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal, NamedTuple, Self, TypeVar

from tests.behaviour.serving import (
    REQUIRED_LABELS,
    Answer,
    Server,
    constraint,
    pod,
    review,
    unverified,
    write_policies,
)
from tests.patience import PATIENCE_SECONDS
from webhook.app.priority import go_first

T = TypeVar("T")

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


ROW: ContextVar[str] = ContextVar("ROW", default="")
"""A regular expression that is found in the names of the rows to print."""


def is_chosen(name: str) -> bool:
    """Whether rows of this name are printed, and their floods carried out."""
    return re.search(ROW.get(), name) is not None


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
def elsewhere(work: Callable[..., T], *arguments: object) -> Iterator[Callable[[], T]]:
    """Carry this out in a process of its own, to its end; behind the others, as from afar.

    Gives what waits for its result. The process takes a while to begin, and to start it
    holds up the threads of this one: who measures times begins within.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_behind, args=(sender, work, *arguments))
    process.start()
    sender.close()  # A process that fails is heard of.
    try:
        yield receiver.recv
    finally:
        process.join()
        receiver.close()


def _behind(sender: Connection, work: Callable[..., object], *arguments: object) -> None:
    # Attackers of a cluster are on other machines. Here they run when nobody else of their core
    # wants to: what a measuring client waits for is then the server and not its neighbours.
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    sender.send(work(*arguments))


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


class Sent(NamedTuple):
    """The requests of an attack that were answered, and for how long it sent them."""

    answered: int
    seconds: float

    @property
    def per_second(self) -> float:
        """Returns the rate."""
        return self.answered / self.seconds if self.seconds else 0.0


@dataclass
class Answers:
    """The answers to good and bad requests."""

    seconds: list[float] = field(default_factory=list)
    wrong: int = 0
    let_in: int = 0
    """Violations that were not refused: by a decision, or for want of one under Ignore."""
    allowed: int = 0
    """Violations that a decision allowed: they are stored under Fail, too."""


def ask(port: int, per_second: float, good: bytes, bad: bytes, channel: Connection) -> None:
    """Asks at a rate until something arrives on the channel, and then sends what was answered.

    It first sends one value there when its connection is open and used. It goes before the process
    that reads the server's log on the same core: a server that logs nothing would seem faster.
    """
    go_first()
    server = Remote(port)
    found, number = Answers(), 0
    server.try_post(good)
    channel.send(None)
    due = time.monotonic()
    while not channel.poll(max(0.0, due - time.monotonic())):
        number += 1
        body, allowed = (bad, False) if number % 4 == 0 else (good, True)
        answer = server.try_post(body)
        is_decided = answer is not None and answer.status == 200
        is_allowed = answer is not None and is_decided and answer.verdict["allowed"]
        right = is_decided and is_allowed is allowed
        # From when it was due: a server that keeps others waiting is not spared them.
        found.seconds.append(time.monotonic() - due)
        found.wrong += not right
        found.let_in += not right and not allowed
        found.allowed += is_allowed and not allowed
        due = max(due + 1 / per_second, time.monotonic() - 1)
    server.close()
    channel.send(found)


class Remote:
    """The admission port as a client of another process sees it, over one connection."""

    def __init__(
        self, port: int, path: str = "/v1/admit?timeout=30s", *, keeps: bool = True
    ) -> None:
        """Without ``keeps`` each request has a connection of its own."""
        self._path = path
        self._keeps = keeps
        self._port = port
        self._context = unverified()
        self._connection = self._new()

    def _new(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            "127.0.0.1", self._port, context=self._context, timeout=PATIENCE_SECONDS
        )

    def try_post(self, body: bytes) -> Answer | None:
        """Returns the answer to a review; None if the connection was closed instead."""
        found = None
        with contextlib.suppress(OSError, ssl.SSLError, http.client.HTTPException):
            headers = {"Content-Type": "application/json"}
            self._connection.request("POST", self._path, body, headers)
            found = Answer(self._connection.getresponse())
        if found is None or not self._keeps:
            self.close()
        return found

    def close(self) -> None:
        """Closes the connection; the next request opens another one."""
        self._connection.close()
        self._connection = self._new()


@dataclass
class Bystander(Answers):
    """Good requests at a rate, and the server's memory, until the end of a ``with``.

    They come from a process of their own: this one reads the server's log meanwhile. The connection
    is open and used before the first one that counts, as an API server's is.
    """

    running: Server | None = None
    per_second: float = 50
    good: bytes = field(default_factory=lambda: json.dumps(review(pod(owner="me"))).encode())
    bad: bytes = field(default_factory=lambda: json.dumps(review(pod())).encode())
    rest_mib: float = 0.0
    peak_mib: float = 0.0
    attack: Sent | None = None
    """The requests of the attack that it stood beside, if they were counted."""

    def __enter__(self) -> Self:
        assert self.running is not None
        self._stop = threading.Event()
        self.rest_mib = self.peak_mib = rss_mib(self.running)
        context = multiprocessing.get_context("spawn")
        self._channel, channel = context.Pipe()
        arguments = (self.running.ports["admission"], self.per_second, self.good, self.bad, channel)
        self._process = context.Process(target=ask, args=arguments)
        self._process.start()
        channel.close()  # A process that fails is heard of.
        self._channel.recv()
        self._watching = threading.Thread(target=self._watch)
        self._watching.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._watching.join()
        self._channel.send(None)
        answers = self._channel.recv()
        self._process.join()
        self._channel.close()
        for each in fields(Answers):
            setattr(self, each.name, getattr(answers, each.name))

    def _watch(self) -> None:
        assert self.running is not None
        while not self._stop.wait(0.005):
            self.peak_mib = max(self.peak_mib, rss_mib(self.running))

    @property
    def more_mib(self) -> float:
        """Memory at its peak, above rest."""
        return self.peak_mib - self.rest_mib

    def milliseconds(self, part: float) -> float:
        """A quantile of the good requests' time."""
        ordered = sorted(self.seconds)
        return 1000 * ordered[min(len(ordered) - 1, int(part * len(ordered)))]
