"""Measurements of a cluster of one size: starts, memory, and rest afterwards."""

import contextlib
import functools
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadtest.bench.servers import Cores
from loadtest.cluster import content
from loadtest.cluster.servers import Server, cpu_seconds, gatekeeper, install_gatekeeper, waddle
from tests.cluster import Api, ApiError, Cluster
from tests.patience import until
from tests.programs import build
from tests.system.bulk import create
from tests.system.replicas import CONSTRAINTS, CRD_PATH, TEMPLATES, WORKLOADS, Plane

REPLICAS = 3

CONTENT_SECONDS_MAX = 600.0
SETTLED_SECONDS_MAX = 900.0

STATUS_KINDS = ("constrainttemplatepodstatuses", "constraintpodstatuses")


@dataclass(frozen=True, slots=True)
class Stage:
    """A size of cluster, and how often a start is measured."""

    templates: int
    constraints: int
    objects: int
    rounds: int
    quiet_seconds: float
    """The seconds of an observed steady state."""

    @property
    def name(self) -> str:
        """Returns the name for people."""
        text = f"{self.templates} templates, {self.constraints} constraints"
        return f"{text}, {self.objects} objects" if self.objects else text


class Site:
    """A control plane with the content of a stage."""

    def __init__(self, cluster: Cluster, folder: Path, cores: Cores) -> None:
        """The cluster runs already."""
        self.plane = Plane(cluster, folder)
        self._folder = folder
        self._cores = cores
        self._pods = 0

    def start(self, program: str) -> AbstractContextManager[Server]:
        """Start ``waddle`` or ``gatekeeper`` with a new Pod."""
        self._pods += 1
        make = waddle if program == "waddle" else gatekeeper
        pod = f"{program}-{self._pods}"
        return make(self.plane, pod, core=self._cores.server, log=self._folder / f"{program}.log")

    def fill(self, stage: Stage) -> None:
        """Make what the stage holds; a replica makes the constraints' kinds."""
        api = self.plane.api
        made = content.policies(stage.templates, stage.constraints)
        create(api, content.template_requests(made))
        with self.start("waddle") as maker:
            until(lambda: self._kinds() == stage.templates, "kinds", CONTENT_SECONDS_MAX)
            create(api, content.constraint_requests(made))
            until(lambda: maker.ask(content.CANARY) is True, "the canary", CONTENT_SECONDS_MAX)

    def enforce(
        self, templates: Sequence[dict[str, Any]], constraints: Iterable[dict[str, Any]]
    ) -> None:
        """Apply policies for Pods of the benchmarks' bodies; a replica makes their kinds."""
        api = self.plane.api
        for namespace in ("payments", WORKLOADS):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            api.apply(f"/api/v1/namespaces/{namespace}", body)
        for one in templates:
            api.apply(f"{TEMPLATES}/{one['metadata']['name']}", one)
        with self.start("waddle") as maker:
            maker.wait_ready()
            for one in constraints:
                path = constraint_path(one)
                until(functools.partial(applied, api, path, one), path, SETTLED_SECONDS_MAX)
            until(lambda: self._kinds() == len(templates), "kinds", SETTLED_SECONDS_MAX)

    def _kinds(self) -> int:
        time.sleep(0.5)  # an answer of several MiB: not to be asked for all the time
        query = "?labelSelector=gatekeeper.sh/constraint=yes"
        crds = self.plane.api.request("GET", CRD_PATH + query)["items"]
        return sum(
            any(
                one["type"] == "Established" and one["status"] == "True"
                for one in (crd.get("status") or {}).get("conditions") or ()
            )
            for crd in crds
        )

    def fill_data(self, objects: int) -> None:
        """Make objects, and have them synced."""
        create(self.plane.api, content.config_maps(objects, WORKLOADS))
        self.plane.api.apply(content.SYNC_SET, content.sync_set())

    def measure_start(self, program: str, stage: Stage) -> dict[str, Any]:
        """Measures a start, until every status is written."""
        api_server = self.plane.cluster.pid
        api_before = cpu_seconds(api_server)
        with self.start(program) as server:
            server.wait_ready()
            ready_mib = server.rss_mib
            until(lambda: self._has_statuses(server, stage), "every status", SETTLED_SECONDS_MAX)
            return {
                "ready_seconds": server.ready_seconds,
                "ready_cpu_seconds": server.ready_cpu_seconds,
                "first_answer_denies": server.first_answer_denies,
                "ready_answer_denies": server.ready_answer_denies,
                "ready_rss_mib": ready_mib,
                "told_seconds": time.monotonic() - server.began,
                "told_cpu_seconds": server.cpu_seconds,
                "told_rss_mib": server.rss_mib,
                "api_server_cpu_seconds": cpu_seconds(api_server) - api_before,
            }

    def _has_statuses(self, server: Server, stage: Stage) -> bool:
        time.sleep(0.5)
        query = f"?labelSelector=internal.gatekeeper.sh/pod={server.pod}"
        path = f"/apis/status.gatekeeper.sh/v1beta1/namespaces/{server.namespace}"
        found = [
            len(self.plane.api.request("GET", f"{path}/{kind}{query}")["items"])
            for kind in STATUS_KINDS
        ]
        return found == [stage.templates, stage.constraints]

    def measure_replicas(self, stage: Stage) -> dict[str, Any]:
        """Three replicas started at once: memory, digests, and writes once all is said."""
        with ExitStack() as stack:
            servers = [stack.enter_context(self.start("waddle")) for _ in range(REPLICAS)]
            with ThreadPoolExecutor(REPLICAS) as asking:
                list(asking.map(Server.wait_ready, servers))
            until(
                lambda: all(self._has_statuses(server, stage) for server in servers),
                "every status",
                SETTLED_SECONDS_MAX,
            )
            self._await_rest()
            before = len(self.plane.writes())
            time.sleep(stage.quiet_seconds)
            return {
                "ready_seconds": [server.ready_seconds for server in servers],
                "first_answers_deny": [server.first_answer_denies for server in servers],
                "rss_mib": [server.rss_mib for server in servers],
                "digests": len({_digests(server) for server in servers}),
                "quiet_seconds": stage.quiet_seconds,
                "writes": len(self.plane.writes()) - before,
            }

    def _await_rest(self) -> None:
        """Until byPod of every object is written: no write within some seconds."""
        seen = -1
        while (now := len(self.plane.writes())) != seen:
            seen = now
            time.sleep(6)


def constraint_path(constraint: dict[str, Any]) -> str:
    """Returns the path of a constraint."""
    return f"{CONSTRAINTS}/{constraint['kind'].lower()}/{constraint['metadata']['name']}"


def applied(api: Api, path: str, constraint: dict[str, Any]) -> bool:
    """Whether a constraint was taken; its kind may not be served yet."""
    try:
        api.apply(path, constraint)
    except ApiError as error:
        if error.status in (404, 429):
            return False
        raise
    return True


def _digests(server: Server) -> tuple[str, ...]:
    """Of the policies and of the data in force."""
    return tuple(line for line in server.scrape().splitlines() if 'digest="' in line)


@contextlib.contextmanager
def site(folder: Path, cores: Cores) -> Iterator[Site]:
    """A control plane on the clients' core, with the kinds of both programs."""
    audit_log = str(folder / "audit.log")
    cluster = Cluster.start(build("testcluster"), folder / "cluster", "-audit-log", audit_log)
    try:
        pin = ["taskset", "--all-tasks", "--cpu-list", "--pid", str(cores.client)]
        subprocess.run([*pin, str(cluster.pid)], check=True, stdout=subprocess.DEVNULL, timeout=10)
        made = Site(cluster, folder, cores)
        install_gatekeeper(made.plane)
        yield made
    finally:
        cluster.kill()  # told to stop it would wait a minute for watches


def measure(stages: tuple[Stage, ...], folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Each stage's figures, by its name."""
    cores = Cores.of_this_machine()
    found: dict[str, Any] = {}
    for number, stage in enumerate(stages):
        here = folder / str(number)
        here.mkdir()
        with site(here, cores) as made:
            made.fill(stage)
            if stage.objects:
                made.fill_data(stage.objects)
            say(f"{stage.name}: made")
            starts: dict[str, list[dict[str, Any]]] = {"waddle": [], "gatekeeper": []}
            for turn in range(stage.rounds):
                for program in sorted(starts, reverse=turn % 2 == 0):
                    starts[program].append(made.measure_start(program, stage))
                    say(f"{stage.name}: {program} {starts[program][-1]}")
            replicas = made.measure_replicas(stage)
            say(f"{stage.name}: {replicas}")
        found[stage.name] = {"starts": starts, "replicas": replicas}
    return found
