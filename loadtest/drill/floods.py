"""Floods of requests beside ordinary ones: what both attacks and rows of the shipped manifests use."""

import contextlib
import http.client
import json
import multiprocessing
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any

from loadtest.drill.attacks.bytes_in_flight import send, whole
from loadtest.drill.drill import LIMIT_MIB, Bystander, Row, elsewhere, rss_mib
from loadtest.drill.floor import apart, bare
from tests.behaviour.serving import Answer, Server, pod, review, unverified
from tests.patience import PATIENCE_SECONDS

RATIO_MAX = 3.0
"""The longest wait of others, as a ratio to a quiet server's."""

QUIET_SECONDS = 10

SAMPLES_PER_SECOND = 50
"""Requests of the others: in the 10 s of most rows the 99th percentile is the fifth slowest of 500.
Of the 100 in 5 s at a rate of 20 it was the slowest of all."""

REST_SECONDS = 5
KEPT_MIB_MAX = 128


@dataclass(frozen=True, slots=True)
class Flood:
    """A body from each of some connections: some times, or for some seconds.

    ``make`` is a function of a module, or a partial of one: the flood comes from another process.
    Connections send its body, and those of ``more``, in turn.
    """

    make: Callable[[], bytes]
    connections: int
    times: int = 1_000_000
    seconds: float = 60.0
    path: bytes = b"/v1/admit?timeout=3s"
    more: tuple[Callable[[], bytes], ...] = ()

    def carry_out(self, port: int) -> None:
        """Send it all, and read whatever comes back."""
        raws = [
            whole(make()).replace(b"/v1/admit ", self.path + b" ", 1)
            for make in (self.make, *self.more)
        ]
        until = time.monotonic() + self.seconds

        def repeat(raw: bytes) -> None:
            for _ in range(self.times):
                if time.monotonic() >= until:
                    break
                send(port, raw)

        threads = [
            threading.Thread(target=repeat, args=(raws[number % len(raws)],))
            for number in range(self.connections)
        ]
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
    per_second: float = SAMPLES_PER_SECOND,
    notes: int = 0,
    kept: bool = False,
) -> Iterator[Row]:
    """Yields a flood's effects on others: their time, their answers, the server's memory."""
    bodies = usual(notes), usual(notes, privileged=True)
    with apart(running):
        with Bystander(running, per_second, *bodies) as quiet:
            time.sleep(QUIET_SECONDS)
        others = flooded(running, flood.carry_out, per_second, *bodies)
    with bare() as at_once, apart(at_once):
        long = replace(flood, times=1_000_000, seconds=min(flood.seconds, QUIET_SECONDS))
        floor = flooded(at_once, long.carry_out, per_second, *bodies)
    yield from waits(name, quiet, others, floor)
    yield Row(name, "others answered wrongly", others.wrong, 0)
    yield Row(name, "violations let through (Ignore)", others.let_in, 0)
    yield Row(name, "violations let through (Fail)", others.allowed, 0)
    yield Row(name, "memory", others.peak_mib, LIMIT_MIB, "MiB")
    if kept:
        time.sleep(REST_SECONDS)
        yield Row(name, "memory that stays", rss_mib(running) - quiet.rest_mib, KEPT_MIB_MAX, "MiB")


def flooded(
    running: Server, carry_out: Callable[[int], None], per_second: float, good: bytes, bad: bytes
) -> Bystander:
    """Ask beside a flood of a port, to its end."""
    with (
        elsewhere(carry_out, running.ports["admission"]) as await_end,
        Bystander(running, per_second, good, bad) as others,
    ):
        await_end()
    return others


def waits(name: str, quiet: Bystander, others: Bystander, floor: Bystander) -> Iterator[Row]:
    """Yields the waits of others: in quiet, beside the flood, and beside a bare server's flood.

    The bound is on how many times as long as in quiet. The bare server's wait is what the machine
    and the client alone make of the flood.
    """
    alone, found, machine = (one.milliseconds(0.99) for one in (quiet, others, floor))
    yield Row(name, "p99 of the others in quiet", alone, unit="ms")
    yield Row(name, "p99 of the others beside the flood", found, unit="ms")
    yield Row(name, "p99 of the others at a bare server", machine, unit="ms")
    yield Row(name, "p99 against quiet", found / alone, RATIO_MAX, "times", floor=machine / alone)
    yield Row(name, "p99 against a bare server's", found / machine, unit="times")


@dataclass(frozen=True, slots=True)
class Tries:
    """Violating objects, each tried once."""

    documents: Sequence[Mapping[str, Any]]
    threads: int = 1
    path: str = "/v1/admit?timeout=3s"

    def carry_out(self, port: int, sender: Connection) -> None:
        """Try them all, and tell how many are stored with Ignore, and with Fail."""
        waiting = [json.dumps(one).encode() for one in self.documents]
        lock = threading.Lock()
        stored = [0, 0]

        def take() -> None:
            while True:
                with lock:
                    if not waiting:
                        return
                    raw = waiting.pop()
                is_denied, is_allowed = tried(port, self.path, raw)
                with lock:
                    stored[0] += not is_denied
                    stored[1] += is_allowed

        workers = [threading.Thread(target=take) for _ in range(self.threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        sender.send(tuple(stored))


def tried(port: int, path: str, raw: bytes) -> tuple[bool, bool]:
    """Whether a review is denied, and whether it is allowed; neither where it is not decided."""
    connection = http.client.HTTPSConnection(
        "127.0.0.1", port, context=unverified(), timeout=PATIENCE_SECONDS
    )
    with contextlib.closing(connection), contextlib.suppress(OSError, ssl.SSLError):
        connection.request("POST", path, raw, {"Content-Type": "application/json"})
        answer = Answer(connection.getresponse())
        is_allowed = answer.status == 200 and answer.verdict["allowed"] is True
        return answer.status == 200 and not is_allowed, is_allowed
    return False, False


@contextlib.contextmanager
def trying(running: Server, tries: Tries) -> Iterator[Callable[[], tuple[int, int]]]:
    """Try objects from another process, as a flood comes; gives what waits for how many are stored.

    A hundred threads beside those that measure would be what is measured.
    """
    receiver, sender = multiprocessing.get_context("spawn").Pipe(duplex=False)
    with elsewhere(tries.carry_out, running.ports["admission"], sender):
        sender.close()  # A process that fails is heard of.
        yield receiver.recv


def let_in(running: Server, tries: Tries) -> tuple[int, int]:
    """Returns the numbers of violating objects stored with Ignore, and with Fail."""
    with trying(running, tries) as await_stored:
        return await_stored()
