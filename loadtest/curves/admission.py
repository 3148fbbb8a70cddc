"""Curves of one server: constraints that match or do not, the object's size, the load."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from loadtest.bench import gatekeeper, policies
from loadtest.bench.servers import Server, waddle
from loadtest.curves.points import Stand, medians
from loadtest.traces import BODIES

MATCHING = (1, 10, 30, 100, 1000)
IDLE = (1, 10, 100, 1000)
SIZES_KIB = (1, 4, 16, 64, 256, 1024)
# Parts of what one core can do.
LOADS = (0.2, 0.4, 0.6, 0.8, 0.9)

QUIETEST_OF = 5


def matching(stand: Stand, places: tuple[int, ...]) -> None:
    """CPU, latency and memory by the number of constraints, all of which match."""
    for count in stand.missing("matching", places):
        made = policies.matching(int(count))
        with _both(stand, f"matching-{count}", *made) as servers:
            # Gatekeeper takes 0.3 s with a thousand: eight at a time would be 3 s each.
            connections = 8 if count < 1000 else 2
            found = stand.alternated(servers, BODIES / "pod.json", connections=connections)
            stand.store.keep("matching", count, {**found, "connections": connections})
        stand.say(f"matching {count}")


def idle(stand: Stand, places: tuple[int, ...]) -> None:
    """The same for constraints that do not match, beside one that does."""
    for count in stand.missing("idle", places):
        made = policies.with_idle(int(count) + 1, active=1)
        with _both(stand, f"idle-{count}", *made) as servers:
            stand.store.keep("idle", count, stand.alternated(servers, BODIES / "pod.json"))
        stand.say(f"idle {count}")


def size(stand: Stand, places: tuple[int, ...]) -> None:
    """The same by the object's size, with 12 constraints."""
    missing = stand.missing("size", places)
    if not missing:
        return
    with _both(stand, "size", *policies.read("p12")) as servers:
        for kib in missing:
            body = stand.folder / f"pod-{kib}.json"
            body.write_text(json.dumps(padded(int(kib) * 1024), separators=(",", ":")))
            stand.store.keep("size", kib, stand.alternated(servers, body))
            stand.say(f"size {kib} KiB")


def load(stand: Stand, places: tuple[float, ...]) -> None:
    """Latency on a fixed schedule by the part of one core's saturation that is offered; ours alone.

    Gatekeeper's is in the benchmark, at half of its own saturation.
    """
    missing = stand.missing("load", places)
    if not missing:
        return
    server_set = policies.POLICIES / "p12"
    log = stand.folder / "load.log"
    with waddle(server_set, stand.certificates, core=stand.cores.server, log=log) as server:
        body = BODIES / "pod.json"
        peak = stand.alternated([server], body)["waddle"]
        for part in missing:
            rate = part * 1000 / peak["server_cpu_ms_per_request"]
            rounds = [
                stand.generator.open(
                    server,
                    body,
                    connections=32,
                    seconds=stand.effort.seconds,
                    rate=rate,
                    expected="allowed",
                )
                for _ in range(QUIETEST_OF)
            ]
            # Other programs on the machine add to latencies and never reduce them.
            quietest = min(rounds, key=lambda one: float(one["p99_ms"]))
            figures = {"rate": rate, "peak": peak, "waddle": medians([quietest])}
            stand.store.keep("load", part, figures)
            stand.say(f"load {part}")


def padded(size_bytes: int) -> dict[str, Any]:
    """A Pod that every set allows, about as large as asked for, from 1.3 KB on."""
    review: dict[str, Any] = json.loads((BODIES / "pod.json").read_text())
    if size_bytes < _size(review):
        review = json.loads((BODIES / "pod_small.json").read_text())
    annotations = review["request"]["object"]["metadata"].setdefault("annotations", {})
    left = size_bytes - _size(review)
    while left > 40:
        # As long as annotations usually are, many of them: decoding costs by the value.
        value = "v" * min(80, left - 29)
        annotations[f"example.com/note-{len(annotations):06}"] = value
        left -= len(value) + 29
    return review


def _size(review: dict[str, Any]) -> int:
    return len(json.dumps(review, separators=(",", ":")))


@contextmanager
def _both(
    stand: Stand, name: str, templates: list[Any], constraints: list[Any]
) -> Iterator[list[Server]]:
    """Yields both servers with a set of policies."""
    folder = stand.folder / name
    source = policies.write(folder / "policies", templates, constraints)
    core, log = stand.cores.server, folder / "waddle.log"
    with (
        gatekeeper.prepared(source, stand.certificates, folder, core=core) as installed,
        installed.gatekeeper() as peer,
        waddle(source, stand.certificates, core=core, log=log) as ours,
    ):
        yield [ours, peer]
