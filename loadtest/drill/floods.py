"""Floods of requests beside ordinary ones: what both attacks and rows of the shipped manifests use."""

import contextlib
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadtest.drill.attacks.bytes_in_flight import send, whole
from loadtest.drill.drill import LIMIT_MIB, Bystander, Row, elsewhere, rss_mib
from tests.behaviour.serving import Server, pod, review

RATIO_MAX = 3.0
"""How much longer others may wait than while nothing else happens."""

QUIET_SECONDS = 10
REST_SECONDS = 5
KEPT_MIB_MAX = 128


@dataclass(frozen=True, slots=True)
class Flood:
    """The same body from each of some connections: some times, or for some seconds.

    ``make`` is a function of a module, or a partial of one: the flood comes from another process.
    """

    make: Callable[[], bytes]
    connections: int
    times: int = 1_000_000
    seconds: float = 60.0
    path: bytes = b"/v1/admit?timeout=3s"

    def carry_out(self, port: int) -> None:
        """Send it all, and read whatever comes back."""
        raw = whole(self.make()).replace(b"/v1/admit ", self.path + b" ", 1)
        until = time.monotonic() + self.seconds

        def repeat() -> None:
            for _ in range(self.times):
                if time.monotonic() >= until:
                    break
                send(port, raw)

        threads = [threading.Thread(target=repeat) for _ in range(self.connections)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def usual(notes: int = 0, **security: bool) -> bytes:
    """A review as most are, with so many characters of notes."""
    found = pod(owner="me")
    if notes:
        found["metadata"]["annotations"] = {"notes": "x" * notes}
    found["spec"] = {"containers": [{"name": "a", "image": "a", "securityContext": security}]}
    return json.dumps(review(found)).encode()


def beside(
    name: str,
    running: Server,
    flood: Flood,
    *,
    per_second: float = 20,
    notes: int = 0,
    kept: bool = False,
) -> Iterator[Row]:
    """What a flood makes of the others: their time, their answers, and the server's memory."""
    bodies = usual(notes), usual(notes, privileged=True)
    with Bystander(running, per_second, *bodies) as quiet:
        time.sleep(QUIET_SECONDS)
    with (
        elsewhere(flood.carry_out, running.ports["admission"]) as await_end,
        Bystander(running, per_second, *bodies) as others,
    ):
        await_end()
    ratio = others.milliseconds(0.99) / quiet.milliseconds(0.99)
    yield Row(name, "p99 of the others against quiet", ratio, RATIO_MAX, "times")
    yield Row(name, "others answered wrongly", others.wrong, 0)
    yield Row(name, "violations let through (Ignore)", others.let_in, 0)
    yield Row(name, "violations let through (Fail)", others.allowed, 0)
    yield Row(name, "memory", others.peak_mib, LIMIT_MIB, "MiB")
    if kept:
        time.sleep(REST_SECONDS)
        yield Row(name, "memory that stays", rss_mib(running) - quiet.rest_mib, KEPT_MIB_MAX, "MiB")


def let_in(
    running: Server,
    documents: Sequence[Mapping[str, Any]],
    threads: int = 1,
    path: str = "/v1/admit?timeout=3s",
) -> tuple[int, int]:
    """How many of these violating objects are stored with Ignore, and with Fail."""
    waiting = [json.dumps(one).encode() for one in documents]
    stored = {"Ignore": 0, "Fail": 0}
    lock = threading.Lock()

    def take() -> None:
        while True:
            with lock:
                if not waiting:
                    return
                raw = waiting.pop()
            denied = allowed = False
            with contextlib.suppress(OSError, ssl.SSLError):
                answer = running.post(raw, path)
                allowed = answer.status == 200 and answer.verdict["allowed"] is True
                denied = answer.status == 200 and not allowed
            with lock:
                stored["Ignore"] += not denied
                stored["Fail"] += allowed

    workers = [threading.Thread(target=take) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return stored["Ignore"], stored["Fail"]
