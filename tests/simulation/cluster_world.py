"""The cluster's world: replicas that follow a simulated API server, and what befalls both.

What holds: every replica comes to serve what the API server holds, and all of them one digest; no
template or constraint is ever enforced in a state that the API server never had, nor a broken one,
nor an older one after a newer one; byPod says of each replica what it enforces, and of nobody else; and once all
rests, nothing is written.
"""

import asyncio
import dataclasses
from types import SimpleNamespace

import orjson

from tests.simulation.api_http import URL, ApiServer
from tests.simulation.api_server import Json, Refusal, Served, Storage
from tests.simulation.control_plane import NAMESPACES, PODS, TEMPLATES, ControlPlane
from tests.simulation.ends import killed
from tests.simulation.loop import Loop
from tests.simulation.network import Network
from tests.simulation.policies import (
    KINDS,
    code_cache,
    constraint,
    digest_of,
    is_broken,
    new_client,
    template,
)
from tests.simulation.process import Process
from webhook import log as product_log
from webhook.api.pod_status import Pod
from webhook.app.generation_options import generation_options
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import Credentials
from webhook.constraint.snapshot import Snapshot
from webhook.constraint.template import Template
from webhook.controllers.following import TICK_SECONDS, Following
from webhook.metrics.registry import Registry
from webhook.serving.revision import Serving
from webhook.settings.serve import ServeSettings

NAMESPACE = "waddle"
MUTATION = ("mutations.gatekeeper.sh", "expansion.gatekeeper.sh")
"""Groups that many clusters have not: their kinds are looked for again and again."""

MEND_SECONDS = 400.0
"""In which everything converges: beyond every back-off, and the silence of a watch."""

SILENCE_SECONDS = 120.0
"""In which a replica finds out that a watch is silent: 90 seconds, and its back-off."""

RETURNS_MAX = 3
"""How often an object's byPod may become what it was before: a container that restarts takes its
entry out and brings it again."""

OPERATIONS = [frozenset({"webhook", "status", "generate"})] * 2 + [
    frozenset({"webhook", "generate"})
]
"""What an installation's replicas carry out: in some nobody writes a status."""

TICKS_SECONDS = [TICK_SECONDS, 2.0, 2.0]
"""How often a replica looks by itself: that of the product, and one that is late as on a busy node."""

RESTS_SECONDS = [4.0, 4.0, 4.0, 30.0]
"""In which nothing is written, after that: in some worlds beyond every period, in most a moment."""

REPLICAS = [1, 1, 1, 1, 2, 2, 3]
HAPPENINGS = [1, 1, 1, 2, 2, 3, 8]
"""How many there are of each, by chance: small worlds find more in the same time, and some faults
need a large one."""


@dataclasses.dataclass
class Replica:
    """One replica: its Pod, its process, and what it serves."""

    name: str
    uid: str
    process: Process
    serving: Serving
    registry: Registry
    enforced: dict[tuple[str, str], int] = dataclasses.field(default_factory=dict)
    """By kind and name the version of the last state seen in force; a template's generation."""
    looked_at: Snapshot | None = None
    state: str = ""


class ClusterWorld:
    """One world; :meth:`main` is its director's."""

    def __init__(self, loop: Loop) -> None:
        code_cache()
        self.loop = loop
        self.network = Network(loop)
        self.network.latency = loop.random.choice([0.0005, 0.005])
        self.network.splitting = 0.01
        self.storage = Storage()
        self.operations = loop.random.choice(OPERATIONS)
        self.tick_seconds = loop.random.choice(TICKS_SECONDS)
        mutation = loop.random.random() < 0.75
        ControlPlane(loop, self.storage, left_out=() if mutation else MUTATION)
        self.storage.create(NAMESPACES, "", {"metadata": {"name": NAMESPACE}})
        self.replicas: list[Replica] = []
        self.made = 0
        self.silenced = False
        self.disturbed = False
        """Whether an answer may have been lost, so that its question was asked again."""
        self.server: ApiServer | None = None

    # --- replicas ------------------------------------------------------------------------------

    def start_replica(self, pod: Json | None = None) -> None:
        """A replica's process begins, in a new Pod or in one whose container restarts."""
        storage = self.storage
        if pod is None:
            self.made += 1
            body = {
                "metadata": {"name": f"replica-{self.made}", "labels": {"app": "waddle"}},
                "status": {
                    "phase": "Running",
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            }
            pod = storage.create(PODS, NAMESPACE, body)
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        process = self.loop.process(name)
        replica = Replica(name, uid, process, Serving(), Registry())
        self.replicas.append(replica)
        process.spawn(self._follow(replica))

    async def _follow(self, replica: Replica) -> None:
        log = self._logger(replica.process)
        credentials = Credentials(
            lambda: SimpleNamespace(
                host=URL, tls_server_name=None, proxy=None, get_api_key_with_prefix=lambda _: ""
            ),
            NAMESPACE,
        )

        def tell(state: str, faults: tuple[str, ...]) -> None:
            del faults
            replica.state = state
            self._look(replica)

        client = ClusterClient(credentials, replica=replica.name, log=log)
        async with client:
            following = Following(
                client,
                Pod(replica.name, NAMESPACE, replica.uid, tuple(sorted(self.operations))),
                new_client(),
                replica.serving,
                operations=self.operations,
                wait_for_broken=False,
                kept_revisions=2,
                registry=replica.registry,
                log=log,
                tell=tell,
                record=lambda event, **details: None,
                certificate_writes=None,
                generation=generation_options(ServeSettings()),
                tick_seconds=self.tick_seconds,
            )
            await following.run()

    def _logger(self, process: Process) -> product_log.Logger:
        def write(line: bytes) -> None:
            if not process.dead:
                event = orjson.loads(line)
                hidden = {"ts", "level", "logger", "msg"}
                fields = {key: value for key, value in event.items() if key not in hidden}
                self.loop.tell(process.name, f"{event['msg']} {fields or ''}")
                if "stacktrace" in event:  # a bug, whether of one object or of all
                    self.loop.fail(f"{process.name}: {event['msg']} {fields}")

        return product_log.Log(write).logger("cluster")

    def _look(self, replica: Replica) -> None:
        """What is in force now: some state that the API server had, and none before it."""
        revision = replica.serving.revision
        if revision is None or revision.snapshot is replica.looked_at:
            return
        replica.looked_at = revision.snapshot
        for item in revision.snapshot.constraints:
            document = item.document
            key = (item.kind, item.name)
            version = int(document["metadata"]["resourceVersion"])
            held = self.storage.ever.get((item.kind, "", item.name), ())
            same = [one for one in held if one["metadata"]["resourceVersion"] == str(version)]
            if not same or same[0].get("spec") != document.get("spec"):
                self.loop.fail(f"{replica.name} enforces {key} as it never was: {document['spec']}")
            last = replica.enforced.get(key, 0)
            if version < last:
                self.loop.fail(f"{replica.name} enforces {key} of {version} after {last}")
            replica.enforced[key] = version
        for entry in revision.snapshot.entries:
            self._look_at_template(replica, entry.template)

    def _look_at_template(self, replica: Replica, template: Template) -> None:
        """Its code is that of a state that was good, and none before the last one of this object."""
        metadata, spec = template.document["metadata"], template.document["spec"]
        held = self.storage.ever.get(("ConstraintTemplate", "", template.name), ())
        generation, key = metadata["generation"], ("ConstraintTemplate", metadata["uid"])
        same = [one for one in held if one["metadata"]["uid"] == metadata["uid"]]
        if not any(
            one["metadata"]["generation"] == generation and one["spec"] == spec for one in same
        ):
            self.loop.fail(f"{replica.name} enforces {template.name} as it never was: {spec}")
        if is_broken(spec):
            self.loop.fail(f"{replica.name} enforces {template.name} though it is broken")
        last = replica.enforced.get(key, 0)
        if generation < last:
            self.loop.fail(f"{replica.name} enforces {template.name} of {generation} after {last}")
        replica.enforced[key] = generation

    # --- what happens --------------------------------------------------------------------------

    async def main(self) -> None:
        """The whole story."""
        chance = self.loop.random
        self._start_server()
        for kind in KINDS[: chance.choice([1, 1, 1, 2])]:
            self.storage.create(TEMPLATES, "", template(kind, chance.randrange(3)))
        for _ in range(chance.choice(REPLICAS)):
            self.start_replica()
        for _ in range(chance.choice(HAPPENINGS)):
            await asyncio.sleep(chance.expovariate(1.0))
            if chance.random() < 0.6:
                self._write_policy()
            else:
                await self._misfortune()
        await self._heal()
        await self._rest()

    def _start_server(self) -> None:
        chance = self.loop.random
        self.server = ApiServer(self.loop, self.network, self.storage)
        self.server.watch_lists = chance.random() < 0.5
        self.server.slow = chance.choice([0.01, 0.5])
        self.server.start()

    def _write_policy(self) -> None:
        """A user's change."""
        chance, storage = self.loop.random, self.storage
        kind = chance.choice(KINDS)
        served = storage.kinds.get(("constraints.gatekeeper.sh", kind.lower()))
        name, variant = f"c{chance.randrange(2)}", chance.randrange(3)
        try:
            match chance.choice(["template", "constraint", "constraint", "constraint", "delete"]):
                case "template":
                    broken = chance.random() < 0.15
                    self._apply(TEMPLATES, template(kind, 3 if broken else variant))
                case "constraint" if served is not None:
                    self._apply(served, constraint(kind, name, variant))
                case "delete" if chance.random() < 0.3:
                    storage.delete(TEMPLATES, "", kind.lower())
                case "delete" if served is not None:
                    storage.delete(served, "", name)
        except Refusal:
            return

    def _apply(self, served: Served, body: Json) -> None:
        name = body["metadata"]["name"]
        before = self.storage.items(served).get(("", name))
        if before is None:
            self.storage.create(served, "", body)
        elif before["spec"] != body["spec"]:  # writes that change nothing are counted: not ours
            self.storage.replace(served, "", name, before | {"spec": body["spec"]}, "")

    async def _misfortune(self) -> None:
        chance, server = self.loop.random, self.server
        assert server is not None
        happening = chance.choice(
            [
                *("restart", "compact", "compact", "cut", "cut", "silent", "busy", "torn", "well"),
                *("crash", "delete pod", "new replica", "hang", "namespace"),
            ]
        )
        replica = chance.choice(self.replicas)
        self.disturbed = self.disturbed or happening not in {"well", "namespace", "new replica"}
        self.loop.tell("fate", f"{happening} {replica.name}")
        match happening:
            case "restart":
                await killed(self.loop, server.process)
                server.stop()
                await asyncio.sleep(chance.expovariate(0.5))
                if chance.random() < 0.5:
                    self.storage.compact()
                self._start_server()
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
            case "new replica" if len(self.replicas) < 3:
                self.start_replica()
            case _:
                self._spoil(happening, replica, server)

    def _spoil(self, what: str, replica: Replica, server: ApiServer) -> None:
        chance = self.loop.random
        match what:
            case "cut" | "silent":
                self.silenced = self.silenced or what == "silent"
                for link in list(self.network.links):
                    if chance.random() < 0.5:
                        (self.network.reset if what == "cut" else self.network.go_silent)(link)
            case "busy":
                server.busy = chance.choice([0.1, 0.5])
            case "torn":
                server.torn = 0.2
            case "hang":
                replica.process.pause(chance.choice([1.0, 20.0]))
            case "namespace":
                found = [name for _, name in self.storage.items(NAMESPACES) if name != NAMESPACE]
                if found:
                    self.storage.delete(NAMESPACES, "", found[0])
                else:
                    self.storage.create(NAMESPACES, "", {"metadata": {"name": "brief"}})
            case _:
                server.busy = server.torn = 0.0

    async def _heal(self) -> None:
        self.loop.tell("fate", "all is well from now on")
        assert self.server is not None
        self.server.busy = self.server.torn = 0.0
        self.server.slow = 0.01
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
        await asyncio.sleep(loop.random.choice(RESTS_SECONDS))
        if (self.storage.version, self.storage.writes) != written:
            changes = [
                f"{change.served.kind} {(change.after or change.before or {})['metadata']['name']}"
                for change in self.storage.history
                if change.version > written[0]
            ]
            loop.fail(f"at rest these are written: {changes or 'what does not differ'}")
        if why := self._unsettled():
            loop.fail(f"what had settled does not hold: {why}")
        if why := self._fights():
            loop.fail(why)

    # --- what holds ----------------------------------------------------------------------------

    def _policies(self) -> tuple[dict[str, Json], dict[tuple[str, str], Json]]:
        """Templates and constraints as the API server holds them."""
        templates = {name: item for (_, name), item in self.storage.items(TEMPLATES).items()}
        constraints = {}
        for (group, _), served in self.storage.kinds.items():
            if group == "constraints.gatekeeper.sh":
                for (_, name), item in self.storage.items(served).items():
                    constraints[served.kind, name] = item
        return templates, constraints

    def _unsettled(self) -> str:
        templates, constraints = self._policies()
        if left := [key for key in constraints if key[0].lower() not in templates]:
            return f"the garbage collector has not taken {left} yet"
        digests = set()
        broken = any(is_broken(item["spec"]) for item in templates.values())
        for replica in self.replicas:
            revision = replica.serving.revision
            if replica.state or revision is None:
                return f"{replica.name} is not ready: {replica.state}"
            self._look(replica)
            digests.add(revision.snapshot.digest)
            if broken:
                continue  # a last good revision is enforced, all replicas the same one
            serves = {
                (item.kind, item.name): item.document["spec"]
                for item in revision.snapshot.constraints
            }
            holds = {key: item["spec"] for key, item in constraints.items()}
            if serves != holds:
                return (
                    f"{replica.name} serves {sorted(serves)}, the API server holds {sorted(holds)}"
                )
        if broken and "status" not in self.operations:
            return ""  # nobody kept the last good revision: who has started since has none
        if len(digests) > 1:
            return f"replicas differ: {sorted(digests)}"
        if not broken and digests != {digest_of(templates.values(), constraints.values())}:
            return f"digests are not that of what the API server holds: {sorted(digests)}"
        return self._lies(templates, constraints)

    def _fights(self) -> str:
        """Whose byPod was taken back to what it had been again and again: two that disagree."""
        for (kind, _, name), states in self.storage.ever.items():
            told: list[bytes] = []
            for state in states:
                by_pod = (state.get("status") or {}).get("byPod")
                now = orjson.dumps([state["metadata"]["uid"], by_pod])
                if not told or told[-1] != now:
                    told.append(now)
            if len(told) - len(set(told)) > RETURNS_MAX:
                return f"byPod of {kind} {name} went back {len(told) - len(set(told))} times"
        return ""

    def _lies(self, templates: dict[str, Json], constraints: dict[tuple[str, str], Json]) -> str:
        """What byPod says that is not so; where nobody writes statuses it says nothing."""
        writing = self.replicas if "status" in self.operations else []
        live = sorted(replica.name for replica in writing)
        for item in (*templates.values(), *constraints.values()):
            entries = (item.get("status") or {}).get("byPod") or []
            name = f"{item['kind']} {item['metadata']['name']}"
            said = sorted(entry["id"] for entry in entries)
            if said != live:
                return f"byPod of {name} names {said}, there are {live}"
            generation = item["metadata"]["generation"]
            if late := [e["id"] for e in entries if e.get("observedGeneration") != generation]:
                return f"byPod of {name}: {late} are not at generation {generation}"
        return ""
