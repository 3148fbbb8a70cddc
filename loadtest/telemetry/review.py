"""What tracing costs a review's CPU: ``python -m loadtest.telemetry.review [ROUNDS]``.

``python -m loadtest.telemetry`` measures whole servers; this looks closer. Processes take turns to answer the same review (12 policies, from the body to the answer's bytes,
without TLS and HTTP, so that the shares are larger than a replica's): two without tracing, one that
traces and samples nothing, one that traces all and sends it to a collector of another process; their
processor time is counted. Each way has a process of its own, as in a replica: in one process the
interpreter would fit the code that all ways share to whichever ran more often. What the places of
a process' memory do to its speed differs from start to start by more than what is asked here, so
all are started anew SETS times. In a round each has one slice, in an order that is drawn anew: a
process that were asked more often than the others, or always behind the same one, would find more
of itself in the processor's caches, which makes a hundredth. A share is the median of many short
slices, each beside that without tracing of its round, and is told with the interval that holds it in 95 of 100 runs, by ranks alone; beside it the
medians of each set. ``--against CHECKOUT`` compares this code without tracing with another's (one
from before there was any) likewise; ``--way NAME`` is one of the processes.
"""

import argparse
import gc
import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from itertools import repeat
from pathlib import Path

from webhook.constraint.client import Client
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.log import Log, Logger
from webhook.metrics.registry import Registry
from webhook.policies.loader import PolicyLoader
from webhook.server.admission import Admission, AdmissionOptions
from webhook.server.decoding import Decoding
from webhook.server.endpoint import ReviewEndpoint
from webhook.serving.revision import Serving

ROOT = Path(__file__).parent.parent
REQUESTS = 20
"""In a slice: some thousandths of a second, so that what else the machine does meets all alike, and
there are many."""

ROUNDS = 3000
"""With the noise of a busy machine, a tenth for a slice, the interval is half a hundredth wide."""

SETS = 6
BODY_MAX = 40 * 1024 * 1024
WARM_UP = 40
"""Slices before any is counted: code is specialised, policies' regular parts are compiled."""

HEADERS = [
    (b"host", b"waddle-webhook-service.waddle-system.svc:443"),
    (b"user-agent", b"kube-apiserver-admission"),
    (b"accept", b"application/json, */*"),
    (b"content-type", b"application/json"),
    (b"accept-encoding", b"gzip"),
]


def _log() -> Logger:
    return Log(lambda _: None).logger("loadtest")


POLICIES = ROOT / "policies" / "p12"


def serving(policies: Path = POLICIES) -> Serving:
    """Policies in force."""
    found, registry = Serving(), Registry()
    loader = PolicyLoader(
        Client(targets=[AdmissionTarget()], drivers=[CelDriver(), RegoDriver()]),
        (policies,),
        found,
        registry=registry,
        log=_log(),
        retries=0,
    )
    assert loader.load(), loader.faults()
    return found


def endpoint_over(policies: Path, decoding: Decoding) -> ReviewEndpoint:
    """Returns an endpoint over policies of files, without tracing."""
    registry, log = Registry(), _log()
    admission = Admission(serving(policies), AdmissionOptions(10.0), registry, log)
    return ReviewEndpoint(admission, registry, log, decoding=decoding)


def slice_seconds(endpoint: ReviewEndpoint, body: bytes, count: int = REQUESTS) -> float:
    """The processor's seconds for so many requests."""
    return seconds_for(endpoint, repeat(body, count))


def seconds_for(endpoint: ReviewEndpoint, bodies: Iterable[bytes]) -> float:
    """The processor's seconds for these requests."""
    began = time.process_time()
    for body in bodies:
        scope = {
            "method": "POST",
            "path": "/v1/admit",
            "query_string": b"timeout=3s",
            "headers": HEADERS,
            "received_at": time.monotonic(),
        }
        answer = endpoint.respond(scope, body)
        assert isinstance(answer, tuple)
        assert answer[0] == 200
    return time.process_time() - began


def interval(shares: Sequence[float]) -> tuple[float, float, float]:
    """The median, and the bounds between which it lies with a probability of 95 %.

    By order statistics: of n values, the binomial's normal approximation (ranks n/2 ± 0.98 √n).
    """
    ranked = sorted(shares)
    reach = 0.98 * math.sqrt(len(ranked))
    first = max(0, math.floor(len(ranked) / 2 - reach))
    last = min(len(ranked) - 1, math.ceil(len(ranked) / 2 + reach))
    return ranked[first], statistics.median(ranked), ranked[last]


def interval_text(shares: Sequence[float]) -> str:
    """For people."""
    first, middle, last = interval(shares)
    return f"{middle:+.2%} (95 %: {first:+.2%} to {last:+.2%}; {len(shares)} slices)"


Ways = dict[str, list[float]]


class Way:
    """A process that answers without tracing (``plain``), or with none (``none``) or all sampled."""

    def __init__(self, name: str, checkout: Path, collector: str) -> None:
        seed = {"PYTHONHASHSEED": "0"}
        arguments = ["--way", name, "--collector", collector] if collector else ["--plain", "0"]
        self._process = subprocess.Popen(
            [sys.executable, Path(__file__).resolve(), *arguments],
            cwd=checkout,
            env={**os.environ, "PYTHONPATH": str(checkout), **seed},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self) -> float:
        """The processor's seconds of one more slice."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def end(self) -> None:
        """Stops reading."""
        self._process.communicate()


def in_turn(base: Way, others: dict[str, Way], rounds: int) -> Ways:
    """Returns the additional cost of each other way over ``base``, round by round."""
    found: Ways = {name: [] for name in others}
    every = [("", base), *others.items()]
    for _, way in every:
        for _ in range(WARM_UP):
            way.seconds()
    drawn = random.Random(0)
    for _ in range(rounds):
        drawn.shuffle(every)
        taken = {name: way.seconds() for name, way in every}
        for name, shares in found.items():
            shares.append(taken[name] / taken[""] - 1)
    for _, way in every:
        way.end()
    return found


def main(rounds: int, checkout: Path | None) -> None:
    """Print the shares."""
    from tests.collector import Collector  # noqa: PLC0415  # not for the processes that answer

    here, sets = ROOT.parent, []
    with Collector("--silent") as collector:
        address = collector.grpc.split(":")[-1]
        for _ in range(SETS):
            if checkout is None:
                base = Way("plain", here, address)
                names = ("plain", "none", "all")
                others = {WORDS[name]: Way(name, here, address) for name in names}
            else:
                base = Way("plain", checkout, "")
                others = {
                    name: Way("plain", here, "") for name in ("this code", "the same code again")
                }
            sets.append(in_turn(base, others, rounds // SETS))
    for name in sets[0]:
        pooled = [share for found in sets for share in found[name]]
        each = ", ".join(f"{statistics.median(found[name]):+.2%}" for found in sets)
        print(f"{name}: {interval_text(pooled)}; sets {each}")
    if checkout is None:
        hundredth = [
            free + (whole - free) / 100
            for found in sets
            for free, whole in zip(found[WORDS["none"]], found[WORDS["all"]], strict=True)
        ]
        print(f"1 in 100, of these: {interval_text(hundredth)}")
    print(f"load: {Path('/proc/loadavg').read_text().strip()}")


WORDS = {
    "plain": "without tracing again",
    "none": "none sampled",
    "all": "all, and sent",
}


def slices(way: str, collector: str) -> None:
    """Processor time of a slice, each when a line of standard input asks for it; traces are sent."""
    registry, log = Registry(), _log()
    decoding = Decoding(body_max=BODY_MAX)
    body = (ROOT / "bodies" / "pod.json").read_bytes()
    endpoint: ReviewEndpoint
    tracer = delivery = None
    if way == "plain":
        endpoint = endpoint_over(POLICIES, decoding)
    else:
        from webhook.server.traced import TracedEndpoint  # noqa: PLC0415  # as a replica: if asked
        from webhook.serving.trace import CurrentTrace, Tracing  # noqa: PLC0415
        from webhook.telemetry.context import SampledTracer  # noqa: PLC0415
        from webhook.telemetry.delivery import CollectorAddress, make_delivery  # noqa: PLC0415
        from webhook.telemetry.messages import resource_of  # noqa: PLC0415
        from webhook.telemetry.traces import traces_message  # noqa: PLC0415

        address = CollectorAddress("grpc", tls=False, host="127.0.0.1", port=int(collector))
        delivery = make_delivery(address)
        resource = resource_of({"service.name": "waddle", "k8s.pod.name": "waddle-webhook-1"})
        million = 1_000_000 if way == "all" else 0
        tracer, current = SampledTracer(million, per_second_max=10**9), CurrentTrace()
        admission = Admission(serving(), AdmissionOptions(10.0), registry, log, current=current)
        endpoint = TracedEndpoint(
            admission,
            registry,
            log,
            decoding=decoding,
            tracing=Tracing(tracer, current),
        )
    gc.freeze()  # as a replica once its policies are loaded: what is loaded is not looked at again
    while sys.stdin.readline():
        taken = slice_seconds(endpoint, body)
        if tracer is not None and delivery is not None and (traces := tracer.take(10**6)):
            began = time.process_time()
            delivery.send("traces", traces_message(resource, traces))
            taken += time.process_time() - began
        print(taken, flush=True)
    if delivery is not None:
        delivery.close()
    decoding.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", nargs="?", type=int, default=ROUNDS)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--way", choices=WORDS)
    parser.add_argument("--collector", default="")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT")
    arguments = parser.parse_args()
    if arguments.plain or arguments.way:
        slices(arguments.way or "plain", arguments.collector)
    else:
        main(arguments.rounds, arguments.against and arguments.against.resolve())
