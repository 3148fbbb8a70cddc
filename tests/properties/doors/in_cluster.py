"""The audits of a cluster that holds a world: the replica's, and ``waddle audit --once``."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from tests.simulation.api_server import Served
from tests.webhook.cli.in_process import waddle
from tests.webhook.controllers.session import NAMESPACE, session
from webhook.audit.shares import Shares
from webhook.audit.sweeps import SweepOptions, Sweeps
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import load_credentials
from webhook.constraint.client import Client
from webhook.constraint.constraint import GROUP
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.limits import UNLIMITED
from webhook.constraint.targets.known import TARGETS
from webhook.log import Log

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.properties.doors.worlds import Json, World
    from tests.simulation.api_server import Storage
    from tests.webhook.controllers.session import Session
    from webhook.audit.sink import Audited, Identity, SweepEnd, SweepStart
    from webhook.serving.revision import Revision

SUBJECTS = tuple(
    Served(group, "v1", f"{kind.lower()}s", kind, namespaced=True)
    for group, kind in (("apps", "Deployment"), ("batch", "CronJob"), ("batch", "Job"))
)
Findings = dict[str, frozenset[tuple[str, str, str]]]
OPTIONS = SweepOptions(
    chunk_size=2, violations_limit=20, continuous=False, from_cache=False, tells_drift=False
)


class Swept:
    """A sink that keeps what is found of each object."""

    def __init__(self) -> None:
        self.findings: Findings = {}
        self.ended: SweepEnd | None = None

    async def start(self, start: SweepStart) -> None:
        """Nothing is kept of it."""

    async def audited(self, audited: Audited) -> None:
        """Keep it."""
        self.findings[audited.identity.name] = frozenset(
            ("/".join(one.constraint.key), one.msg, ",".join(one.actions))
            for one in audited.responses.results
        )

    async def gone(self, identity: Identity) -> None:
        """Nothing goes."""

    async def end(self, end: SweepEnd) -> None:
        """Keep it."""
        self.ended = end


def hold(storage: Storage, documents: Sequence[Json]) -> None:
    """Put a world into a cluster: constraints' kinds are served, as after a first start."""
    for served in SUBJECTS:
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
        count[group] = count.get(group, 0) + 1
    excluded = any(revision.is_excluded_from_audit(name) for name in world.namespaces)
    excluded |= any(revision.is_excluded_from_mutation(name) for name in world.namespaces)
    return (
        len(revision.snapshot.constraints) == count["constraints"]
        and len(revision.expansion.names) == count.get("expansion", 0)
        and world.namespaces.keys() <= revision.snapshot.namespaces.keys()
        and excluded == ("config" in count)
    )


def audits(
    folder: Path, world: World, stored: Mapping[str, Json], policies: Path
) -> dict[str, Findings]:
    """By door, what audits find of the world's objects as mutators left them.

    A replica audits by the policies of the cluster, and the command by those and by those of
    files. The cluster is the simulated API server on a real socket.
    """
    return asyncio.run(_audits(folder, world, stored, policies))


async def _audits(
    folder: Path, world: World, stored: Mapping[str, Json], policies: Path
) -> dict[str, Findings]:
    def prepare(made: Session) -> None:
        hold(made.storage, (*world.policies, *stored.values()))

    async with session(folder, "audit", prepare=prepare) as made:
        await made.until(lambda: _is_held(made.serving.revision, world), "the world in force")
        return {
            "audit in a cluster": await _by_replica(made, folder, world),
            "audit --once": await asyncio.to_thread(_by_command, folder, world),
            "audit --once, a folder": await asyncio.to_thread(
                _by_command, folder, world, "--policies", str(policies)
            ),
        }


async def _by_replica(made: Session, folder: Path, world: World) -> Findings:
    log, revision, swept = Log(lambda _: None).logger("audit"), made.serving.revision, Swept()
    assert revision is not None
    async with ClusterClient(load_credentials(folder / "kubeconfig")) as client:
        sweeps = Sweeps(
            client,
            made.serving,
            OPTIONS,
            Shares(client, NAMESPACE, ""),
            lambda: UNLIMITED,
            registry=made.registry,
            log=log,
            sinks=[swept],
            events=None,
            tell=lambda _: None,
        )
        await sweeps.sweep(revision, lambda: None)
    end = swept.ended
    assert end is not None
    assert (end.failed, end.unreadable, end.undecided) == ({}, frozenset(), frozenset())
    assert (end.left_out, end.stranded) == (0, 0)
    # An object of a kind that no constraint can match is not looked at.
    return {name: swept.findings.get(name, frozenset()) for name in names(world)}


def _by_command(folder: Path, world: World, *arguments: str) -> Findings:
    kubeconfig = str(folder / "kubeconfig")
    asked = ("audit", "--once", "-n", NAMESPACE, "--kubeconfig", kubeconfig, "-o", "json")
    run = waddle(*asked, *arguments)
    assert not run.stderr, run.stderr
    found: Findings = {name: frozenset() for name in names(world)}
    for item in json.loads(run.stdout)["violations"]:
        constraint, name = item["constraint"], item["resource"]["name"]
        if name in found:
            key = f"{constraint['kind']}/{constraint['name']}"
            actions = ",".join(item["enforcementActions"])
            found[name] |= {(key, item["message"], actions)}
    return found


def names(world: World) -> list[str]:
    """Those of the objects."""
    return [obj["metadata"]["name"] for obj in world.objects]
