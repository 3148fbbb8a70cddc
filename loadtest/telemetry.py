"""What tracing costs an admission's CPU: ``python -m loadtest.telemetry [ROUNDS]``.

One process answers the same review (12 policies, from the body to the answer's bytes, without TLS
and HTTP, so that the shares are larger than a replica's) without tracing, with 1 in 100 sampled and
with all, in turn, and sends what is sampled to a collector of another process; processor time is counted. A share is
the median of many short slices, each beside one without tracing, and is told with the interval that
holds it in 95 of 100 runs: by ranks alone, whatever else the machine does. ``--against CHECKOUT``
compares this code without tracing with another's (one from before there was any), two processes that
take turns; ``--plain`` is one of them.
"""

import argparse
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
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

ROOT = Path(__file__).parent
REQUESTS = 20
"""In a slice: some thousandths of a second, so that what else the machine does meets all alike, and
there are many."""

ROUNDS = 1500
"""With the noise of a busy machine, a tenth for a slice, the interval is half a hundredth wide."""

HEADERS = [
    (b"host", b"waddle-webhook-service.waddle-system.svc:443"),
    (b"user-agent", b"kube-apiserver-admission"),
    (b"accept", b"application/json, */*"),
    (b"content-type", b"application/json"),
    (b"accept-encoding", b"gzip"),
]


def _log() -> Logger:
    return Log(lambda _: None).logger("loadtest")


def serving() -> Serving:
    """Policies in force."""
    found, registry = Serving(), Registry()
    loader = PolicyLoader(
        Client(targets=[AdmissionTarget()], drivers=[CelDriver(), RegoDriver()]),
        (ROOT / "policies" / "p12",),
        found,
        registry=registry,
        log=_log(),
        retries=0,
    )
    loader.load()
    return found


def slice_seconds(endpoint: ReviewEndpoint, body: bytes, count: int = REQUESTS) -> float:
    """The processor's seconds for so many requests."""
    began = time.process_time()
    for _ in range(count):
        scope = {
            "method": "POST",
            "path": "/v1/admit",
            "query_string": b"timeout=3s",
            "headers": HEADERS,
            "received_at": time.monotonic(),
        }
        answer = endpoint.respond(scope, body)
        assert answer is not None
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


def told(shares: Sequence[float]) -> str:
    """For people."""
    first, middle, last = interval(shares)
    return f"{middle:+.2%} (95 %: {first:+.2%} to {last:+.2%}; {len(shares)} slices)"


def against(checkout: Path, rounds: int) -> None:
    """This code beside another's, both without tracing."""

    def start(folder: Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, Path(__file__).resolve(), "--plain", str(2 * rounds + 2)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder), "PYTHONHASHSEED": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(process: subprocess.Popen[str]) -> float:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        return float(process.stdout.readline())

    ours, same, other = (start(folder) for folder in (ROOT.parent, ROOT.parent, checkout))
    found: dict[str, list[float]] = {"this code": [], "the same code again": []}
    for _ in range(rounds):
        before, taken, again, after = ask(other), ask(ours), ask(same), ask(other)
        found["this code"].append(2 * taken / (before + after) - 1)
        found["the same code again"].append(2 * again / (before + after) - 1)
    for process in (ours, same, other):
        process.communicate()
    for name, shares in found.items():
        print(f"{name}, beside {checkout}: {told(shares)}")


def plain(rounds: int) -> None:
    """Slices without tracing, each when a line of standard input asks for it."""
    registry, log = Registry(), _log()
    admission = Admission(serving(), AdmissionOptions(), registry, log)
    decoding = Decoding(body_max=40 * 1024 * 1024)
    endpoint = ReviewEndpoint(admission, registry, log, decoding=decoding)
    body = (ROOT / "bodies" / "pod.json").read_bytes()
    slice_seconds(endpoint, body)
    for _ in range(rounds):
        if not sys.stdin.readline():
            break
        print(slice_seconds(endpoint, body), flush=True)
    decoding.stop()


def main(rounds: int) -> None:
    """Print the shares."""
    from tests.collector import Collector as Receiver  # noqa: PLC0415  # not for --plain
    from webhook.server.traced import TracedEndpoint  # noqa: PLC0415
    from webhook.serving.trace import CurrentTrace, Tracing  # noqa: PLC0415
    from webhook.telemetry.context import SampledTracer  # noqa: PLC0415
    from webhook.telemetry.delivery import CollectorAddress, make_delivery  # noqa: PLC0415
    from webhook.telemetry.messages import resource_of, traces_message  # noqa: PLC0415

    registry, log, policies = Registry(), _log(), serving()
    body = (ROOT / "bodies" / "pod.json").read_bytes()
    decoding = Decoding(body_max=40 * 1024 * 1024)
    resource = resource_of({"service.name": "waddle", "k8s.pod.name": "waddle-webhook-1"})
    with Receiver("--silent") as receiver:
        delivery = make_delivery(
            CollectorAddress(
                "grpc", tls=False, host="127.0.0.1", port=int(receiver.grpc.split(":")[-1])
            )
        )
        off = ReviewEndpoint(
            Admission(policies, AdmissionOptions(), registry, log), registry, log, decoding=decoding
        )

        def traced(per_million: int) -> tuple[TracedEndpoint, SampledTracer]:
            tracer, current = SampledTracer(per_million, per_second_max=10**9), CurrentTrace()
            admission = Admission(policies, AdmissionOptions(), registry, log, current=current)
            tracing = Tracing(tracer, current)
            return (
                TracedEndpoint(admission, registry, log, decoding=decoding, tracing=tracing),
                tracer,
            )

        ways = {"none sampled": traced(0), "1 in 100": traced(10_000), "all": traced(1_000_000)}
        shares: dict[str, list[float]] = {name: [] for name in ways}
        bases, sent = [], []
        for number in range(rounds + 1):
            before = slice_seconds(off, body)
            for name, (endpoint, _) in ways.items():
                taken = slice_seconds(endpoint, body)
                after = slice_seconds(off, body)
                if number:  # the first round warms up
                    shares[name].append(2 * taken / (before + after) - 1)
                bases.append(after)
                before = after
            ways["1 in 100"][1].take(10**6)
            traces = ways["all"][1].take(10**6)
            began = time.process_time()
            delivery.send("traces", traces_message(resource, traces))
            sent.append((time.process_time() - began) / len(traces))
        delivery.close()
    decoding.stop()
    base, sending = statistics.median(bases) / REQUESTS, statistics.median(sent)
    print(
        f"without tracing: {base * 1e6:.1f} µs a request; to send a trace: {sending * 1e6:.1f} µs"
    )
    for name, found in shares.items():
        print(f"{name}: {told(found)}, before it is sent")
    none, every = interval(shares["none sampled"]), interval(shares["all"])
    first, middle, last = (
        free + (whole + sending / base) / 100 for free, whole in zip(none, every, strict=True)
    )
    print(f"1 in 100, by its parts and sent: {middle:+.2%} (95 %: {first:+.2%} to {last:+.2%})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", nargs="?", type=int, default=ROUNDS)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT")
    arguments = parser.parse_args()
    if arguments.plain:
        plain(arguments.rounds)
    elif arguments.against:
        against(arguments.against.resolve(), arguments.rounds)
    else:
        main(arguments.rounds)
