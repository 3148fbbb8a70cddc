"""How far it scales at the real API server: ``python -m loadtest.scale [--quick] [--save]``.

- ``audit``: 100,000 Pods in 2,000 namespaces, half of which violate the twelve constraints of
  ``policies/p12``. An audit's memory and CPU at a quarter, a half and all of them.
- ``replicas``: 10, 25 and 50 replicas in one cluster. What they write after a change of a
  constraint, and while nothing changes.

Exit code 1 where a goal is missed: a peak of at most 256 MiB; CPU for each Pod, and writes for each
replica, at most a tenth more in the largest than in the smallest; no write at rest.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import functools
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from loadtest.audit import pods
from loadtest.audit.__main__ import SWEEP_SECONDS_MAX, figures_of, install, waddle
from loadtest.audit.auditor import auditing
from loadtest.bench import policies
from loadtest.bench.goals import Verdict
from loadtest.bench.machine import describe
from loadtest.bench.measurement import say
from loadtest.bench.servers import Cores
from loadtest.cluster.stages import applied, constraint_path, site
from loadtest.curves.cluster import Writes, await_rest
from tests.cluster import Cluster
from tests.patience import until
from tests.programs import ROOT, build
from tests.system.replicas import TEMPLATES

if TYPE_CHECKING:
    from loadtest.cluster.servers import Server

RESULTS: Final = ROOT / "loadtest" / "results" / "scale.md"
PEAK_MIB_MAX: Final = 256.0
GROWTH_MAX: Final = 1.1
SWEEPS: Final = 3
"""The first fills caches; the next two are what a cluster pays."""

FOLLOWED_SECONDS_MAX: Final = 900.0

TOGETHER: Final = 5
"""Replicas that start at a time, on the one core that all have; 50 at once only wait for each other."""


class Plan(NamedTuple):
    """The sizes of a run."""

    pods: tuple[int, ...]
    spaces: int
    replicas: tuple[int, ...]
    rest_seconds: float


FULL: Final = Plan((25_000, 50_000, 100_000), 2_000, (10, 25, 50), 60.0)
QUICK: Final = Plan((1_000, 2_000, 4_000), 80, (2, 4), 10.0)


class Audited(NamedTuple):
    """An audit of so many Pods: CPU of the first and of a later sweep in seconds, peak in MiB."""

    pods: int
    first_cpu: float
    later_cpu: float
    peak_mib: float

    @property
    def first_of_pod(self) -> float:
        """Returns the CPU of the first sweep in microseconds a Pod."""
        return self.first_cpu / self.pods * 1e6


class Replicated(NamedTuple):
    """So many replicas: writes of all of them after a change, and at rest."""

    replicas: int
    change_writes: int
    rest_writes: int
    ready_seconds: float
    rss_mib: float

    @property
    def writes_each(self) -> float:
        """Returns the writes of one replica after a change."""
        return self.change_writes / self.replicas


def audits(folder: Path, plan: Plan, cores: Cores) -> list[Audited]:
    """Audits one cluster as it grows."""
    cluster = Cluster.start(build("testcluster"), folder)
    try:
        install(cluster.api)
        _enforce_by_audit(cluster, cores.server)
        found: list[Audited] = []
        made = 0
        for count in plan.pods:
            began = time.monotonic()
            pods.fill(cluster.kubeconfig, made, count, plan.spaces)
            say(f"{count - made:,} Pods more in {time.monotonic() - began:.0f} s")
            made = count
            with auditing(*waddle(cluster), cores.server) as auditor:
                auditor.wait_started(SWEEPS + 1, SWEEP_SECONDS_MAX * 2)
                measured = figures_of(auditor, skip=1)
            found.append(
                Audited(
                    count,
                    measured["first_cpu_seconds"],
                    measured["cpu_seconds"],
                    measured["peak_mib"],
                )
            )
            say(str(found[-1]))
        return found
    finally:
        cluster.kill()


def _enforce_by_audit(cluster: Cluster, core: int) -> None:
    """Applies the twelve policies; a process of ours makes their kinds."""
    api = cluster.api
    templates, constraints = policies.read("p12")
    for one in templates:
        api.apply(f"{TEMPLATES}/{one['metadata']['name']}", one)
    name, command, environment = waddle(cluster)
    operations = ("--operation=generate", "--operation=status")
    with auditing(name, [*command, *operations], environment, core):
        for one in constraints:
            path = constraint_path(one)
            until(functools.partial(applied, api, path, one), path, FOLLOWED_SECONDS_MAX)


def replicas(folder: Path, plan: Plan, cores: Cores) -> list[Replicated]:
    """Starts more and more replicas in one cluster."""
    templates, constraints = policies.read("p12")
    found: list[Replicated] = []
    with site(folder, cores) as made:
        made.enforce(templates, constraints)
        writes = Writes(made.plane.audit_log)
        for number, count in enumerate(plan.replicas):
            with contextlib.ExitStack() as stack:
                servers: list[Server] = []
                while len(servers) < count:
                    together = min(TOGETHER, count - len(servers))
                    batch = [stack.enter_context(made.start("waddle")) for _ in range(together)]
                    for server in batch:
                        server.wait_ready()
                    servers += batch
                await_rest(writes, "waddle")
                before = writes.count("waddle")
                changed = copy.deepcopy(constraints[1])
                changed["spec"]["parameters"]["cpu"] = str(3 + number)
                made.plane.api.apply(constraint_path(changed), changed)
                await_rest(writes, "waddle")
                after = writes.count("waddle")
                time.sleep(plan.rest_seconds)
                found.append(
                    Replicated(
                        count,
                        after - before,
                        writes.count("waddle") - after,
                        max(server.ready_seconds for server in servers),
                        max(server.rss_mib for server in servers),
                    )
                )
            say(str(found[-1]))
    return found


def verdicts(audited: list[Audited], replicated: list[Replicated]) -> list[Verdict]:
    """Judges a run."""
    first, last = audited[0], audited[-1]
    growth = "of the largest cluster, of that of the smallest"
    return [
        Verdict(
            f"peak memory of an audit of {last.pods:,} Pods, MiB",
            max(one.peak_mib for one in audited),
            PEAK_MIB_MAX,
            "at most",
        ),
        Verdict(
            f"CPU for each Pod in the first sweep {growth}",
            last.first_of_pod / first.first_of_pod,
            GROWTH_MAX,
            "at most",
        ),
        Verdict(
            f"CPU for each Pod in a later sweep {growth}",
            (last.later_cpu / last.pods) / (first.later_cpu / first.pods),
            GROWTH_MAX,
            "at most",
        ),
        Verdict(
            f"writes of a replica after a change, among {replicated[-1].replicas}, of those among "
            f"{replicated[0].replicas}",
            replicated[-1].writes_each / replicated[0].writes_each,
            GROWTH_MAX,
            "at most",
        ),
        Verdict("writes at rest", max(one.rest_writes for one in replicated), 0.0, "at most"),
    ]


def page(
    plan: Plan, audited: list[Audited], replicated: list[Replicated], judged: list[Verdict]
) -> str:
    """Returns the results as a page."""
    machine = "".join(f"| {name} | {value} |\n" for name, value in describe().items())
    goals = "".join(
        f"| {one.goal} | {one.measured:.3g} | {one.bound:g} | {'met' if one.met else '**not met**'} |\n"
        for one in judged
    )
    audit_rows = "".join(
        f"| {one.pods:,} | {one.first_cpu:.1f} | {one.first_of_pod:.0f} | {one.later_cpu:.1f} "
        f"| {one.later_cpu / one.pods * 1e6:.0f} | {one.peak_mib:.0f} |\n"
        for one in audited
    )
    replica_rows = "".join(
        f"| {one.replicas} | {one.change_writes} | {one.writes_each:.1f} | {one.rest_writes} "
        f"| {one.ready_seconds:.1f} | {one.rss_mib:.0f} |\n"
        for one in replicated
    )
    return f"""# How far it scales

Written by `make bench-scale`, at one real API server. All processes of Waddle are on one core, the API
server on another.

| machine | |
|---|---|
{machine}
| goal | measured | at most | |
|---|---|---|---|
{goals}
## An audit

The twelve constraints of `loadtest/policies/p12`; Pods in {plan.spaces:,} namespaces, half of which
violate. Nothing changes from the first sweep to the later ones.

| Pods | first sweep, CPU s | a Pod, µs | a later sweep, CPU s | a Pod, µs | peak, MiB |
|---|---|---|---|---|---|
{audit_rows}
## Replicas

The same twelve. Writes of all replicas after one constraint changed, and in {plan.rest_seconds:.0f} s
without a change, by the API server's audit log.

| replicas | writes after a change | of each | at rest | slowest start, s | memory of the largest, MiB |
|---|---|---|---|---|---|
{replica_rows}"""


def main() -> int:
    """Measures and prints; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.scale", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a twenty-fifth of it")
    parser.add_argument("--save", action="store_true", help="write results/scale.md")
    options = parser.parse_args()
    plan, cores = (QUICK if options.quick else FULL), Cores.of_this_machine()
    with tempfile.TemporaryDirectory(prefix="waddle-scale-") as scratch:
        for name in ("audited", "replicas"):
            (Path(scratch) / name).mkdir()
        replicated = replicas(Path(scratch) / "replicas", plan, cores)
        audited = audits(Path(scratch) / "audited", plan, cores)
    judged = verdicts(audited, replicated)
    text = page(plan, audited, replicated, judged)
    print(text)
    if options.save:
        RESULTS.write_text(text)
    return 0 if all(one.met for one in judged) else 1


if __name__ == "__main__":
    raise SystemExit(main())
