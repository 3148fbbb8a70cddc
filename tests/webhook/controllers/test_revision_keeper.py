"""A replica's knowledge of kept revisions: from its reads, its writes and its watch."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from tests.cluster import write_kubeconfig
from tests.patience import PATIENCE_SECONDS
from tests.webhook.cluster.fault_server import scripted, status
from tests.webhook.controllers.bench import template
from tests.webhook.controllers.signing import FOREIGN, entry, keys_of, signed_revision
from webhook import __version__
from webhook.api.pod_status import Pod
from webhook.api.revision import digest_of, read_revision
from webhook.api.revision_outcome import TrialOutcome
from webhook.cluster.client import ClusterClient
from webhook.cluster.credentials import load_credentials
from webhook.cluster.reflector import Settings
from webhook.cluster.store import Change, Key
from webhook.controllers.object_faults import TEMPLATES
from webhook.controllers.revisions import keeper as revision_keeper
from webhook.controllers.revisions.keeper import RevisionKeeper
from webhook.controllers.revisions.keys import RevisionKey
from webhook.controllers.revisions.revisions import InForce
from webhook.log import Log

KEYS = "/api/v1/namespaces/waddle-system/secrets/waddle-revision-keys"
REVISIONS = "/apis/policy.waddle.dev/v1alpha1/policyrevisions"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/policyrevisions.policy.waddle.dev"
DOCUMENT = template()
DOCUMENT["metadata"] |= {"uid": "u", "generation": 1}
DIGEST = digest_of(DOCUMENT)


class Kept:
    """A keeper, whom it told, and its log."""

    def __init__(self, client, **options):
        self.changes, self.lines, self.requests = [], [], []
        log = Log(self.lines.append).logger("revisions")
        pod = Pod("waddle-1", "waddle-system", "uid-1")
        often = Settings(
            missing_seconds=0.01,
            backoff_initial_seconds=0.01,
            backoff_max_seconds=0.02,
            watch_list=False,
        )
        self.keeper = RevisionKeeper(
            client,
            pod,
            keys_of(client),
            log,
            limit=2,
            notify=self.changes.extend,
            settings=often,
            **options,
        )

    def take(self, verdict, **outcome):
        """Read that a replica said this of the template's first generation."""
        self.keeper.known.take(tried_revision(verdict, **outcome))


def tried_revision(verdict, version="1", message="", generation=1):
    """The revision of a generation of the template, with what a replica said of it."""
    outcome = TrialOutcome(verdict, "waddle-0", "uid-0", version, "2026-01-01T00:00:00Z", message)
    return signed_revision(at(generation), outcome, digest=DIGEST)


def at(generation):
    """The template at a generation."""
    return {**DOCUMENT, "metadata": {**DOCUMENT["metadata"], "generation": generation}}


@pytest.fixture
def kept(tmp_path):
    """Returns a keeper that connects to no server."""
    credentials = load_credentials(write_kubeconfig(tmp_path / "config", "http://127.0.0.1:1"))
    return Kept(ClusterClient(credentials))


def test_what_was_read_while_another_tried_does_not_undo_what_the_watch_reported_since(kept):
    """A replica that trusted the older read waited four minutes for an outcome that was there."""
    name = read_revision(tried_revision("trying")).name
    for verdict, known in (("trying", "trying"), ("ended", "ended"), ("trying", "ended")):
        kept.take(verdict)
        assert kept.keeper.known.named("u", name).outcome.verdict == known


@pytest.mark.parametrize(
    ("verdict", "version", "refusal"),
    [
        ("ended", __version__, "too slow (tried by waddle-0)"),
        ("ended", "0.0.0-other", ""),
        ("refused", __version__, ""),
        ("trying", __version__, ""),
        ("passed", __version__, ""),
    ],
)
def test_a_generation_that_went_beyond_its_bounds_elsewhere_need_not_be_tried_here(
    kept, verdict, version, refusal
):
    """A fault of the text is found again, with its place; another version may take less."""
    assert kept.keeper.known.refusal(DOCUMENT, DIGEST) == ""
    kept.take(verdict, version=version, message="too slow")
    assert kept.keeper.known.refusal(DOCUMENT, DIGEST) == refusal
    assert kept.keeper.known.refusal(DOCUMENT, "another") == ""


def change(kind, document):
    """Returns a change as the watch reports it."""
    return Change(kind, Key("", document["metadata"]["name"]), document)


def test_what_the_watch_tells_late_does_not_undo_what_was_written_since(kept):
    """It would be tried once more, and whoever waits for its end would wait again."""
    name = read_revision(tried_revision("trying")).name
    kept.keeper.change([change("set", tried_revision("trying"))])
    kept.take("ended")
    kept.keeper.change([change("set", tried_revision("trying"))])
    assert kept.keeper.known.named("u", name).outcome.verdict == "ended"
    kept.keeper.change([change("set", tried_revision("passed"))])
    assert kept.keeper.known.named("u", name).outcome.verdict == "passed"

    anew = tried_revision("trying")
    anew["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z"
    kept.keeper.change([change("set", anew)])
    assert kept.keeper.known.named("u", name).outcome.verdict == "trying"


def test_an_answer_that_comes_after_its_revision_has_gone_again_is_of_nothing(kept):
    """The watch had told both, and no event would ever have taken it back: it was never made anew."""
    document = tried_revision("passed")
    document["metadata"]["uid"] = "of-the-revision"
    name = read_revision(document).name
    for kind in ("set", "delete"):
        kept.keeper.change([change(kind, document)])
    kept.keeper.known.take(document)
    assert kept.keeper.known.named("u", name) is None

    again = {**document, "metadata": {**document["metadata"], "uid": "of-another"}}
    kept.keeper.known.take(again)
    assert kept.keeper.known.named("u", name) is not None


def test_a_revision_that_cannot_be_read_is_reported_and_the_others_count(kept):
    whole = tried_revision("passed")
    torn = {**whole, "metadata": {**whole["metadata"], "name": "torn"}, "spec": {}}
    kept.keeper.change([change("set", torn), change("set", whole)])
    assert [item.name for item in kept.keeper.known.of("u")] == [whole["metadata"]["name"]]
    assert len(kept.changes) == 1
    (line,) = kept.lines
    assert b"a PolicyRevision was ignored" in line or b"cannot be followed" in line
    kept.keeper.change([change("delete", whole)])
    assert list(kept.keeper.known.of("u")) == []
    assert kept.keeper.known.named("u", whole["metadata"]["name"]) is None


@asynccontextmanager
async def loading(folder, answers, **options):
    """A keeper that watches a server with answers for each path, whose last one is repeated."""

    class ByPath(list):
        """A script whose next answer is one of the path asked for last."""

        def __bool__(self):
            return True

        def pop(self, _=-1):
            answer, *others = answers[server.requests[-1][0]]
            answers[server.requests[-1][0]] = others or [answer]
            return answer

    async with (
        scripted(folder, compares=False) as (server, credentials),
        ClusterClient(credentials) as client,
    ):
        server.script = ByPath()
        answers.setdefault(KEYS, [(200, [json.dumps({"data": entry()}).encode()], "end")])
        kept = Kept(client, **options)
        kept.requests = server.requests
        async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
            running = tasks.create_task(kept.keeper.run())
            yield kept
            running.cancel()


EMPTY = (200, [b'{"items":[],"metadata":{"resourceVersion":"1"}}'], "end")


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ({REVISIONS: [status(403)]}, "403"),
        ({REVISIONS: [status(404)], CRD: [status(404)]}, "the cluster has no CRD policyrevisions"),
    ],
    ids=["no rights", "no kind"],
)
def test_a_replica_begins_without_revisions_where_there_can_be_none_and_says_so(
    tmp_path, answers, reason, monkeypatch
):
    monkeypatch.setattr(revision_keeper, "PROBE_SECONDS", 0.05)

    async def run():
        failed = []
        async with loading(tmp_path, answers) as kept:
            await kept.keeper.wait_loaded(failed.append)
            assert not kept.keeper.is_loaded
        (line,) = (json.loads(line) for line in kept.lines if b"no last good revision" in line)
        assert reason in line["reason"]
        assert failed == []

    asyncio.run(run())


@pytest.mark.parametrize(
    "answers",
    [
        {REVISIONS: [status(404)], CRD: [(200, [b"{}"], "end")]},
        {REVISIONS: [status(404)], CRD: [status(500)]},
        {REVISIONS: [status(500)]},
    ],
    ids=["the kind is not served yet", "nobody says whether there is a kind", "an outage"],
)
def test_a_replica_waits_for_revisions_that_may_come_yet_and_says_why(
    tmp_path, answers, monkeypatch
):
    monkeypatch.setattr(revision_keeper, "PROBE_SECONDS", 0.05)
    failed = []

    def they_come(error):
        failed.append(error)
        answers[REVISIONS] = [EMPTY]

    async def run():
        async with loading(tmp_path, answers) as kept:
            await kept.keeper.wait_loaded(they_come)
            assert kept.keeper.is_loaded
            assert kept.keeper.count == 0
        assert not [line for line in kept.lines if b"no last good revision" in line]

    asyncio.run(run())
    assert failed


WRITERS = frozenset({"uid-1"})
DONE = (200, [b"{}"], "end")


@pytest.fixture
def soon(monkeypatch):
    """Sets the wait before a write to 0; each turn takes as long as a test may."""
    monkeypatch.setattr(revision_keeper, "SETTLED_SECONDS", 0.0)
    monkeypatch.setattr(revision_keeper, "TURN_SECONDS", 0.0)


def dropped(folder, *steps, answers=(DONE,), writers=WRITERS, in_force=0):
    """The generations that a keeper asks the server to delete, in order, and its log.

    It is told of the revisions of each step when it rests after those before.
    """

    def path(number):
        return f"{REVISIONS}/{tried_revision('passed', generation=number)['metadata']['name']}"

    generation_at = {path(number): number for number in range(1, 10)}
    served = {REVISIONS: [EMPTY]} | {one: list(answers) for one in generation_at}

    async def run():
        asked_for = None if writers is None else lambda: writers
        async with loading(folder, served, writers=asked_for) as kept:
            await kept.keeper.wait_loaded([].append)
            if in_force:
                kept.keeper.keep(
                    {(TEMPLATES, DOCUMENT["metadata"]["name"]): InForce(at(in_force), DIGEST)}
                )
            for step in steps:
                kept.keeper.change([change("set", one) for one in step])
                while not kept.keeper.keeper.queue.is_idle:  # noqa: ASYNC110  # no event tells
                    await asyncio.sleep(0.01)
            names = [one for one, _ in kept.requests if one in generation_at]
            return [generation_at[one] for one in names], kept.lines

    return asyncio.run(run())


CONSTRAINT = {
    "apiVersion": "constraints.gatekeeper.sh/v1beta1",
    "kind": "K8sGone",
    "metadata": {"name": "one", "uid": "c", "generation": 1},
    "spec": {},
}
OF_CONSTRAINT = "/apis/constraints.gatekeeper.sh/v1beta1/k8sgone/one"
OF_TEMPLATE = "/apis/templates.gatekeeper.sh/v1/constrainttemplates/k8sgone"


def with_uid(uid):
    """An object with this UID, as the API server answers."""
    return (200, [json.dumps({"metadata": {"uid": uid}}).encode()], "end")


@pytest.mark.parametrize(
    ("constraint", "template", "goes"),
    [
        (status(404), status(404), True),
        (with_uid("made anew"), status(404), True),
        (with_uid("c"), status(404), False),
        (status(404), with_uid("t"), False),
    ],
    ids=["both gone", "another of its name", "still there", "its kind is there"],
)
def test_revisions_of_a_constraint_that_went_with_its_kind_go(
    constraint, template, goes, tmp_path, soon, monkeypatch
):
    """The garbage collector cannot look up an owner of a kind that came and went between its looks."""
    monkeypatch.setattr(revision_keeper, "ORPHAN_SECONDS", 0.0)
    kept_one = signed_revision(CONSTRAINT, None, digest=digest_of(CONSTRAINT))
    own = f"{REVISIONS}/{kept_one['metadata']['name']}"
    served = {
        REVISIONS: [EMPTY],
        OF_CONSTRAINT: [constraint],
        OF_TEMPLATE: [template],
        own: [DONE],
    }

    async def run():
        async with loading(tmp_path, served, writers=lambda: WRITERS) as kept:
            await kept.keeper.wait_loaded([].append)
            kept.keeper.change([change("set", kept_one)])
            while not kept.keeper.keeper.queue.is_idle:  # noqa: ASYNC110  # no event tells
                await asyncio.sleep(0.01)
            return [path for path, _ in kept.requests]

    requested = asyncio.run(run())
    assert OF_CONSTRAINT in requested
    assert (own in requested) is goes


def refused(*generations):
    """Revisions of generations that cannot be enforced."""
    return [tried_revision("refused", generation=number) for number in generations]


def test_of_generations_that_cannot_be_enforced_the_newest_alone_is_kept(tmp_path, soon):
    """Also what comes late: a word of a replica behind, or an older one made anew."""
    found, lines = dropped(tmp_path, refused(1), refused(3), refused(2), refused(1))
    assert found == [1, 2, 1]
    assert not lines


def test_a_generation_that_could_not_be_dropped_is_dropped_later(tmp_path, soon):
    """Another refusal of the same policy was waited for, which may never come."""
    found, lines = dropped(tmp_path, refused(1, 2), answers=[status(500), status(404)])
    assert found == [1, 1]
    (line,) = map(json.loads, lines)
    assert line["msg"] == "a PolicyRevision was not written; trying again"


def test_what_cannot_be_enforced_is_dropped_beside_what_is_in_force(tmp_path, soon):
    """The revision in force stays, and the outcome of the newest unenforceable one."""
    revisions = [*refused(1, 3, 4), tried_revision("passed", generation=2)]
    found, _ = dropped(tmp_path, revisions, in_force=2)
    assert sorted(found) == [1, 3]


def test_a_process_that_only_reads_drops_nothing(tmp_path, soon):
    """An audit has the revisions, too."""
    assert dropped(tmp_path, refused(1, 2, 3), writers=None) == ([], [])


def test_what_another_replica_is_to_drop_is_left_to_it_while_it_is_its_turn(tmp_path, monkeypatch):
    """It comes after that one, should that one be dead."""
    monkeypatch.setattr(revision_keeper, "SETTLED_SECONDS", 0.0)
    others = frozenset({"uid-1", *(f"another-{number}" for number in range(50))})

    async def run():
        async with loading(tmp_path, {REVISIONS: [EMPTY]}, writers=lambda: others) as kept:
            await kept.keeper.wait_loaded([].append)
            queue = kept.keeper.keeper.queue
            kept.keeper.change([change("set", one) for one in refused(1, 2)])
            first = queue._heap[0][0]
            while queue._heap[0][0] == first:  # noqa: ASYNC110  # no event tells
                await asyncio.sleep(0.01)
            assert len(queue) == 1
            assert {path for path, _ in kept.requests} == {KEYS, REVISIONS}

    asyncio.run(run())


def test_a_trial_that_another_replica_is_at_is_not_judged_before_its_end(
    tmp_path, soon, monkeypatch
):
    """Its end found our word in its place, and was lost; once it has died nobody waits for it."""
    monkeypatch.setattr(revision_keeper, "TRIED_SECONDS", 0.01)
    tried = tried_revision("trying")
    path = f"{REVISIONS}/{tried['metadata']['name']}"
    answer = (200, [json.dumps(tried_revision("passed")).encode()], "end")
    writers = {"uid-0", "uid-1"}

    async def run():
        served = {REVISIONS: [EMPTY], path: [answer]}
        async with loading(tmp_path, served, writers=lambda: frozenset(writers)) as kept:
            await kept.keeper.wait_loaded([].append)
            kept.keeper.change([change("set", tried)])
            in_force = InForce(at(1), DIGEST)
            kept.keeper.keep({(TEMPLATES, DOCUMENT["metadata"]["name"]): in_force})
            for _ in range(20):
                await asyncio.sleep(0.01)
            assert path not in [one for one, _ in kept.requests]
            writers.remove("uid-0")
            async with asyncio.timeout(PATIENCE_SECONDS):
                while path not in [one for one, _ in kept.requests]:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)

    asyncio.run(run())


NEXT = RevisionKey("key-1710000000", 1_710_000_000, b"n" * 32)


def test_what_an_earlier_key_has_signed_is_signed_anew_and_what_is_not_ours_is_left(tmp_path, soon):
    """A key goes with the next but one; in the place of ours a forged one is deleted, by its UID."""
    kept_as = tried_revision("passed")
    path = f"{REVISIONS}/{kept_as['metadata']['name']}"
    anew = signed_revision(at(1), read_revision(kept_as).outcome, NEXT, DIGEST)
    answer = (200, [json.dumps(anew).encode()], "end")
    forged = signed_revision(at(2), None, FOREIGN, DIGEST)
    forged["metadata"]["uid"] = "of-the-forged"
    both = (200, [json.dumps({"data": entry() | entry(NEXT)}).encode()], "end")

    async def run():
        served = {REVISIONS: [EMPTY], path: [answer], KEYS: [both]}
        async with loading(tmp_path, served, writers=lambda: WRITERS) as kept:
            await kept.keeper.wait_loaded([].append)
            in_force = InForce(at(1), DIGEST)
            kept.keeper.change([change("set", one) for one in (kept_as, forged)])
            assert kept.keeper.known.ignored["wrong_signature",] == 1
            kept.keeper.keep({(TEMPLATES, DOCUMENT["metadata"]["name"]): in_force})
            while path not in [one for one, _ in kept.requests]:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            while not kept.keeper.keeper.queue.is_idle:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            known = kept.keeper.known.named("u", kept_as["metadata"]["name"])
            assert known.signature.startswith(NEXT.name)
            assert [one for one, _ in kept.requests].count(path) == 1
            others = {one for one, _ in kept.requests} - {KEYS, REVISIONS, path}
            assert others == set()  # no replica deletes forged revisions beside ours

    asyncio.run(run())


def test_after_a_restore_of_etcd_what_answers_alone_have_reported_is_not_there(kept):
    """The revision was taken for kept, and never made again."""
    kept.take("passed")
    kept.keeper.synced()
    assert kept.keeper.known.all()
    kept.keeper._reflector._statistics.restores += 1
    kept.keeper.synced()
    assert kept.keeper.known.all() == []
    kept.take("passed")
    kept.keeper.synced()
    assert kept.keeper.known.all(), "one restore counts once"
