"""The cluster's world: replicas that follow a simulated API server, and what befalls both.

What holds: every replica comes to serve what the API server holds, and all of them one digest; no
template or constraint is ever enforced in a state that the API server never had, nor a broken one,
nor an older one after a newer one; byPod says of each replica what it enforces, and of nobody else; and once all
rests, nothing is written.
"""

import asyncio
import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace

import orjson

from tests.simulation.api_http import URL, ApiServer
from tests.simulation.api_server import NAMESPACES, Copy, Json, Storage
from tests.simulation.cluster_enforcement import (
    CALM_SECONDS,
    RETRIES_SECONDS,
    SILENCE_SECONDS,
    Enforcement,
    Key,
    Replica,
)
from tests.simulation.cluster_statuses import fights, lies, orphans
from tests.simulation.cluster_users import NAMESPACE, Users
from tests.simulation.control_plane import PODS, SECRETS, TEMPLATES, ControlPlane
from tests.simulation.ends import killed
from tests.simulation.loop import Loop
from tests.simulation.network import Network
from tests.simulation.policies import (
    code_cache,
    digest_of,
    is_broken,
    new_client,
)
from tests.simulation.process import Process
from webhook import log as product_log
from webhook.api.names import CONSTRAINT_GROUP
from webhook.api.pod_status import Pod
from webhook.app.cluster import generation_options
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import Credentials
from webhook.constraint.client import Client
from webhook.controllers.apply.prevalidation import Trier
from webhook.controllers.follow.following import TICK_SECONDS, Following
from webhook.metrics.registry import Registry
from webhook.serving.revision import Serving
from webhook.settings.serve import ServeSettings

MUTATION = ("mutations.gatekeeper.sh", "expansion.gatekeeper.sh")
"""Groups that many clusters have not: their kinds are looked for again and again."""

KEY_SECRET = "waddle-revision-keys"

MEND_SECONDS = 400.0
"""In which everything converges: beyond every back-off, and the silence of a watch."""

POD_LABELS = {"app.kubernetes.io/name": "waddle", "gatekeeper.sh/operation": "webhook"}

OPERATIONS = [frozenset({"webhook", "status", "generate"})] * 2 + [
    frozenset({"webhook", "generate"})
]
"""The operations of an installation's replicas: in some no replica writes a status."""

TICKS_SECONDS = [TICK_SECONDS, 2.0, 2.0]
"""The intervals of a replica's own looks: the product's, and a late one as on a busy node."""

RESTS_SECONDS = [4.0, 4.0, 4.0, 30.0]
"""In which nothing is written, after that: in some worlds beyond every period, in most a moment."""

PAUSES_SECONDS = [0.0] * 7 + [CALM_SECONDS + 5.0]
"""The pauses between two events, beyond a moment."""

PAGES_OBJECTS = [1, 2, 3, 500]
"""The page sizes of a list: worlds are too small for the real ones."""

MISFORTUNES = (
    *("restart", "compact", "compact", "cut", "cut", "silent", "busy", "torn", "well"),
    "restore",
    *("definition", "die", "die", "crash", "delete pod", "new replica", "hang", "namespace"),
)
HARMLESS = {"well", "namespace", "new replica", "definition"}
"""Of these, what loses no answer."""

FATES = {
    "ready": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    "unready": {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]},
    "terminating": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    "failed": {"phase": "Failed", "conditions": [{"type": "Ready", "status": "False"}]},
}
"""The states of a Pod whose process has ended: unnoticed, lost with its node, lost with its node
while it was deleted, or never restarted."""

BACKUP_SHARE = 0.2
"""The probability of a copy of etcd before an event."""

REPLICAS = [1, 1, 1, 1, 2, 2, 3]
HAPPENINGS = [1, 1, 1, 2, 2, 3, 8]
"""The numbers of events of each kind, by chance: small worlds find more in the same time, and some
faults need a large one."""


class ClusterWorld:
    """A world of a cluster; :meth:`main` is its director's."""

    MUTATION_SHARE = 0.75
    """In how many worlds a cluster has the kinds of mutation and expansion."""

    replicas_chosen: Sequence[int] = REPLICAS
    """The numbers of replicas at the beginning, by chance."""

    rests_seconds: Sequence[float] = RESTS_SECONDS

    storage_of: type[Storage] = Storage

    projects = False
    """Whether synced objects are kept as far as templates read them."""

    exceptions_keep_seconds = 0.0
    """The time that ended exceptions stay, in seconds; 0 for ever."""

    def __init__(self, loop: Loop) -> None:
        code_cache()
        self.loop = loop
        self.network = Network(loop)
        self.network.latency = loop.random.choice([0.0005, 0.005])
        self.network.splitting = 0.01
        self.storage = self.storage_of()
        self.storage.page_objects_max = loop.random.choice(PAGES_OBJECTS)
        self.operations = loop.random.choice(OPERATIONS)
        self.tick_seconds = loop.random.choice(TICKS_SECONDS)
        mutation = loop.random.random() < self.MUTATION_SHARE
        self.control_plane = ControlPlane(loop, self.storage, left_out=() if mutation else MUTATION)
        self.enforcement = self._watched()
        self.storage.create(NAMESPACES, "", {"metadata": {"name": NAMESPACE}})
        self.storage.create(SECRETS, NAMESPACE, {"metadata": {"name": KEY_SECRET}})
        self.users = Users(loop.random, self.storage)
        self.replicas: list[Replica] = []
        self.dead: dict[str, str] = {}
        """Pods whose processes have ended, and that stay: what became of each, by name."""
        self.made = 0
        self.silenced = False
        self.excused_until = 0.0
        """The excuse of replicas that begin later, as that of each replica."""
        self.disturbed = False
        """Whether an answer may have been lost, so that its question was asked again."""
        self.server: ApiServer | None = None
        self.backup: Copy | None = None
        self.is_restored = False
        """Whether etcd is at a backup: no other is made, which would let versions catch up."""

    def _watched(self) -> Enforcement:
        return Enforcement(self.loop, self.storage)

    # --- replicas ------------------------------------------------------------------------------

    def start_replica(self, pod: Json | None = None) -> None:
        """A replica's process begins, in a new Pod or in one whose container restarts."""
        storage = self.storage
        if pod is None:
            self.made += 1
            metadata = {"name": f"replica-{self.made}", "labels": POD_LABELS}
            body = {"metadata": metadata, "status": FATES["ready"]}
            pod = storage.create(PODS, NAMESPACE, body)
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        process = self.loop.process(name)
        replica = Replica(name, uid, process, Serving(), Registry(), self.loop.now())
        replica.excused_until = self.excused_until
        self.replicas.append(replica)
        process.spawn(self._follow(replica))

    async def _follow(self, replica: Replica) -> None:
        log = self._logger(replica.process)
        credentials = Credentials(
            lambda: SimpleNamespace(
                host=URL, tls_server_name=None, proxy=None, get_api_key_with_prefix=lambda _: ""
            )
        )

        def notify(state: str, faults: tuple[str, ...]) -> None:
            del faults
            self.enforcement.set_state(replica, state)

        trier = self._trier(replica)
        client = ClusterClient(credentials, replica=replica.name, log=log)
        async with client:
            following = Following(
                client,
                Pod(replica.name, NAMESPACE, replica.uid, tuple(sorted(self.operations))),
                self._new_client(trier),
                replica.serving,
                operations=self.operations,
                wait_for_broken=False,
                kept_revisions=2,
                key_secret=KEY_SECRET,
                registry=replica.registry,
                log=log,
                notify=notify,
                record=lambda event, **details: None,
                certificate_writes=None,
                generation=generation_options(ServeSettings()),
                exceptions_keep_seconds=self.exceptions_keep_seconds,
                trier=trier,
                reports_not_asked=False,
                projects=self.projects,
                tick_seconds=self.tick_seconds,
            )
            await following.run()

    def _trier(self, replica: Replica) -> Trier | None:
        """Returns the replica's validator of policies: None in most worlds."""
        del replica
        return None

    def _new_client(self, trier: Trier | None) -> Client:
        del trier
        return new_client()

    def _logger(self, process: Process) -> product_log.Logger:
        def write(line: bytes) -> None:
            if not process.dead:
                event = orjson.loads(line)
                hidden = {"ts", "level", "logger", "msg"}
                fields = {key: value for key, value in event.items() if key not in hidden}
                self.loop.notify(process.name, f"{event['msg']} {fields or ''}")
                if "stacktrace" in event:  # a bug, whether of one object or of all
                    self.loop.fail(f"{process.name}: {event['msg']} {fields}")

        return product_log.Log(write).logger("cluster")

    # --- what happens --------------------------------------------------------------------------

    async def main(self) -> None:
        """The whole story."""
        chance = self.loop.random
        self._start_server()
        self.users.begin()
        for _ in range(chance.choice(self.replicas_chosen)):
            self.start_replica()
        self.loop.director.spawn(self._look_forever())
        for _ in range(chance.choice(HAPPENINGS)):
            await asyncio.sleep(chance.expovariate(1.0) + chance.choice(PAUSES_SECONDS))
            if not self.is_restored and chance.random() < BACKUP_SHARE:
                self.backup = self.storage.copy()
            if chance.random() < 0.6:
                self.users.write()
            else:
                await self._misfortune()
        await self._heal()
        await self._rest()

    async def _look_forever(self) -> None:
        """Checks again and again that changes are enforced in time."""
        while True:
            await asyncio.sleep(1.0)
            server = self.server
            if server is None or server.busy or server.torn:
                continue
            for replica in self.replicas:
                if why := self.enforcement.late(replica):
                    self.loop.fail(why)

    def _excuse(self, seconds: float, *replicas: Replica) -> None:
        """Something befalls these replicas, or all: they have made up for it after so long."""
        until = self.loop.now() + seconds
        if not replicas:
            self.excused_until = max(self.excused_until, until)
        for replica in replicas or self.replicas:
            replica.excused_until = max(replica.excused_until, until)

    def _start_server(self) -> None:
        chance = self.loop.random
        self.server = ApiServer(self.loop, self.network, self.storage)
        self.server.watch_lists = chance.random() < 0.5
        self.server.slow = chance.choice([0.01, 0.5])
        self.server.forgetful = chance.choice([0.0, 0.0, 0.5])
        self.server.start()

    async def _misfortune(self) -> None:
        chance, server = self.loop.random, self.server
        assert server is not None
        happening = chance.choice(MISFORTUNES)
        replica = chance.choice(self.replicas)
        self.disturbed = self.disturbed or happening not in HARMLESS
        self.loop.notify("fate", f"{happening} {replica.name}")
        if happening in {"restart", "compact", "cut", "well"}:
            self._excuse(RETRIES_SECONDS)
        match happening:
            case "restart":
                await killed(self.loop, server.process)
                server.stop()
                await asyncio.sleep(chance.expovariate(0.5))
                if chance.random() < 0.5:
                    self.storage.compact()
                self._start_server()
                self._excuse(RETRIES_SECONDS)
            case "restore" if self.backup is not None and not self.is_restored:
                await killed(self.loop, server.process)
                server.stop()
                await asyncio.sleep(chance.expovariate(0.5))
                self.is_restored = True
                self.storage.restore(self.backup, PODS)
                self.control_plane.resume()
                self.enforcement.restored(self.loop.now() + RETRIES_SECONDS)
                self._start_server()
                self._excuse(RETRIES_SECONDS)
            case "compact":
                self.storage.compact()
                if chance.random() < 0.7:
                    for link in list(self.network.links):
                        self.network.reset(link)
            case "crash" if not replica.process.dead:
                await killed(self.loop, replica.process)
                pod = self.storage.items(PODS).get((NAMESPACE, replica.name))
                self.replicas.remove(replica)
                if pod is not None:
                    self.start_replica(pod)
            case "delete pod" if len(self.replicas) > 1:
                self.storage.delete(PODS, NAMESPACE, replica.name)
                await killed(self.loop, replica.process)
                self.replicas.remove(replica)
            case "die":
                await self._die(replica)
            case "definition":
                await self.users.redefine()
            case "new replica" if len(self.replicas) < 3:
                self.start_replica()
            case _:
                self._cause(happening, replica, server)

    async def _die(self, replica: Replica) -> None:
        """A process ends, or whatever it could reach, and its Pod stays; others take its turns."""
        if len(self.replicas) == 1:
            self.start_replica()
        await killed(self.loop, replica.process)
        self.replicas.remove(replica)
        fate = self.loop.random.choice(list(FATES))
        pod = self.storage.get(PODS, NAMESPACE, replica.name)
        metadata = pod["metadata"]
        if fate == "terminating":
            metadata = {**metadata, "deletionTimestamp": "2026-01-01T00:00:00Z"}
        pod = self.storage.replace(PODS, NAMESPACE, replica.name, {**pod, "metadata": metadata}, "")
        pod = {**pod, "status": FATES[fate]}
        self.storage.replace(PODS, NAMESPACE, replica.name, pod, "status")
        self.dead[replica.name] = fate
        self.loop.notify("fate", f"the Pod {replica.name} stays and is {fate}")

    def _cause(self, fault: str, replica: Replica, server: ApiServer) -> None:
        chance = self.loop.random
        match fault:
            case "cut" | "silent":
                if fault == "silent":
                    self.silenced = True
                    self._excuse(SILENCE_SECONDS)
                for link in list(self.network.links):
                    if chance.random() < 0.5:
                        (self.network.reset if fault == "cut" else self.network.go_silent)(link)
            case "busy":
                server.busy = chance.choice([0.1, 0.5])
            case "torn":
                server.torn = 0.2
            case "hang":
                seconds = chance.choice([1.0, 20.0])
                replica.process.pause(seconds)
                self._excuse(seconds + RETRIES_SECONDS, replica)
            case "namespace":
                self.users.change_namespace()
            case _:
                server.busy = server.torn = 0.0

    async def _heal(self) -> None:
        self.loop.notify("fate", "all is well from now on")
        assert self.server is not None
        self.server.busy = self.server.torn = self.server.forgetful = 0.0
        self.server.slow = 0.01
        if self.disturbed:
            self._excuse(RETRIES_SECONDS)
        for name in list(self.dead):
            if self.loop.random.random() < 0.3:
                self.storage.delete(PODS, NAMESPACE, name)
                del self.dead[name]
        for replica in self.replicas:
            replica.process.paused_until = min(replica.process.paused_until, self.loop.now())

    async def _rest(self) -> None:
        """Wait until all replicas agree with the API server; then nothing is written."""
        loop = self.loop
        until = loop.now() + MEND_SECONDS
        while why := self._unsettled():
            if loop.now() > until:
                loop.fail(f"{MEND_SECONDS:.0f} seconds after the last misfortune: {why}")
                return
            await asyncio.sleep(1.0)
        # What is compared again after a while, conditions, a collector's orphans: let it come.
        # Who has a watch that went silent goes on by what it knew until it finds out.
        await asyncio.sleep(SILENCE_SECONDS if self.silenced else 20.0)
        if why := self._unsettled():
            loop.fail(f"what had settled does not hold: {why}")
        # Two that see a difference at once may both write; nobody does so again and again.
        if self.storage.idle_writes > len(self.replicas) and not self.disturbed:
            loop.fail(f"{self.storage.idle_writes} writes changed nothing")
        written = self.storage.version, self.storage.writes
        await asyncio.sleep(loop.random.choice(self.rests_seconds))
        if (self.storage.version, self.storage.writes) != written:
            changes = [
                f"{change.served.kind} {(change.after or change.before or {})['metadata']['name']}"
                for change in self.storage.history
                if change.version > written[0]
            ]
            loop.fail(f"at rest these are written: {changes or 'what does not differ'}")
        if why := self._unsettled():
            loop.fail(f"what had settled does not hold: {why}")
        if why := fights(self.storage):
            loop.fail(why)

    # --- what holds ----------------------------------------------------------------------------

    def _has_broken(self, held: Mapping[Key, Json]) -> bool:
        """Whether something there is that has to have an earlier revision to be enforced."""
        return any(is_broken(item["spec"]) for item in held.values())

    def _unsettled(self) -> str:
        held = dict(self.enforcement.held())
        templates = {name for kind, name in held if kind == TEMPLATES.kind}
        others = (TEMPLATES.kind, CONSTRAINT_GROUP)
        left = [key for key in held if key[0] not in others and key[0].lower() not in templates]
        if left:
            return f"the garbage collector has not taken {left} yet"
        for replica in self.replicas:
            if replica.state or replica.serving.revision is None:
                return f"{replica.name} is not ready: {replica.state}"
            self.enforcement.look(replica)
            if why := self.enforcement.gaps(replica, math.inf, math.inf):
                return why
        writing = self.replicas if "status" in self.operations else []
        broken = self._has_broken(held)
        if writing or not broken:  # elsewhere who has started since has no last good revision
            snapshots = [
                replica.serving.revision.snapshot
                for replica in self.replicas
                if replica.serving.revision is not None
            ]
            digests = {snapshot.digest for snapshot in snapshots}
            if len(digests) > 1:
                return f"replicas differ: {sorted(digests)}"
            if not broken and digests != {digest_of(held.values())}:
                return f"digests are not that of what the API server holds: {sorted(digests)}"
        failed = {name for name, fate in self.dead.items() if fate == "failed"}
        if writing and (left := orphans(self.storage, failed)):
            return f"statuses are left of Pods that have failed: {left}"
        return lies(held.values(), writing, self.dead.keys() - failed)
