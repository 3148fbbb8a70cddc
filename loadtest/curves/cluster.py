"""Curves of replicas in a cluster: their number, the synced data, the changes of policies."""

import contextlib
import copy
import itertools
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadtest.bench import policies
from loadtest.bench.servers import Server as Answering
from loadtest.changes.churn import Change, Churn
from loadtest.cluster import content
from loadtest.cluster.servers import Server
from loadtest.cluster.stages import SETTLED_SECONDS_MAX, Site, constraint_path, site
from loadtest.curves.points import Stand, medians
from loadtest.traces import BODIES
from tests.cluster import Api
from tests.system.bulk import create
from tests.system.replicas import WORKLOADS
from tests.system.replicas import template as template_of

REPLICAS = (1, 2, 4, 8)
SYNCED = (0, 1_000, 10_000, 50_000)
CHANGES_PER_MINUTE = (0, 20, 60, 200)

REST_SECONDS = 5.0
SYNC_SET = "/apis/syncset.gatekeeper.sh/v1alpha1/syncsets/data"
PROGRAMS = ("waddle", "gatekeeper")

# A Pod whose owner has a ConfigMap that forbids it: one look-up in the data, which allows.
KNOWN = """\
package known
violation[{"msg": msg}] {
  owner := input.review.object.metadata.labels.owner
  data.inventory.namespace["%s"]["v1"]["ConfigMap"][owner].data.owner == "nobody"
  msg := "forbidden"
}
"""


def replicas(stand: Stand, places: tuple[int, ...]) -> None:
    """Memory of all replicas, and what they write when they start and when a policy changes.

    No load: replicas beyond the cores would only wait for each other.
    """
    for count in stand.missing("replicas", places):
        with _site(stand, f"replicas-{count}") as made:
            figures = {program: _replicas(made, program, int(count)) for program in PROGRAMS}
        stand.store.keep("replicas", count, figures)
        stand.say(f"replicas {count}: {figures}")


def synced(stand: Stand, places: tuple[int, ...]) -> None:
    """Start, memory and CPU by the number of objects that policies may read."""
    for count in stand.missing("synced", places):
        with _site(stand, f"synced-{count}") as made:
            create(made.plane.api, content.config_maps(int(count), WORKLOADS))
            _sync(made.plane.api)
            figures = {}
            for program in PROGRAMS:
                with _started(made, program) as server:
                    _await_data(server, int(count))
                    idle_mib = server.rss_mib
                    found = stand.alternated([server.answering], BODIES / "pod.json")[program]
                    figures[program] = {
                        **found,
                        "ready_seconds": server.ready_seconds,
                        "ready_cpu_seconds": server.ready_cpu_seconds,
                        "idle_rss_mib": idle_mib,
                    }
        stand.store.keep("synced", count, figures)
        stand.say(f"synced {count}")


def changes(stand: Stand, places: tuple[int, ...]) -> None:
    """CPU and latency at a fixed load while constraints change, so many times a minute."""
    missing = stand.missing("changes", places)
    if not missing:
        return
    found: dict[float, dict[str, Any]] = {at: {} for at in missing}
    with _site(stand, "changes") as made:
        for program in PROGRAMS:
            with _started(made, program) as server:
                answering = server.answering
                stand.alternated([answering], BODIES / "pod.json")  # warm
                for per_minute in missing:
                    found[per_minute][program] = _under_changes(
                        stand, made.plane.api, answering, per_minute
                    )
    for per_minute, figures in found.items():
        stand.store.keep("changes", per_minute, figures)
    stand.say(f"changes {missing}")


def _under_changes(stand: Stand, api: Api, server: Answering, per_minute: float) -> dict[str, Any]:
    """A schedule that both can keep, with changes meanwhile."""
    seconds = max(12.0, stand.effort.seconds * stand.effort.rounds)
    with Churn(api, per_minute, _parameters()) as churn:
        measured = stand.generator.open(
            server,
            BODIES / "pod.json",
            connections=8,
            seconds=seconds,
            rate=40,  # half of what Gatekeeper does with these policies
            expected="allowed",
        )
    return {**medians([measured]), "changes": churn.made.total(), "seconds": seconds}


def _parameters() -> Iterator[Change]:
    """Yields changes of one constraint, each time with another parameter."""
    _, constraints = policies.read("p12")
    for number in itertools.count(1):
        one = copy.deepcopy(constraints[1])
        one["spec"]["parameters"]["cpu"] = str(4 + number % 50)
        yield Change("update", constraint_path(one), one)


@dataclass(slots=True)
class Writes:
    """The writes of programs, by the API server's audit log."""

    log: Path

    def count(self, program: str) -> int:
        """Writes of this program so far; Gatekeeper has an agent's name of its own."""
        agents = {"waddle": "waddle/", "gatekeeper": "gatekeeper"}
        number = 0
        for line in self.log.read_text().splitlines():
            event = json.loads(line)
            if event["verb"] in ("create", "update", "patch", "delete"):
                number += event.get("userAgent", "").startswith(agents[program])
        return number


def _replicas(made: Site, program: str, count: int) -> dict[str, Any]:
    writes = Writes(made.plane.audit_log)
    before = writes.count(program)
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(made.start(program)) for _ in range(count)]
        for server in servers:
            server.wait_ready()
        await_rest(writes, program)
        started = writes.count(program)
        memory = [server.rss_mib for server in servers]
        shared = [_pss_mib(server.process.pid) for server in servers]
        _, constraints = policies.read("p12")
        one = json.loads(json.dumps(constraints[1]))
        # Not what the program before it has set: an apply without a change changes nothing.
        one["spec"]["parameters"]["cpu"] = str(3 + PROGRAMS.index(program))
        made.plane.api.apply(constraint_path(one), one)
        await_rest(writes, program)
        return {
            "rss_mib": sum(memory),
            "pss_mib": sum(shared),
            "ready_seconds": max(server.ready_seconds for server in servers),
            "start_writes": started - before,
            "change_writes": writes.count(program) - started,
        }


def await_rest(writes: Writes, program: str) -> None:
    """Until nothing more is written for some seconds."""
    seen = -1
    while (now := writes.count(program)) != seen:
        seen = now
        time.sleep(REST_SECONDS)


def _pss_mib(pid: int) -> float:
    """Memory with what is shared divided among those that share it."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} is gone")


@contextlib.contextmanager
def _site(stand: Stand, name: str) -> Iterator[Site]:
    """A cluster with the twelve policies and one that reads data, enforced once."""
    folder = stand.folder / name
    folder.mkdir()
    templates, constraints = policies.read("p12")
    known, knows = _known()
    with site(folder, stand.cores) as made:
        made.enforce([*templates, known], [*constraints, knows])
        yield made


def _known() -> tuple[dict[str, Any], dict[str, Any]]:
    template = template_of("Known", KNOWN % WORKLOADS)
    constraint = {
        "apiVersion": "constraints.gatekeeper.sh/v1beta1",
        "kind": "Known",
        "metadata": {"name": "known"},
        "spec": {"match": {"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}]}},
    }
    return template, constraint


def _sync(api: Api) -> None:
    sync_set = {
        "apiVersion": "syncset.gatekeeper.sh/v1alpha1",
        "kind": "SyncSet",
        "metadata": {"name": "data"},
        "spec": {"gvks": [{"group": "", "version": "v1", "kind": "ConfigMap"}]},
    }
    api.apply(SYNC_SET, sync_set)


@contextlib.contextmanager
def _started(made: Site, program: str) -> Iterator[Server]:
    with made.start(program) as server:
        server.wait_ready()
        yield server


def _await_data(server: Server, count: int) -> None:
    """Until it says that it holds the objects, or its memory stands still."""
    end = time.monotonic() + SETTLED_SECONDS_MAX
    before = 0.0
    while time.monotonic() < end:
        held = sum(
            float(line.rpartition(" ")[2])
            for line in server.scrape().splitlines()
            if line.startswith("gatekeeper_sync{") and 'kind="ConfigMap"' in line
        )
        if held >= count and abs(server.rss_mib - before) < 1:
            return
        before = server.rss_mib
        time.sleep(1)
    raise RuntimeError(f"{server.name} does not come to hold {count} objects")
