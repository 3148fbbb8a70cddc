"""How soon an expiry is in force on three replicas: ``python -m loadtest.expiry [--quick] [--save]``.

Three replicas follow one real API server. An exception excuses a ConfigMap on all of them until its
``expires``. Around that moment each replica reviews the ConfigMap again and again. The figure is the
time from ``expires`` to the answer of the last replica that denies. Nobody writes the exception or
its policies meanwhile. Exit code 1 where the goal is missed; ``--save`` writes
``results/expiry.md``, and a JSON beside it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from loadtest.bench.machine import describe
from loadtest.bench.measurement import say
from loadtest.bench.servers import Cores
from loadtest.cluster.servers import Server
from loadtest.cluster.stages import site
from tests import policies
from tests.patience import until
from tests.programs import ROOT
from tests.system.replicas import constraint, template
from webhook.api.timestamp import text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadtest.cluster.stages import Site

RESULTS: Final = ROOT / "loadtest" / "results" / "expiry"

REPLICAS: Final = 3
LATEST_SECONDS_MAX: Final = 1.0
"""From the expiry to the answer of the last replica."""

FULL, QUICK = 10, 2
"""Exceptions, one after another."""

VALID_SECONDS: Final = 6
"""The validity of an exception: long enough for every replica to apply it first."""

KIND, NAME, WORD = "Excepted", "excepted", "excepted"
PATH: Final = "/apis/waddle.dev/v1alpha1/clusterpolicyexceptions"

DENIED_SECONDS_MAX, POLL_SECONDS = 60.0, 0.005


class Expiry(NamedTuple):
    """The seconds from one expiry to the first denial of each replica."""

    seconds: tuple[float, ...]

    @property
    def latest(self) -> float:
        """Returns the seconds until the last replica denied."""
        return max(self.seconds)


def expiries(made: Site, count: int) -> list[Expiry]:
    """Measures so many exceptions; raises RuntimeError where a replica never applies one."""
    policy = constraint(NAME, WORD, KIND)
    policy["metadata"]["annotations"] = {"waddle.dev/exceptions": "all"}
    made.enforce([template(KIND)], [policy])
    with ExitStack() as stack:
        servers = [stack.enter_context(made.start("waddle")) for _ in range(REPLICAS)]
        pool = stack.enter_context(ThreadPoolExecutor(REPLICAS))
        list(pool.map(Server.wait_ready, servers))
        until(lambda: all(one.ask(WORD) is True for one in servers), "every replica denies")
        found = []
        for number in range(count):
            ends = _excused(made, servers, f"short-{number}")
            time.sleep(max(0.0, ends - 0.1 - time.time()))
            waits = pool.map(lambda one, ends=ends: _denied_after(one, ends), servers)
            found.append(Expiry(tuple(waits)))
            say(str(found[-1]))
        return found


def _excused(made: Site, servers: Sequence[Server], name: str) -> int:
    """Makes an exception that every replica applies; returns its end as a Unix time in seconds."""
    valid = VALID_SECONDS
    while valid < DENIED_SECONDS_MAX:
        ends = int(time.time()) + valid
        of = f"{KIND}/{NAME}"
        match = {"name": "probe"}
        document = policies.exception(name, of, match=match, expires=text_of(ends))
        made.plane.api.apply(f"{PATH}/{name}", document)
        while time.time() < ends - 1:
            if all(one.ask(WORD) is False for one in servers):
                return ends
            time.sleep(POLL_SECONDS)
        valid *= 2
    raise RuntimeError(f"replicas do not apply the exception {name}")


def _denied_after(server: Server, ends: float) -> float:
    """Returns the seconds from the end of an exception to the replica's first denial.

    Raises RuntimeError at a denial before the end, or if there is none.
    """
    while time.time() < ends + DENIED_SECONDS_MAX:
        if server.ask(WORD) is True:
            seconds = time.time() - ends
            if seconds < 0:
                raise RuntimeError(f"{server.pod} denied {-seconds:.3f} s before the end")
            return seconds
        time.sleep(POLL_SECONDS)
    raise RuntimeError(f"{server.pod} never denied")


def page(found: Sequence[Expiry], latest: float) -> str:
    """Returns the result for people."""
    machine = "".join(f"| {name} | {value} |\n" for name, value in describe().items())
    median = statistics.median(one.latest for one in found)
    verdict = "holds" if latest <= LATEST_SECONDS_MAX else "missed"
    return f"""# The expiry of an exception

Written by `make bench-exceptions`.

| machine | |
|---|---|
{machine}
{REPLICAS} replicas at one real API server, {len(found)} exceptions one after another. From `expires` to the first denial of the last replica, without a write; each replica is asked every few milliseconds.

| | median | largest | goal, at most | |
|---|---|---|---|---|
| the last of {REPLICAS} replicas denies | {median:.3f} s | {latest:.3f} s | {LATEST_SECONDS_MAX:g} s | {verdict} |
"""


def main() -> int:
    """Measures and prints; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.expiry", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few exceptions")
    parser.add_argument("--save", action="store_true", help="write results/expiry.md")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="waddle-expiry-") as scratch,
        site(Path(scratch), Cores.of_this_machine()) as made,
    ):
        found = expiries(made, QUICK if options.quick else FULL)
    latest = max(one.latest for one in found)
    text = page(found, latest)
    print(text)
    if options.save:
        RESULTS.with_suffix(".md").write_text(text)
        median = statistics.median(one.latest for one in found)
        result = {
            "machine": describe(),
            "replicas": REPLICAS,
            "exceptions": len(found),
            "median_seconds": median,
            "latest_seconds": latest,
        }
        RESULTS.with_suffix(".json").write_text(json.dumps(result, indent=1))
    return 0 if latest <= LATEST_SECONDS_MAX else 1


if __name__ == "__main__":
    raise SystemExit(main())
