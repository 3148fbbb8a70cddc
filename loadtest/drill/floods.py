"""Floods of requests beside ordinary ones: what both attacks and rows of the shipped manifests use."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from loadtest.drill.drill import LIMIT_MIB, Bystander, Remote, Row, Sent, elsewhere, rss_mib
from loadtest.drill.floor import apart, bare
from tests.behaviour.serving import Server, pod, review

RATIO_MAX = 3.0
"""The longest wait of others, as a ratio to a quiet server's."""

QUIET_SECONDS = 10

SAMPLES_PER_SECOND = 50
"""Requests of the others: in the 10 s of most rows the 99th percentile is the fifth slowest of 500.
Of the 100 in 5 s at a rate of 20 it was the slowest of all."""

REST_SECONDS = 5
KEPT_MIB_MAX = 128


def together(threads: int, work: Callable[[int], None]) -> None:
    """Carries work out in so many threads, each with its number, to the end of all."""
    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


@dataclass(frozen=True, slots=True)
class Flood:
    """A body from each of some connections: some times, or for some seconds.

    ``make`` is a function of a module, or a partial of one: the flood comes from another process.
    Connections send its body, and those of ``more``, in turn. With ``keeps`` they stay open, else
    there is a new one for each request.
    """

    make: Callable[[], bytes]
    connections: int
    times: int = 1_000_000
    seconds: float = 60.0
    path: str = "/v1/admit?timeout=3s"
    more: tuple[Callable[[], bytes], ...] = ()
    keeps: bool = False

    def carry_out(self, port: int) -> Sent:
        """Send it all, and read whatever comes back."""
        raws = [make() for make in (self.make, *self.more)]
        began = time.monotonic()
        answered = [0] * self.connections

        def repeat(number: int) -> None:
            server, raw = Remote(port, self.path, keeps=self.keeps), raws[number % len(raws)]
            for _ in range(self.times):
                if time.monotonic() >= began + self.seconds:
                    break
                answered[number] += server.try_post(raw) is not None
            server.close()

        together(self.connections, repeat)
        return Sent(sum(answered), time.monotonic() - began)


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
        with Bystander(
            running=running, per_second=per_second, good=bodies[0], bad=bodies[1]
        ) as quiet:
            time.sleep(QUIET_SECONDS)
        others = flooded(running, flood.carry_out, per_second, *bodies)
    with bare() as at_once, apart(at_once):
        long = replace(flood, times=1_000_000, seconds=min(flood.seconds, QUIET_SECONDS))
        floor = flooded(at_once, long.carry_out, per_second, *bodies)
    yield from waits(name, quiet, others, floor)
    yield from rates(name, others, floor)
    yield Row(name, "others answered wrongly", others.wrong, 0)
    yield Row(name, "violations let through (Ignore)", others.let_in, 0)
    yield Row(name, "violations let through (Fail)", others.allowed, 0)
    yield Row(name, "memory", others.peak_mib, LIMIT_MIB, "MiB")
    if kept:
        time.sleep(REST_SECONDS)
        yield Row(name, "memory that stays", rss_mib(running) - quiet.rest_mib, KEPT_MIB_MAX, "MiB")


def flooded(
    running: Server,
    carry_out: Callable[[int], Sent | None],
    per_second: float,
    good: bytes,
    bad: bytes,
) -> Bystander:
    """Ask beside a flood of a port, to its end."""
    with (
        elsewhere(carry_out, running.ports["admission"]) as await_end,
        Bystander(running=running, per_second=per_second, good=good, bad=bad) as others,
    ):
        others.attack = await_end()
    return others


def rates(name: str, others: Bystander, floor: Bystander) -> Iterator[Row]:
    """Yields how many requests of the flood were answered in a second, here and at a bare server."""
    for where, client in {"": others, " at a bare server": floor}.items():
        if client.attack is not None:
            rate = client.attack.per_second
            yield Row(name, f"answered requests of the flood{where}", rate, unit="a second")


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


class Stored(NamedTuple):
    """How many violating objects are stored with Ignore, and with Fail, of those sent."""

    ignored: int
    failed: int
    sent: Sent


@dataclass(frozen=True, slots=True)
class Tries:
    """Violating objects, each tried once, or all of them in turn for some seconds."""

    documents: Sequence[Mapping[str, Any]]
    threads: int = 1
    path: str = "/v1/admit?timeout=3s"
    seconds: float = 0.0
    keeps: bool = False
    """Whether each thread's connection stays open; else each object has one of its own."""

    def carry_out(self, port: int) -> Stored:
        """Try them all, and tell how many are stored with Ignore, and with Fail."""
        documents = [json.dumps(one).encode() for one in self.documents]
        waiting = list(documents)
        lock = threading.Lock()
        began = time.monotonic()
        stored = [0, 0, 0]

        def take(_: int) -> None:
            server = Remote(port, self.path, keeps=self.keeps)
            while True:
                with lock:
                    if not waiting and time.monotonic() < began + self.seconds:
                        waiting.extend(documents)
                    if not waiting:
                        break
                    raw = waiting.pop()
                answer = server.try_post(raw)
                is_decided = answer is not None and answer.status == 200
                is_allowed = answer is not None and is_decided and answer.verdict["allowed"]
                with lock:
                    stored[0] += not is_decided or is_allowed
                    stored[1] += is_allowed
                    stored[2] += answer is not None
            server.close()

        together(self.threads, take)
        ignored, failed, answered = stored
        return Stored(ignored, failed, Sent(answered, time.monotonic() - began))


def trying(running: Server, tries: Tries, good: bytes, bad: bytes) -> tuple[Stored, Bystander]:
    """Tries objects from another process, as a flood comes, beside others who ask."""
    with (
        elsewhere(tries.carry_out, running.ports["admission"]) as await_stored,
        Bystander(running=running, per_second=SAMPLES_PER_SECOND, good=good, bad=bad) as others,
    ):
        stored = await_stored()
        others.attack = stored.sent
    return stored, others


def let_in(running: Server, tries: Tries) -> Stored:
    """Returns the numbers of violating objects stored with Ignore, and with Fail."""
    with elsewhere(tries.carry_out, running.ports["admission"]) as await_stored:
        return await_stored()
