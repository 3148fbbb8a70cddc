"""What exceptions and groups cost a review's CPU: ``python -m loadtest.exceptions [--quick]``.

From the body to the answer's bytes, without TLS and HTTP, so that shares are larger than a
replica's: 12 constraints, and the same beside 1,000 exceptions from them; then 12 constraints in
four groups of three beside the same 12 alone. Slices of each take turns in an order drawn anew, and
it prints the medians of their differences. Exit code 1 where a goal of exceptions is missed; ``--save``
writes ``results/exceptions.md``, and a JSON beside it.
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import random
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from loadtest.bench.machine import describe
from loadtest.bench.policies import read, write
from loadtest.telemetry.review import (
    BODY_MAX,
    REQUESTS,
    WARM_UP,
    endpoint_over,
    slice_seconds,
)
from loadtest.traces import BODIES
from tests import policies
from tests.programs import ROOT
from webhook.server.decoding import Decoding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.server.endpoint import ReviewEndpoint

EXCEPTIONS: Final = 1000
PLACES: Final = 25
"""Namespaces that they are spread over, that of the bodies among them."""

CONFORMING_MAX: Final = 0.02
"""Of what a conforming request takes without exceptions."""
VIOLATING_MAX_US: Final = 20.0

MEMBERS: Final = 3
"""Of a group."""

FULL, QUICK = 1400, 100
"""Slices of each."""

RESULTS: Final = ROOT / "loadtest" / "results" / "exceptions"

GOOD, BAD = "pod.json", "pod_bad.json"
PLACE: Final = "payments"
"""The namespace of the bodies."""

Json = dict[str, Any]


class Cost(NamedTuple):
    """Medians of a request, in microseconds: beside what, and how much more."""

    before: float
    more: float

    @property
    def share(self) -> float:
        """Of what it was."""
        return self.more / self.before


def exceptions(constraints: Sequence[Json], *, of_bodies: bool) -> list[Json]:
    """A thousand: by name and by pattern; one in 25 is in the bodies' namespace.

    With ``of_bodies`` those there are about what the bodies are, and excuse all of it.
    """
    made = []
    for number in range(EXCEPTIONS):
        one = constraints[number // PLACES % len(constraints)]
        of = f"{one['kind']}/{one['metadata']['name']}"
        is_here = number % PLACES == 0
        pattern = f"app-{number}-*" if number % 2 else f"app-{number}"
        match = {"name": "checkout-*" if is_here and of_bodies else pattern}
        place = PLACE if is_here else f"team-{number % PLACES}"
        made.append(policies.exception(f"e{number}", of, namespace=place, match=match))
    return made


def grouped(constraints: Sequence[Json]) -> list[Json]:
    """The same constraints as members of groups, all of which must accept."""
    made: list[Json] = []
    for first in range(0, len(constraints), MEMBERS):
        chosen = constraints[first : first + MEMBERS]
        members = {
            f"m{number}": {"kind": one["kind"], "parameters": one["spec"].get("parameters", {})}
            for number, one in enumerate(chosen)
        }
        kinds = [{"apiGroups": ["", "apps"], "kinds": ["Pod", "Deployment"]}]
        spec = {
            "match": {"kinds": kinds, "excludedNamespaces": ["kube-system"]},
            "members": members,
            "expression": " && ".join(f"{name}()" for name in members),
        }
        version = "waddle.dev/v1alpha1"
        metadata = {"name": f"g{first}"}
        made.append(
            {"apiVersion": version, "kind": "ConstraintGroup", "metadata": metadata, "spec": spec}
        )
    return made


def cost(before: ReviewEndpoint, after: ReviewEndpoint, body: bytes, slices: int) -> Cost:
    """Returns the cost of a request before, and the additional cost after."""
    sides = [before, after]
    for side in sides:
        for _ in range(WARM_UP):
            slice_seconds(side, body)
    drawn = random.Random(0)
    taken: list[tuple[float, float]] = []
    for _ in range(slices):
        order = drawn.sample((0, 1), 2)
        one = {at: slice_seconds(sides[at], body) for at in order}
        taken.append((one[0], one[1]))
    scale = 1e6 / REQUESTS
    return Cost(
        statistics.median(first for first, _ in taken) * scale,
        statistics.median(second - first for first, second in taken) * scale,
    )


def main() -> int:
    """Measure and print; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="some of the slices")
    parser.add_argument("--save", action="store_true", help="write results/exceptions.md")
    options = parser.parse_args()
    slices = QUICK if options.quick else FULL
    gc.disable()
    templates, constraints = read("p12")
    opened = copy.deepcopy(constraints)
    for one in opened:
        one["metadata"]["annotations"] = {"waddle.dev/exceptions": "all"}
    good, bad = ((BODIES / name).read_bytes() for name in (GOOD, BAD))
    decoding = Decoding(body_max=BODY_MAX)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def served(name: str, documents: Sequence[Json]) -> ReviewEndpoint:
            return endpoint_over(write(folder / name, templates, documents), decoding)

        plain = served("plain", opened)
        others = served("others", [*opened, *exceptions(opened, of_bodies=False)])
        excusing = served("excusing", [*opened, *exceptions(opened, of_bodies=True)])
        alone, groups = served("alone", constraints), served("groups", grouped(constraints))
        rows = [
            Row("a conforming request", cost(plain, others, good, slices), CONFORMING_MAX),
            Row(
                "a violating request that none is about",
                cost(plain, others, bad, slices),
                more_max_us=VIOLATING_MAX_US,
            ),
            Row(
                "a violating request that one excuses",
                cost(plain, excusing, bad, slices),
                more_max_us=VIOLATING_MAX_US,
            ),
            Row(IN_GROUPS, cost(alone, groups, good, slices)),
        ]
    decoding.stop()
    text = page(rows)
    print(text)
    if options.save:
        RESULTS.with_suffix(".md").write_text(text)
        RESULTS.with_suffix(".json").write_text(as_json(rows))
    return 0 if all(row.holds for row in rows) else 1


IN_GROUPS: Final = f"a conforming request, the constraints in groups of {MEMBERS}"


class Row(NamedTuple):
    """A measurement and its limits."""

    title: str
    cost: Cost
    share_max: float | None = None
    more_max_us: float | None = None

    @property
    def holds(self) -> bool:
        """Whether it is within its goal."""
        within_share = self.share_max is None or self.cost.share <= self.share_max
        return within_share and (self.more_max_us is None or self.cost.more <= self.more_max_us)

    @property
    def goal(self) -> str:
        """For people."""
        if self.share_max is not None:
            return f"at most {self.share_max:.0%}"
        return "" if self.more_max_us is None else f"at most {self.more_max_us:g} µs"


def page(rows: Sequence[Row]) -> str:
    """The result for people."""
    machine = "".join(f"| {name} | {value} |\n" for name, value in describe().items())
    table = "\n".join(
        f"| {row.title} | {row.cost.before:.0f} µs | {row.cost.more:+.1f} µs "
        f"| {row.cost.share:+.1%} | {row.goal} "
        f"| {('holds' if row.holds else 'missed') if row.goal else ''} |"
        for row in rows
    )
    return f"""# Exceptions and groups

Written by `make bench-exceptions`.

| machine | |
|---|---|
{machine}
CPU of a review from the body to the answer's bytes, without TLS and HTTP: 12 constraints alone, and beside {EXCEPTIONS:,} exceptions from them in {PLACES} namespaces; then the same constraints in groups. Medians of slices that take turns.

| | before | more | of it | goal | |
|---|---|---|---|---|---|
{table}
"""


def as_json(rows: Sequence[Row]) -> str:
    """The result for programs."""
    documents = [
        {"title": row.title, "before_us": row.cost.before, "more_us": row.cost.more} for row in rows
    ]
    return json.dumps(
        {"machine": describe(), "exceptions": EXCEPTIONS, "rows": documents}, indent=1
    )


if __name__ == "__main__":
    raise SystemExit(main())
