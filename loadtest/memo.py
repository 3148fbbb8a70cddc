"""What keeping results saves a review's CPU, and costs: ``python -m loadtest.memo [--quick] [--save]``.

From the body to the answer's bytes, without TLS and HTTP: the same requests to two endpoints over the
same policies, one with a memo. Slices take turns in an order drawn anew. No body is sent twice;
:mod:`loadtest.traces` says what each trace is. ``cold`` shows what the memo costs where it finds
nothing.

Told are medians of slices' CPU for a request and their ratio, and beside it that to a review by no
policies at all. Exit code 1 where ``cold`` is more than 3 % slower than without a memo.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from loadtest.bench.machine import describe
from loadtest.bench.policies import POLICIES
from loadtest.telemetry.review import BODY_MAX, REQUESTS, seconds_for
from loadtest.traces import Traces
from tests.programs import ROOT
from webhook.api.admission import decode_review
from webhook.constraint.client import Client
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.drivers.specialisation import Specialiser
from webhook.constraint.enforcement import WEBHOOK
from webhook.constraint.memo import Memo
from webhook.constraint.review import AugmentedReview
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.log import Log
from webhook.metrics.registry import Registry
from webhook.policies.loader import PolicyLoader
from webhook.server.admission import Admission, AdmissionOptions
from webhook.server.decoding import Decoding
from webhook.server.endpoint import ReviewEndpoint
from webhook.serving.revision import Serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.constraint.limits import Remembering

RESULTS: Final = ROOT / "loadtest" / "results" / "memo.md"
COLD_MAX: Final = 1.03
SETS: Final = ("p12", "p100")
WARM_UP: Final = 40
"""Slices before any is counted: code is specialised, what policies read is derived."""
FULL, QUICK = 150, 30
"""Slices of each trace."""
MEMO_BYTES: Final = 16 << 20


def endpoint(
    policies: Path, decoding: Decoding, memo: Remembering | None = None
) -> tuple[ReviewEndpoint, Serving]:
    """Returns an endpoint over a folder's policies, as in a replica but in this thread alone."""
    registry, log, serving = Registry(), Log(lambda _: None).logger("loadtest"), Serving()
    specialiser = Specialiser(lambda job: job(), evaluations=300)
    rego = RegoDriver(specialiser=specialiser)
    client = Client(targets=[AdmissionTarget()], drivers=[CelDriver(), rego])
    loader = PolicyLoader(client, (policies,), serving, registry=registry, log=log, retries=0)
    assert loader.load(), loader.faults()
    admission = Admission(serving, AdmissionOptions(10.0, memo=memo), registry, log)
    return ReviewEndpoint(admission, registry, log, decoding=decoding), serving


class Compared(NamedTuple):
    """Medians of a request's CPU in microseconds, and of the slices' ratios."""

    without: float
    with_memo: float
    ratio: float
    quartiles: tuple[float, float]
    of_bare: float
    known: float
    """The part of constraints that were not evaluated."""


def compare(policies: Path, bare: Path, trace: Iterator[bytes], slices: int) -> Compared:
    """A trace, with a memo and without."""
    decoding = Decoding(body_max=BODY_MAX)
    memo = Memo(MEMO_BYTES, lambda job: job(), key=b"a benchmark's")
    plainly, serving = endpoint(policies, decoding)
    sides = [plainly, endpoint(policies, decoding, memo)[0], endpoint(bare, decoding)[0]]
    drawn = random.Random(0)
    taken: list[tuple[float, float, float]] = []
    before = memo.counts
    for number in range(WARM_UP + slices):
        if number == WARM_UP:
            before = memo.counts
        bodies = [next(trace) for _ in range(REQUESTS)]
        order = drawn.sample((0, 1, 2), 3)
        one = {at: seconds_for(sides[at], bodies) / REQUESTS for at in order}
        if number >= WARM_UP:
            taken.append((one[0], one[1], one[2]))
    decoding.stop()
    low, middle, high = statistics.quantiles([kept / plain for plain, kept, _ in taken], n=4)
    plain, kept, least = (statistics.median(each) * 1e6 for each in zip(*taken, strict=True))
    assert serving.revision is not None
    value = AugmentedReview(decode_review(bodies[0]))
    matching = serving.revision.snapshot.review(value, enforcement_point=WEBHOOK).evaluated
    known = (memo.counts.hits - before.hits) / (slices * REQUESTS * matching)
    return Compared(plain, kept, middle, (low, high), kept / least, known)


def table(found: dict[tuple[str, str], Compared]) -> list[str]:
    """Returns the results as a table of a page."""
    lines = [
        "| policies | trace | without | with | ratio | quartiles | of no policies | not evaluated |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (policies, trace), one in found.items():
        low, high = one.quartiles
        lines.append(
            f"| {policies[1:]} constraints | {trace} | {one.without:.0f} µs | {one.with_memo:.0f} µs "
            f"| {one.ratio:.2f} | {low:.2f} to {high:.2f} | {one.of_bare:.2f} | {one.known:.0%} |"
        )
    return lines


_INTRODUCTION: Final = (
    "CPU of a review from the body to the answer's bytes, with a memo and without, over the same "
    "requests. Times are medians of slices. Of the slices' ratios it is the median, with its quartiles. "
    "Beside it stand the ratio to a review by no policies, and the part of constraints that were not "
    "evaluated. Made by `make bench-memo`; `loadtest/traces.py` says what each trace is."
)


def page(lines: list[str]) -> str:
    """The results file."""
    return "\n".join(
        (
            "# Results that are kept",
            "",
            _INTRODUCTION,
            "",
            f"Machine: {describe()}",
            "",
            *lines,
            "",
        )
    )


def main() -> int:
    """Measure and print; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="some of the slices")
    parser.add_argument("--save", action="store_true", help="write results/memo.md")
    arguments = parser.parse_args()
    slices = QUICK if arguments.quick else FULL
    gc.disable()
    found: dict[tuple[str, str], Compared] = {}
    with tempfile.TemporaryDirectory() as bare:
        for policies in SETS:
            for name in ("rollout", "updates", "mix", "cold"):
                trace = getattr(Traces(), name)()
                found[policies, name] = compare(POLICIES / policies, Path(bare), trace, slices)
                print(table({(policies, name): found[policies, name]})[-1], flush=True)
                gc.collect()
    if arguments.save:
        RESULTS.write_text(page(table(found)))
    is_held = all(one.ratio <= COLD_MAX for (_, name), one in found.items() if name == "cold")
    print("the goal holds" if is_held else f"cold reviews are more than {COLD_MAX - 1:.0%} slower")
    return 0 if is_held else 1


if __name__ == "__main__":
    raise SystemExit(main())
