"""The audits of a cluster that holds a world: the replica's, and ``waddle audit --once``."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from tests.properties.doors import once
from tests.properties.doors.findings import excusal, of_responses
from tests.simulation.api_server import Served
from tests.webhook.cli.in_process import waddle
from tests.webhook.controllers.session import NAMESPACE, session
from webhook.audit.shares import Shares
from webhook.audit.sweeps import SweepOptions, Sweeps
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import load_credentials
from webhook.cluster.event_loop import EventLoop
from webhook.constraint.client import Client
from webhook.constraint.constraint import GROUP
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.limits import UNLIMITED
from webhook.constraint.targets.known import TARGETS
from webhook.log import Log
from webhook.policy_kinds.table import KYVERNO_KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.properties.doors.doors import Files
    from tests.properties.doors.findings import Findings
    from tests.properties.doors.worlds import Json, World
    from tests.simulation.api_server import Storage
    from tests.webhook.controllers.session import Session
    from webhook.audit.sink import Audited, Identity, SweepEnd, SweepStart
    from webhook.serving.revision import Revision

SUBJECTS = tuple(
    Served(group, "v1", f"{kind.lower()}s", kind, namespaced=True)
    for group, kind in (("apps", "Deployment"), ("batch", "CronJob"), ("batch", "Job"))
)
KYVERNO = tuple(
    Served(row.group, "v1beta1", row.plural, row.kind, namespaced=row.namespaced)
    for row in KYVERNO_KINDS
)
"""Kyverno's kinds as version 1.16 serves them: not at the first requested version."""
OPTIONS = SweepOptions(
    chunk_size=2, violations_limit=20, continuous=False, from_cache=False, reports_drift=False
)


class Swept:
    """A sink that keeps what is found of each object."""

    def __init__(self) -> None:
        self.findings: Findings = {}
        self.ended: SweepEnd | None = None

    async def start(self, start: SweepStart) -> None:
        """Keeps nothing."""

    async def audited(self, audited: Audited) -> None:
        """Keep it."""
        self.findings[audited.identity.name] = of_responses(audited.responses)

    async def gone(self, identity: Identity) -> None:
        """Ignores the event."""

    async def end(self, end: SweepEnd) -> None:
        """Keep it."""
        self.ended = end


def hold(storage: Storage, documents: Sequence[Json]) -> None:
    """Put a world into a cluster: constraints' kinds are served, as after a first start."""
    for served in (*SUBJECTS, *KYVERNO):
        storage.serve(served)
    client = Client(targets=TARGETS, drivers=[RegoDriver(), CelDriver()])
    for document in documents:
        if document["kind"] == "ConstraintTemplate":
            crd = client.create_crd(document)
            crd["status"] = {"conditions": [{"type": "Established", "status": "True"}]}
            _make(storage, crd)
            names = crd["spec"]["names"]
            storage.serve(Served(GROUP, "v1beta1", names["plural"], names["kind"]))
    for document in documents:
        _make(storage, document)


def _make(storage: Storage, document: Json) -> None:
    group = document["apiVersion"].rpartition("/")[0]
    served = next(
        one for one in storage.kinds.values() if (one.group, one.kind) == (group, document["kind"])
    )
    body = {key: value for key, value in document.items() if key != "apiVersion"}
    namespace = document["metadata"].get("namespace", "")
    if document["kind"] == "Config":  # the one that counts is in Waddle's namespace
        namespace = NAMESPACE
    storage.create(served, namespace, body)


def _is_held(revision: Revision | None, world: World) -> bool:
    """Whether a replica enforces all policies of a world."""
    if revision is None:
        return False
    count: dict[str, int] = {}
    for item in world.policies:
        group = item["apiVersion"].partition(".")[0]
        group = "groups" if item["kind"] == "ConstraintGroup" else group
        count[group] = count.get(group, 0) + 1
    excluded = any(revision.policies.exclusions.audit(name) for name in world.namespaces)
    excluded |= any(revision.policies.exclusions.mutation(name) for name in world.namespaces)
    return (
        len(revision.snapshot.constraints) == count["constraints"] + count.get("groups", 0)
        and len(revision.policies.foreign.enforced) == count.get("policies", 0)
        and len(revision.expansion.names) == count.get("expansion", 0)
        and world.namespaces.keys() <= revision.snapshot.namespaces.keys()
        and excluded == ("config" in count)
    )


def audits(folder: Path, world: World, files: Files) -> dict[str, Findings]:
    """By door, what audits find of the world's objects as mutators left them.

    A replica audits by the policies of the cluster, and the command by those and by those of
    files. The cluster is the simulated API server on a real socket.
    """
    with asyncio.Runner(loop_factory=EventLoop) as runner:
        return runner.run(_audits(folder, world, files))


async def _audits(folder: Path, world: World, files: Files) -> dict[str, Findings]:
    def prepare(replica: Session) -> None:
        hold(replica.storage, (*world.policies, *files.stored.values()))
        once.api_server = replica.api_server, asyncio.get_running_loop()

    async with session(folder, "audit", prepare=prepare, kyverno="enforce") as replica:
        await replica.until(lambda: _is_held(replica.serving.revision, world), "the world in force")
        return {
            "audit in a cluster": await _by_replica(replica, folder, files),
            "audit --once": await asyncio.to_thread(
                _by_command, folder, files, "--kyverno-policies=audit"
            ),
            "audit --once, a folder": await asyncio.to_thread(
                _by_command, folder, files, "--policies", str(files.policies)
            ),
        }


async def _by_replica(replica: Session, folder: Path, files: Files) -> Findings:
    log, revision, swept = Log(lambda _: None).logger("audit"), replica.serving.revision, Swept()
    assert revision is not None
    async with ClusterClient(load_credentials(folder / "kubeconfig")) as client:
        sweeps = Sweeps(
            client,
            replica.serving,
            OPTIONS,
            Shares(client, NAMESPACE, ""),
            lambda: UNLIMITED,
            registry=replica.registry,
            log=log,
            sinks=[swept],
            events=None,
            notify=lambda _: None,
            ask=files.ask.ask,
        )
        await sweeps.sweep(revision, lambda: None)
    end = swept.ended
    assert end is not None
    assert (end.failed, end.unreadable, end.undecided) == ({}, frozenset(), frozenset()), end
    assert (end.left_out, end.stranded) == (0, 0)
    # An object of a kind that no constraint can match is not looked at.
    return {name: swept.findings.get(name, frozenset()) for name in names(files.world)}


def _by_command(folder: Path, files: Files, *arguments: str) -> Findings:
    kubeconfig = str(folder / "kubeconfig")
    command = ("audit", "--once", "-n", NAMESPACE, "--kubeconfig", kubeconfig, "-o", "json")
    run = waddle(*command, *arguments, *files.options)
    assert not run.stderr, run.stderr
    found: Findings = {name: frozenset() for name in names(files.world)}
    document = json.loads(run.stdout)
    for item in (*document["violations"], *document["excused"]):
        constraint, name = item["constraint"], item["resource"]["name"]
        if name not in found:
            continue
        key = f"{constraint['kind']}/{constraint['name']}"
        if item not in document["excused"]:
            found[name] |= {(key, item["message"], ",".join(item["enforcementActions"]))}
        if exception := item.get("exception"):
            found[name] |= {excusal(key, item["message"], exception["title"])}
    return found


def names(world: World) -> list[str]:
    """Returns the names of the objects."""
    return [obj["metadata"]["name"] for obj in world.objects]
