"""A new policy is held until one replica has said what comes of it, and then applied by each."""

import asyncio
import json
from contextlib import asynccontextmanager
from itertools import count

import pytest

from tests.patience import PATIENCE_SECONDS, turns_until
from tests.webhook.cluster.fault_server import scripted
from tests.webhook.controllers.revision_server import RevisionServer
from tests.webhook.controllers.test_policies import KIND, REGO, constraint, template
from webhook import __version__
from webhook.api.gvk import gvk_of
from webhook.api.pod_status import Pod
from webhook.api.revision import digest_of, name_of, revision_object
from webhook.api.revision_outcome import TrialOutcome
from webhook.cluster.client import ClusterClient
from webhook.cluster.store import Change, Key
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.controllers import outcome_records, prevalidation
from webhook.controllers.outcome_records import OutcomeRecords
from webhook.controllers.prevalidation import Prevalidation, Trier
from webhook.controllers.reconciler import TEMPLATE, constraint_gvk
from webhook.controllers.revision_keeper import RevisionKeeper
from webhook.controllers.spoiled import Spoiled
from webhook.log import Log
from webhook.replicas import rendezvous
from webhook.trials.trials import LARGE_BYTES, Trials, is_large
from webhook.watch.queue import Event

BROKEN = template(rego="package a\nviolation[")


@pytest.fixture(scope="module")
def trials():
    """Processes that try policies."""
    found = Trials(tell=lambda message, *, error: None, tries_all=lambda: True)
    yield found
    found.stop()


@pytest.fixture
def tried(trials, monkeypatch):
    """What is tried from now on, in order."""
    tried, find_out = [], trials.found_out_all

    def noted(asked, seconds, tell):
        tried.extend(one.document for one in asked)
        find_out(asked, seconds, tell)

    monkeypatch.setattr(trials, "found_out_all", noted)
    return tried


class Held:
    """A replica that serves policies, and what it released."""

    def __init__(self, client, server, trials):
        self.server = server
        self.lines: list[bytes] = []
        log = Log(self.lines.append).logger("cluster")
        self.policies = Client(targets=[AdmissionTarget()], drivers=[RegoDriver()])
        self.pod = Pod("waddle-1", "waddle-system", "uid-1")
        self.revisions = RevisionKeeper(client, self.pod, log, limit=2, tell=lambda _: None)
        self.is_serving, self.is_known, self.are_kept = True, False, True
        self.writers = {"uid-1"}
        self.unheard: set[str] = set()
        """Pods that are there, of which no status was heard."""
        self.released: list[Event] = []
        self.records = _Loaded(client, self.revisions, log)
        self.prevalidation = Prevalidation(
            self.policies,
            self,
            self.pod,
            Trier(trials, 1.0),
            revisions=self.revisions,
            records=self.records,
            writers=lambda: frozenset(self.writers),
            working=lambda: frozenset(self.writers | self.unheard),
            release=self.released.append,
            spoiled=Spoiled(log),
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

    def is_told(self, document, verdict, uid="uid-2", version=__version__):
        """The watch tells what another replica said."""
        made = self.writes(document, verdict, uid, version)
        self.revisions.change([Change("set", Key("", made["metadata"]["name"]), made)])

    def writes(self, document, verdict, uid, version):
        """Another replica has said something, of which the watch has told nothing yet."""
        outcome = TrialOutcome(verdict, "waddle-2", uid, version, "2026-01-01T00:00:00Z")
        made = revision_object(document, digest_of(document), outcome)
        made["metadata"]["resourceVersion"] = "1"
        self.server.kept[made["metadata"]["name"]] = made
        return made

    def said(self, document):
        """Who said what of an object last, as the API server has it."""
        kept = self.server.kept.get(name_of(document, digest_of(document)))
        if kept is None:
            return None
        outcome = kept["status"]["outcome"]
        return outcome["verdict"], outcome["triedBy"]["uid"]

    def has_another_first(self, document):
        """Another replica is there, whose turn it is before ours; its UID."""
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
    """Whose revisions are known: no watch runs here."""

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
            running = tasks.create_task(held.prevalidation.run())
            await asyncio.sleep(0)
            await story(held)
            running.cancel()

    asyncio.run(run())


@asynccontextmanager
async def serving(folder, server):
    """Credentials for a server that has begun."""
    async with scripted(folder) as (played, credentials):
        played.serve = server.serve
        yield credentials


def test_a_new_policy_is_tried_told_of_and_then_applied(tmp_path, trials):
    async def story(held):
        assert held.holds(template())
        assert held.released == []
        await held.until_released()
        assert held.released == [event(template())]
        assert held.said(template()) == ("passed", "uid-1")
        held.policies.add_template(template())
        assert held.holds(constraint())
        await held.until_released(2)
        assert held.said(constraint()) == ("passed", "uid-1")
        assert not held.holds(constraint())  # What is known of it need not be found out.

    played(tmp_path, trials, story)


def test_what_another_replica_has_tried_is_not_tried_again(tmp_path, trials):
    """It is first in turn, says that it is at it, and comes to an end."""

    async def story(held):
        document = template()
        other = held.has_another_first(document)
        assert held.holds(document)
        held.is_told(document, "trying", other)
        await asyncio.sleep(0)
        assert held.released == []
        held.is_told(document, "passed", other)
        await held.until_released()
        assert held.server.requests == []

    played(tmp_path, trials, story)


@pytest.mark.parametrize(("version", "tries"), [(__version__, 0), ("0.0.1", 1)])
def test_what_is_written_already_and_was_not_heard_of_yet_is_not_tried_again(
    tmp_path, trials, tried, monkeypatch, version, tries
):
    """The write that says that we are at it finds it; what another version found is not ours."""
    monkeypatch.setattr(prevalidation, "TURN_SECONDS", 0.01)

    async def story(held):
        document = template()
        other = held.has_another_first(document)
        held.writes(document, "ended", other, version)
        assert held.holds(document)
        await held.until_released()
        assert len(tried) == tries
        assert held.said(document) == ("ended", other)

    played(tmp_path, trials, story)


def test_a_replica_that_is_first_and_says_nothing_is_not_waited_for_any_longer(
    tmp_path, trials, monkeypatch
):
    monkeypatch.setattr(prevalidation, "TURN_SECONDS", 0.01)

    async def story(held):
        held.has_another_first(template())
        assert held.holds(template())
        await held.until_released()
        assert held.said(template()) == ("passed", "uid-1")

    played(tmp_path, trials, story)


def large_template():
    """One that a replica says it is at before it begins."""
    large = template(rego=REGO + "#" * LARGE_BYTES, uid="large")
    large["metadata"]["name"] = "k8slarge"
    large["spec"]["crd"]["spec"]["names"]["kind"] = "K8sLarge"
    return large


def test_who_is_at_it_is_waited_for_though_no_status_of_it_was_heard_of(tmp_path, trials, tried):
    """Before the first policy there is none: each took the others' word for that of one gone."""
    large = large_template()
    name = name_of(large, digest_of(large))

    async def story(held):
        held.unheard.add("uid-2")
        held.writes(large, "trying", "uid-2", __version__)
        assert held.holds(large)
        # The write that says that we are at it finds the other's word.
        await turns_until(lambda: held.revisions.named("large", name) is not None)
        for _ in range(10):
            await asyncio.sleep(0)
        held.is_told(large, "ended", "uid-2")
        await held.until_released()
        assert tried == []
        assert [method for method, _ in held.server.requests] == ["POST", "GET"]
        assert held.said(large) == ("ended", "uid-2")

    played(tmp_path, trials, story)


def test_a_large_policy_is_not_tried_before_the_api_server_has_taken_its_word(
    tmp_path, trials, tried, monkeypatch
):
    """However long that takes: each replica would spend seconds of a processor on it."""
    monkeypatch.setattr(prevalidation, "RECORD_SECONDS", 0.0)
    for module in (prevalidation, outcome_records):
        monkeypatch.setattr(module, "WRITE_SECONDS", PATIENCE_SECONDS)
    large = large_template()

    async def story(held):
        held.server.held_name = name_of(large, digest_of(large))
        assert held.holds(large)
        await held.server.waits.wait()
        assert held.holds(template())  # goes all its way meanwhile
        await held.until_released()
        assert held.released == [event(template())]
        assert [is_large(one) for one in tried] == [False]
        held.server.opened.set()
        await held.until_released(2)
        assert [is_large(one) for one in tried] == [False, True]
        assert held.said(large) == ("passed", "uid-1")

    played(tmp_path, trials, story)


def test_who_said_that_it_is_at_it_and_is_gone_is_not_waited_for(tmp_path, trials, monkeypatch):
    monkeypatch.setattr(prevalidation, "TURN_SECONDS", 0.01)

    async def story(held):
        document = template()
        other = held.has_another_first(document)
        assert held.holds(document)
        held.is_told(document, "trying", other)
        held.writers.discard(other)
        await held.until_released()
        assert held.said(document) == ("passed", "uid-1")

    played(tmp_path, trials, story)


def test_a_replica_that_may_not_write_waits_for_those_who_do(tmp_path, trials, monkeypatch):
    """And tries for itself where none says anything."""
    monkeypatch.setattr(prevalidation, "TURN_SECONDS", 0.01)

    async def story(held):
        held.writers = {"uid-2", "uid-3"}
        held.server.refuses = True
        assert held.holds(template())
        await held.until_released()
        assert held.said(template()) is None

    played(tmp_path, trials, story)


def test_what_changes_while_it_is_held_is_applied_as_it_is_at_last(tmp_path, trials):
    async def story(held):
        first, second = template(), template(generation=2)
        second["spec"] = {**second["spec"], "a": 1}
        labelled = template(generation=2)
        labelled["spec"] = second["spec"]
        labelled["metadata"]["labels"] = {"a": "b"}
        assert all(held.holds(one) for one in (first, second, labelled))
        await held.until_released()
        assert [one.object for one in held.released] == [labelled]
        assert held.said(labelled) == ("passed", "uid-1")

    played(tmp_path, trials, story)


@pytest.mark.parametrize("goes", ["itself", "its template"])
def test_what_goes_while_it_is_held_is_not_applied(tmp_path, trials, goes):
    async def story(held):
        held.policies.add_template(template())
        assert held.holds(constraint())
        gone = constraint() if goes == "itself" else template()
        assert not held.holds(gone, "delete")
        assert held.holds({**template(), "metadata": {**template()["metadata"], "uid": "new"}})
        await held.until_released()
        assert [one.gvk for one in held.released] == [TEMPLATE]

    played(tmp_path, trials, story)


def test_what_is_being_deleted_is_not_held(tmp_path, trials):
    async def story(held):
        going = template()
        going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        assert not held.holds(going)

    played(tmp_path, trials, story)


def test_nothing_is_held_that_need_not_be_tried_or_cannot_be(tmp_path, trials):
    async def story(held):
        assert not held.holds(constraint())  # Its template is not in force.
        held.is_serving = False
        assert not held.holds(template())
        held.is_serving, held.is_known = True, True
        assert not held.holds(template())
        held.is_known = False
        held.is_told(template(), "refused")
        assert not held.holds(template())
        held.is_told(template(uid="other"), "refused", version="0.0.0-other")
        assert held.holds(template(uid="other"))  # Another version may take less.
        synced = Event("synced", TEMPLATE)
        assert not held.prevalidation.holds(synced)

    played(tmp_path, trials, story)


def test_beyond_a_number_of_changes_the_others_are_tried_as_they_are_applied(
    tmp_path, trials, monkeypatch
):
    monkeypatch.setattr(prevalidation, "HELD_MAX", 0)

    async def story(held):
        assert not held.holds(template())

    played(tmp_path, trials, story)


def test_a_bug_in_writing_an_outcome_costs_its_policy_alone(tmp_path, trials, monkeypatch):
    """It ended the session at the cluster, also where nobody waited for the write any more."""

    async def story(held):
        def broken(*_, **__):
            raise ZeroDivisionError("a bug")

        with monkeypatch.context() as patched:
            patched.setattr(outcome_records.OutcomeRecords, "_standing", broken)
            assert held.holds(template())
            await held.until_released()
        assert held.released == [event(template())]
        (line,) = map(json.loads, held.lines)
        assert "ZeroDivisionError" in line["stacktrace"]
        other = template(rego=REGO + "# other", uid="other")
        other["metadata"]["name"] = "k8sother"
        other["spec"]["crd"]["spec"]["names"]["kind"] = "K8sOther"
        assert held.holds(other)
        await held.until_released(2)
        assert held.said(other) == ("passed", "uid-1")

    played(tmp_path, trials, story)


def test_a_bug_in_a_write_that_nobody_waits_for_any_more_is_told_of(tmp_path, trials, monkeypatch):
    monkeypatch.setattr(prevalidation, "WRITE_SECONDS", 0.0)
    standing, written = outcome_records.OutcomeRecords._standing, asyncio.Event()

    def broken(self, document, made):
        written.set()
        standing(self, document, made)
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(outcome_records.OutcomeRecords, "_standing", broken)

    async def story(held):
        assert held.holds(template())
        await held.until_released()
        await written.wait()
        for _ in range(3):
            await asyncio.sleep(0)
        (line,) = map(json.loads, held.lines)
        assert "ZeroDivisionError" in line["stacktrace"]

    played(tmp_path, trials, story)
