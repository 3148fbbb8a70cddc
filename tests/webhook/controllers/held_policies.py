"""A replica that holds changes of policies until it is known what comes of them."""

import asyncio
from contextlib import asynccontextmanager
from itertools import count

from tests.patience import PATIENCE_SECONDS, turns_until
from tests.webhook.cluster.fault_server import scripted
from tests.webhook.controllers.bench import KIND, REGO, template
from tests.webhook.controllers.revision_server import RevisionServer
from tests.webhook.controllers.signing import keys_of, signed_revision
from webhook import __version__
from webhook.api.gvk import gvk_of
from webhook.api.pod_status import Pod
from webhook.api.revision import digest_of, name_of
from webhook.api.revision_outcome import TrialOutcome
from webhook.cluster.client import ClusterClient
from webhook.cluster.store import Change, Key
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.controllers.apply.prevalidation import Prevalidation, Trier
from webhook.controllers.object_faults import ObjectFaults
from webhook.controllers.revisions.keeper import RevisionKeeper
from webhook.controllers.revisions.outcome_records import OutcomeRecords
from webhook.log import Log
from webhook.policy_kinds.known import TEMPLATE, constraint_gvk
from webhook.replicas import rendezvous
from webhook.trials.trials import LARGE_BYTES
from webhook.watch.queue import Event


class Held:
    """A replica that serves policies, and what it released."""

    def __init__(self, client, server, trials):
        self.server = server
        self.lines: list[bytes] = []
        log = Log(self.lines.append).logger("cluster")
        self.policies = Client(targets=[AdmissionTarget()], drivers=[RegoDriver()])
        self.pod = Pod("waddle-1", "waddle-system", "uid-1")
        keys = keys_of(client)
        self.revisions = RevisionKeeper(client, self.pod, keys, log, limit=2, notify=lambda _: None)
        self.is_serving, self.is_known, self.are_kept = True, False, True
        self.writers = {"uid-1"}
        self.silent: set[str] = set()
        """Pods that are there, of which no status was heard."""
        self.released: list[Event] = []
        self.running: asyncio.Task[None] | None = None
        self.records = _Loaded(client, self.revisions, log)
        self.prevalidation = Prevalidation(
            self.policies,
            self,
            self.pod,
            Trier(trials, 1.0),
            revisions=self.revisions,
            records=self.records,
            writers=lambda: frozenset(self.writers),
            working=lambda: frozenset(self.writers | self.silent),
            release=self.released.append,
            object_faults=ObjectFaults(log),
        )

    def is_new(self, group, name, document, digest):
        """Whether it is enforced already."""
        return not self.is_known

    def holds(self, document, kind="set"):
        """Whether a change of an object waits."""
        return self.prevalidation.holds(event(document, kind))

    async def until_released(self, number=1):
        """Wait for what is held."""
        await turns_until(lambda: len(self.released) >= number)

    def arrives(self, document, verdict, uid="uid-2", version=__version__):
        """The watch tells what another replica said."""
        made = self.writes(document, verdict, uid, version)
        self.revisions.change([Change("set", Key("", made["metadata"]["name"]), made)])

    def writes(self, document, verdict, uid, version):
        """Writes another replica's outcome that the watch has not reported yet."""
        outcome = TrialOutcome(verdict, "waddle-2", uid, version, "2026-01-01T00:00:00Z")
        made = signed_revision(document, outcome)
        made["metadata"]["resourceVersion"] = "1"
        self.server.kept[made["metadata"]["name"]] = made
        return made

    def last_outcome(self, document):
        """Returns the last verdict and its replica for an object, as the API server has it."""
        kept = self.server.kept.get(name_of(document, digest_of(document)))
        if kept is None:
            return None
        outcome = kept["status"]["outcome"]
        return outcome["verdict"], outcome["triedBy"]["uid"]

    def has_another_first(self, document):
        """Adds another replica whose turn comes before ours; returns its UID."""
        group = "ConstraintTemplate" if document["kind"] == "ConstraintTemplate" else KIND
        key = f"revision/{group}/{document['metadata']['name']}"
        other = next(
            uid
            for number in count(2)
            if rendezvous.rank(key, {"uid-1", uid := f"uid-{number}"}, "uid-1")
        )
        self.writers.add(other)
        return other


class _Loaded(OutcomeRecords):
    """Outcome records that count as kept: no watch runs here."""

    @property
    def are_kept(self):
        return True


def event(document, kind="set"):
    """A change as the watch tells it."""
    gvk = TEMPLATE if document["kind"] == "ConstraintTemplate" else constraint_gvk(KIND)
    assert gvk.kind == gvk_of(document).kind
    return Event(kind, gvk, Key("", document["metadata"]["name"]), document)


def played(folder, trials, story):
    """Play a story with a replica."""

    async def run():
        server = RevisionServer()
        async with (
            serving(folder, server) as credentials,
            ClusterClient(credentials) as client,
            asyncio.timeout(PATIENCE_SECONDS),
            asyncio.TaskGroup() as tasks,
        ):
            held = Held(client, server, trials)
            held.running = tasks.create_task(held.prevalidation.run())
            await asyncio.sleep(0)
            await story(held)
            held.running.cancel()

    asyncio.run(run())


@asynccontextmanager
async def serving(folder, server):
    """Credentials for a server that has begun."""
    async with scripted(folder) as (played, credentials):
        played.serve = server.serve
        yield credentials


def large_template():
    """Returns a template that a replica announces before its trial."""
    large = template(rego=REGO + "#" * LARGE_BYTES, uid="large")
    large["metadata"]["name"] = "k8slarge"
    large["spec"]["crd"]["spec"]["names"]["kind"] = "K8sLarge"
    return large
