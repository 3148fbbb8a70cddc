"""Beside Kyverno's admission controller: ``python -m loadtest.kyverno [--quick] [--save]``.

Kyverno runs as its chart has it, at a real API server, with ValidatingPolicies in CEL and with
ClusterPolicies of patterns (``loadtest/policies/kyverno``). Waddle has the same ValidatingPolicies,
and what `waddle migrate kyverno` makes of the ClusterPolicies. Both get the same reviews over TLS:
CPU of the process for each review, and latencies at a load that both can take. ``--save`` writes
``results/kyverno.json`` and ``kyverno.md``.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from loadtest import readme
from loadtest.bench import report
from loadtest.bench.load import Generator, ask
from loadtest.bench.machine import describe
from loadtest.bench.measurement import make_certificates, say
from loadtest.bench.policies import POLICIES
from loadtest.bench.servers import Cores, Server, floor, waddle
from loadtest.bytecode import compile_modules
from loadtest.kyverno.installation import Kyverno
from loadtest.traces import BODIES
from tests.cluster import Cluster
from tests.patience import until
from tests.programs import ROOT, ProgramUnavailableError, build
from webhook.api.gvk import name_of
from webhook.kyverno.conversion import converted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.api.shapes import Json

RESULTS: Final = ROOT / "loadtest" / "results"
CONNECTIONS: Final = 8
GOALS: Final = {1: 0.5, 12: 0.1}
"""CPU of a review by Waddle, of Kyverno's, by how many policies are about it. With one, most of both is
TLS and HTTP: a bare uvicorn application is measured beside it."""

SETS: Final = (("cel", 1), ("cel", 12), ("patterns", 1), ("patterns", 12))
NAMES: Final = {"cel": "ValidatingPolicy in CEL", "patterns": "ClusterPolicy of patterns"}
VERDICTS: Final = {"pod": "allowed", "pod_bad": "denied"}
WITHOUT_REPORTS: Final = "kyverno-without-reports"


@dataclass(frozen=True, slots=True)
class Plan:
    """Turns of each server and requests in each, and what of a fixed schedule: rounds, seconds."""

    rounds: int
    requests: int
    schedule: tuple[int, float]


FULL: Final = Plan(16, 100, (3, 4))
QUICK: Final = Plan(8, 50, (1, 4))


class Run:
    """The folder, cores and results of a run."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder, self.plan = folder, plan
        self.cores = Cores.of_this_machine()
        self.generator = Generator(self.cores.client)
        self.certificates = make_certificates(folder / "certificates")
        self.rows: list[dict[str, Any]] = []

    def ours(
        self, name: str, policies: Sequence[Json]
    ) -> contextlib.AbstractContextManager[Server]:
        """Waddle with these policies."""
        folder = self.folder / f"waddle-{name}-{len(policies)}"
        folder.mkdir()
        own = [made for one in policies for made in own_policies(one)]
        (folder / "policies.yaml").write_text(yaml.safe_dump_all(own))
        return waddle(
            folder,
            self.certificates,
            core=self.cores.server,
            log=self.folder / "waddle.log",
            flags=["--kyverno-policies=enforce", "--memo-bytes=0"],
        )

    def measure(self, kyverno: Kyverno, peers: Sequence[Server], name: str, count: int) -> None:
        """Measures a set of policies in all servers."""
        policies = policies_of(name)[:count]
        path = kyverno.apply(policies)
        with self.ours(name, policies) as server:
            servers = [server, *(_at_path(peer, path) for peer in peers)]
            self._decide_alike(servers, policies)
            for body, verdict in VERDICTS.items():
                row = {"policies": name, "count": count, "body": body}
                with contextlib.ExitStack() as stack:
                    compared = list(servers)
                    if count == 1 and verdict == "allowed":  # as it answers everything
                        bare = floor(
                            self.certificates,
                            core=self.cores.server,
                            log=self.folder / "floor.log",
                        )
                        compared.append(stack.enter_context(bare))
                    cpu = self._cpu(compared, BODIES / f"{body}.json", verdict)
                self.rows.append({**row, "cpu_ms": cpu})
                say(f"{name} {count} {body}: CPU {self.rows[-1]['cpu_ms']}")
            self.rows[-len(VERDICTS)] |= self._latencies(servers[:2])
            self.rows[-len(VERDICTS)]["rss_mib"] = {one.name: one.rss_mib() for one in servers}
        kyverno.delete(policies)

    def _decide_alike(self, servers: Sequence[Server], policies: Sequence[Json]) -> None:
        """Wait until each denies by all policies what breaks all, and allows what breaks none."""
        broken = self.folder / "broken.json"
        broken.write_text(json.dumps(breaking()))
        names = [name_of(one) for one in policies]

        def denies_by_all(server: Server) -> bool:
            message = ask(server, broken).get("status", {}).get("message", "")
            return all(name in message for name in names)

        for server in servers:
            until(lambda one=server: denies_by_all(one), f"{server.name} denies by {names}")
            for body in ("pod", "deployment"):
                answer = ask(server, BODIES / f"{body}.json")
                if not answer["allowed"]:
                    raise RuntimeError(f"{server.name} denies {body}: {answer}")

    def _cpu(self, servers: Sequence[Server], body: Path, expected: str) -> dict[str, float]:
        """Milliseconds of each process for a review: medians over turns."""
        for server in servers:  # Go's collector and Python's interpreter take some to be warm
            self.generator.count(
                server, body, connections=CONNECTIONS, requests=300, expected=expected
            )
        turns = self.generator.compare(
            servers,
            body,
            connections=CONNECTIONS,
            requests=self.plan.requests,
            rounds=self.plan.rounds,
            expected=expected,
        )
        return {
            server.name: statistics.median(turn[at]["own_cpu_us"] for turn in turns) / 1000
            for at, server in enumerate(servers)
        }

    def _latencies(self, servers: Sequence[Server]) -> dict[str, Any]:
        """Returns both latencies at half of the second one's throughput, as its offered load."""
        body, rounds = BODIES / "pod.json", self.plan.schedule[0]
        seconds = self.plan.schedule[1]
        full = self.generator.closed(
            servers[1], body, connections=CONNECTIONS, seconds=seconds / 2, expected="allowed"
        )
        rate = full["requests_per_second"] / 2
        found: dict[str, list[dict[str, Any]]] = {one.name: [] for one in servers}
        for _ in range(rounds):
            for server in servers:
                found[server.name].append(
                    self.generator.open(
                        server,
                        body,
                        connections=CONNECTIONS,
                        seconds=seconds,
                        rate=rate,
                        expected="allowed",
                    )
                )
        medians = {name: report.median(each) for name, each in found.items()}
        return {
            "rate": rate,
            **{
                figure: {name: one[figure] for name, one in medians.items()}
                for figure in ("p50_ms", "p99_ms")
            },
        }


def policies_of(name: str) -> list[Json]:
    """The policies of a file in ``loadtest/policies/kyverno``."""
    text = (POLICIES / "kyverno" / f"{name}.yaml").read_text()
    return list(yaml.safe_load_all(text))


def own_policies(policy: Json) -> list[Json]:
    """A policy as Waddle has it; raises RuntimeError where it cannot be written."""
    if policy["kind"] != "ClusterPolicy":
        return [policy]
    own = [made for _, made in converted(policy) if isinstance(made, dict)]
    if len(own) < len(policy["spec"]["rules"]):
        raise RuntimeError(f"{name_of(policy)} cannot be written in CEL")
    return own


def breaking() -> Json:
    """A review of a Pod that breaks every policy."""
    review: Json = copy.deepcopy(json.loads((BODIES / "pod.json").read_bytes()))
    pod = review["request"]["object"]
    del pod["metadata"]["labels"]["owner"]
    container = pod["spec"]["containers"][0]
    container["image"] = "elsewhere.example.org/app:latest"
    container["ports"][0]["hostPort"] = 8080
    container["securityContext"] = {"privileged": True, "allowPrivilegeEscalation": True}
    del container["resources"]
    pod["spec"]["hostNetwork"] = True
    pod["spec"]["securityContext"] = {"runAsUser": 0}
    pod["spec"]["volumes"].append({"name": "node", "hostPath": {"path": "/"}})
    return review


def _at_path(server: Server, path: str) -> Server:
    return replace(server, url=server.url.replace("/v1/admit", path))


def measure(plan: Plan) -> dict[str, Any]:
    """All figures. Raises ProgramUnavailableError."""
    compile_modules()
    with tempfile.TemporaryDirectory(prefix="waddle-kyverno-") as scratch:
        run = Run(Path(scratch), plan)
        cluster = Cluster.start(build("testcluster"), run.folder / "cluster")
        try:
            kyverno = Kyverno(run.folder, cluster, run.cores.server)
            _pin(cluster.pid, run.cores.client)
            with (
                kyverno.serving("kyverno") as chart,
                kyverno.serving(WITHOUT_REPORTS, ["--admissionReports=false"]) as bare,
            ):
                say("Kyverno serves")
                for name, count in SETS:
                    run.measure(kyverno, [chart, bare], name, count)
        finally:
            cluster.stop()
    machine = {**describe(), "kyverno": Path(kyverno.sources).name.partition("@")[2]}
    del machine["gatekeeper"]
    return {"command": "make bench-kyverno", "machine": machine, "rows": run.rows}


def _pin(pid: int, core: int) -> None:
    command = ["taskset", "--all-tasks", "--cpu-list", "--pid", str(core), str(pid)]
    subprocess.run(command, stdout=subprocess.DEVNULL, timeout=10, check=True)


def ratio(row: dict[str, Any], peer: str = WITHOUT_REPORTS) -> float:
    """CPU of Waddle, of a Kyverno's; the one without reports does no more than is compared."""
    return float(row["cpu_ms"]["waddle"] / row["cpu_ms"][peer])


def missed(result: dict[str, Any]) -> list[str]:
    """The goals that are not met, a line for each."""
    return [
        f"{row['count']} {NAMES[row['policies']]}, {row['body']}: {ratio(row):.3f}, "
        f"at most {GOALS[row['count']]:g}"
        for row in result["rows"]
        if ratio(row) > GOALS[row["count"]]
    ]


def page(result: dict[str, Any]) -> str:
    """The figures as a page."""
    rows = "".join(
        f"| {row['count']} {NAMES[row['policies']]} | {row['body']} "
        f"| {row['cpu_ms']['waddle']:.3f} ms | {row['cpu_ms']['kyverno']:.3f} ms "
        f"| {row['cpu_ms'][WITHOUT_REPORTS]:.3f} ms | {ratio(row, 'kyverno'):.3f} "
        f"| {ratio(row):.3f} | {GOALS[row['count']]:g} "
        f"| {'met' if ratio(row) <= GOALS[row['count']] else 'NOT MET'} |\n"
        for row in result["rows"]
    )
    bare = ", ".join(
        f"{row['cpu_ms']['floor']:.3f} ms" for row in result["rows"] if "floor" in row["cpu_ms"]
    )
    latencies = "".join(
        f"| {row['count']} {NAMES[row['policies']]} | {row['rate']:.0f} "
        f"| {row['p50_ms']['waddle']:.2f} ms | {row['p50_ms']['kyverno']:.2f} ms "
        f"| {row['p99_ms']['waddle']:.2f} ms | {row['p99_ms']['kyverno']:.2f} ms "
        f"| {row['rss_mib']['waddle']:.0f} MiB | {row['rss_mib']['kyverno']:.0f} MiB |\n"
        for row in result["rows"]
        if "rate" in row
    )
    machine = "".join(f"| {name} | {value} |\n" for name, value in result["machine"].items())
    return f"""# Beside Kyverno's admission controller

Written by `{result["command"]}`.

Kyverno runs with the flags and the configuration of its chart, at a real API server, on the core that
Waddle has, with `GOMAXPROCS=1`. Reviews come over TLS by {CONNECTIONS} connections, in turns. Waddle
has the same ValidatingPolicies, and what `waddle migrate kyverno` makes of the ClusterPolicies. A Pod
that breaks every policy is denied by each of them, in each server, before anything is measured. CPU is
that of the whole process, medians of turns.

| machine | |
|---|---|
{machine}
The goal is the most that Waddle may take of the CPU of Kyverno without reports, which does no more
than answer.

| policies | body | Waddle | Kyverno | without reports | ratio | ratio without reports | goal | |
|---|---|---|---|---|---|---|---|---|
{rows}
With one policy most of both is TLS and HTTP. A bare uvicorn application that decodes the same body and
answers a constant takes {bare}.

Latencies at half of the load that Kyverno can take, and resident memory after it:

| policies | requests/s | p50 Waddle | p50 Kyverno | p99 Waddle | p99 Kyverno | Waddle | Kyverno |
|---|---|---|---|---|---|---|---|
{latencies}"""


def main() -> int:
    """Measure, print, and with ``--save`` keep; 1 where a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.kyverno", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter turns")
    parser.add_argument("--save", action="store_true", help="write results/kyverno.json and .md")
    options = parser.parse_args()
    try:
        result = measure(QUICK if options.quick else FULL)
    except ProgramUnavailableError as unavailable:
        print(f"skipped: Kyverno cannot be built here: {unavailable}", file=sys.stderr)
        return 0
    text = page(result)
    print(text)
    if options.save:
        (RESULTS / "kyverno.json").write_text(json.dumps(result, indent=1) + "\n")
        (RESULTS / "kyverno.md").write_text(text)
        readme.write()
    for line in missed(result):
        print(f"NOT MET  {line}", file=sys.stderr)
    return 1 if missed(result) else 0


if __name__ == "__main__":
    raise SystemExit(main())
