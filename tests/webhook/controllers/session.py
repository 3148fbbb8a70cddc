"""A replica's session at a small API server: the simulated one, on a real socket and in real time."""

import asyncio
import contextvars
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.cluster import write_kubeconfig
from tests.patience import PATIENCE_SECONDS
from tests.simulation.api_http import ApiServer, _Connection
from tests.simulation.api_server import Json, Refusal, Served, Storage
from tests.simulation.control_plane import NAMESPACES, PODS, SECRETS, ControlPlane
from tests.simulation.policies import constraint, template
from webhook.api.pod_status import Pod
from webhook.api.shapes import conditions_of
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import load_credentials
from webhook.constraint.client import Client
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.controllers.apply.prevalidation import Trier
from webhook.controllers.follow.following import Following
from webhook.controllers.generate import GenerationOptions
from webhook.generation.plan import Options
from webhook.log import Log
from webhook.metrics.registry import Registry
from webhook.serving.revision import Serving

NAMESPACE = "waddle"
KEY_SECRET = "waddle-revision-keys"
VAP_GROUP = "admissionregistration.k8s.io"
VAPS = Served(VAP_GROUP, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy")
BINDINGS = Served(
    VAP_GROUP, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"
)
CONFIGURATIONS = Served(
    VAP_GROUP, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration"
)
CONFIG_MAPS = Served("", "v1", "configmaps", "ConfigMap", namespaced=True)
REVISIONS = ("policy.waddle.dev", "policyrevisions")


def configuration(name: str = "asks", **rule: Any) -> Json:
    """A webhook configuration that calls the replica, with one rule: all writes but what is given."""
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    webhook = {
        "name": "validation.gatekeeper.sh",
        "clientConfig": {"url": "https://127.0.0.1:1/v1/admit"},
        "rules": [{**everything, **rule}],
    }
    return {"metadata": {"name": name}, "webhooks": [webhook]}


class _RealLoop(SimpleNamespace):
    """The running loop, as the simulated API server uses one."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(
            random=random.Random(1),
            director=SimpleNamespace(context=contextvars.copy_context()),
            call_later=loop.call_later,
            call_at=loop.call_at,
            time=loop.time,
            notify=lambda *_: None,
            _follow=None,
        )

    def process(self, _name: str) -> SimpleNamespace:
        """Returns a process for the callbacks."""
        return SimpleNamespace(context=contextvars.copy_context())


class Refusing(Storage):
    """Refuses some writes."""

    refused: dict[str, int]
    """By kind, or kind and subresource, with the code."""
    pruned: set[tuple[str, str]]
    """By kind, a field of the status that its CRD does not keep."""

    def create(self, served: Served, namespace: str, body: Json) -> Json:
        self._check(served)
        return super().create(served, namespace, body)

    def delete(
        self, served: Served, namespace: str, name: str, uid: str = "", version: str = ""
    ) -> Json:
        self._check(served)
        return super().delete(served, namespace, name, uid, version)

    def replace(
        self, served: Served, namespace: str, name: str, body: Json, subresource: str
    ) -> Json:
        if f"{served.kind}/{subresource}" in self.refused:
            raise Refusal(self.refused[f"{served.kind}/{subresource}"], "Refused", "as wanted")
        if gone := {field for kind, field in self.pruned if kind == served.kind}:
            status = body.get("status", {})
            body = {**body, "status": {key: status[key] for key in status if key not in gone}}
        return super().replace(served, namespace, name, body, subresource)

    def _check(self, served: Served) -> None:
        if served.kind in self.refused:
            raise Refusal(self.refused[served.kind], "Refused", "as the test wants it")


class Session:
    """A replica and its followed objects."""

    def __init__(self, storage: Refusing) -> None:
        self.storage = storage
        self.api_server: ApiServer = None  # type: ignore[assignment]  # until it begins
        self.serving = Serving()
        self.registry = Registry()
        self.lines: list[bytes] = []
        self.states: list[str] = []
        self.faults: tuple[str, ...] = ()
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.following: Following = None  # type: ignore[assignment]  # until it begins

    def notified(self, state: str, faults: tuple[str, ...]) -> None:
        """Takes what ``/readyz`` shows."""
        self.states.append(state)
        self.faults = faults

    def make(self, group: str, plural: str, body: Json, namespace: str = "") -> Json:
        """A new object."""
        return self.storage.create(self.storage.kinds[group, plural], namespace, body)

    def change(self, group: str, plural: str, name: str, **fields: Any) -> Json:
        """Other fields of an object."""
        served = self.storage.kinds[group, plural]
        before = self.storage.get(served, "", name)
        return self.storage.replace(served, "", name, {**before, **fields}, "")

    def drop(self, group: str, plural: str, name: str) -> None:
        """Delete an object."""
        self.storage.delete(self.storage.kinds[group, plural], "", name)

    def get(self, group: str, plural: str, name: str, namespace: str = "") -> Json:
        """An object as it is; empty where there is none."""
        return self.storage.objects.get((group, plural), {}).get((namespace, name), {})

    def all(self, group: str, plural: str) -> list[Json]:
        """All objects of a kind."""
        return list(self.storage.objects.get((group, plural), {}).values())

    async def until(self, condition: Callable[[], object], description: str = "") -> None:
        """Wait for what the replica does."""
        end = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        while not condition():
            if asyncio.get_running_loop().time() > end:
                shown = b"".join(self.lines[-20:]).decode()
                raise AssertionError(
                    f"never came: {description or condition}; {self.states[-1:]} {shown}"
                )
            await asyncio.sleep(0.01)

    def serves(self, kind: str, name: str) -> Any:
        """The constraint in force; None for none."""
        revision = self.serving.revision
        found = () if revision is None else revision.snapshot.constraints
        return next((one for one in found if one.key == (kind, name)), None)


@asynccontextmanager
async def session(
    folder: Path,
    *operations: str,
    prepare: Callable[[Session], object] = lambda _: None,
    alone: bool = False,
    synced: bool = False,
    left_out: tuple[str, ...] = (),
    trier: Trier | None = None,
    external_data: bool = True,
    is_covered: bool = True,
    kyverno: str = "off",
    exceptions_keep_seconds: float = 0.0,
    projects: bool = False,
) -> AsyncIterator[Session]:
    """A replica of these operations, whose Pod is there; what there is before it, ``prepare`` makes.

    Where it is ``is_covered``, a webhook configuration sends it everything.
    """
    loop = _RealLoop()
    storage = Refusing()
    storage.refused, storage.pruned = {}, set()
    ControlPlane(loop, storage, left_out=left_out)  # type: ignore[arg-type]
    for served in (VAPS, BINDINGS, CONFIGURATIONS, CONFIG_MAPS):
        storage.serve(served)
    server = ApiServer(loop, None, storage)  # type: ignore[arg-type]
    storage.listeners.append(server._happened)
    storage.create(NAMESPACES, "", {"metadata": {"name": NAMESPACE}})
    storage.create(SECRETS, NAMESPACE, {"metadata": {"name": KEY_SECRET}})
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    pod = storage.create(
        PODS, NAMESPACE, {"metadata": {"name": "waddle-1", "labels": LABELS}, "status": ready}
    )
    replica = Session(storage)
    replica.api_server = server
    if is_covered:
        storage.create(CONFIGURATIONS, "", configuration(resources=["*/*"]))
    prepare(replica)
    connections: list[_Connection] = []

    def connected() -> _Connection:
        connections.append(_Connection(server))
        return connections[-1]

    listening = await asyncio.get_running_loop().create_server(connected, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    path = write_kubeconfig(folder / "kubeconfig", f"http://127.0.0.1:{port}")
    try:
        async with (
            ClusterClient(load_credentials(path)) as client,
            asyncio.TaskGroup() as tasks,
        ):
            replica.following = Following(
                client,
                Pod("waddle-1", NAMESPACE, pod["metadata"]["uid"], operations),
                Client(targets=[AdmissionTarget()], drivers=[RegoDriver(), CelDriver()]),
                replica.serving,
                operations=frozenset(operations),
                wait_for_broken=False,
                kept_revisions=2,
                key_secret=KEY_SECRET,
                registry=replica.registry,
                log=Log(replica.lines.append).logger("cluster"),
                notify=replica.notified,
                record=lambda event, **details: replica.events.append((event, details)),
                certificate_writes=lambda: (1, 0),
                generation=GenerationOptions(
                    Options(alone=alone),
                    wait_seconds=0,
                    synced=synced,
                    configuration="waddle",
                    exempted=(),
                ),
                trier=trier,
                external_data=external_data,
                kyverno=kyverno,
                exceptions_keep_seconds=exceptions_keep_seconds,
                tick_seconds=0.02,
                projects=projects,
            )
            running = tasks.create_task(replica.following.run())
            yield replica
            running.cancel()
    finally:
        listening.close()
        await asyncio.sleep(0)  # who was accepted just now is connected
        # A client that closes last is not noticed before the loop ends. Its connection would be left
        # to the garbage collector, whose warning fails whichever test runs then.
        for connection in connections:
            connection.end()


LABELS = {"app.kubernetes.io/name": "waddle", "gatekeeper.sh/operation": "webhook"}


TEMPLATES = ("templates.gatekeeper.sh", "constrainttemplates")
ALPHAS = ("constraints.gatekeeper.sh", "alpha")
STATUSES = ("status.gatekeeper.sh", "constraintpodstatuses")
EVERYTHING = ("webhook", "status", "generate")


async def enforced(replica: Session, name: str = "c", **metadata: Any) -> None:
    """A template is there, and a constraint of it in force."""
    replica.make(*TEMPLATES, template("Alpha", 0))
    await replica.until(lambda: ALPHAS in replica.storage.kinds, "the constraint's kind")
    document = constraint("Alpha", name, 0)
    document["metadata"] |= metadata
    replica.make(*ALPHAS, document)
    await replica.until(lambda: replica.serves("Alpha", name), "the constraint in force")


def state_of(replica: Session, *named: str) -> str:
    """Returns the true conditions of an object."""
    held = [
        item["type"]
        for item in conditions_of(replica.get(*named).get("status", {}))
        if item["status"] == "True"
    ]
    return " ".join(sorted(held))


async def until_says(replica: Session, condition: str, *named: str) -> None:
    """Wait until an object has a condition."""
    await replica.until(lambda: condition in state_of(replica, *named), f"{condition} of {named}")


def in_cel(*, generates: bool = True) -> Any:
    """The template, in CEL."""
    validation = {"expression": "has(object.metadata.labels)", "message": "no labels"}
    source = {"validations": [validation], "generateVAP": generates}
    code = [{"engine": "K8sNativeValidation", "source": source}]
    document = template("Alpha", 0)
    document["spec"]["targets"] = [{"target": "admission.k8s.gatekeeper.sh", "code": code}]
    return document
