"""Outcomes of trials are written into a revision, despite concurrent writes."""

import asyncio
import json
from dataclasses import replace

import pytest

from tests.webhook.cluster.fault_server import scripted
from tests.webhook.controllers.bench import template
from tests.webhook.controllers.signing import FOREIGN, keys_of, signed_revision
from webhook.api.pod_status import Pod
from webhook.api.revision import digest_of
from webhook.api.revision_outcome import TrialOutcome
from webhook.cluster.client import ClusterClient
from webhook.controllers.revisions.keeper import RevisionKeeper
from webhook.controllers.revisions.outcome_records import TRIES, OutcomeRecords
from webhook.log import Log

OUTCOME = TrialOutcome("passed", "waddle-1", "uid-1", "1", "2026-01-01T00:00:00Z")
DOCUMENT = template() | {"metadata": {"name": "tried", "uid": "u", "generation": 1}}
MADE = signed_revision(DOCUMENT, OUTCOME)
WITHOUT = signed_revision(DOCUMENT)
WITHOUT["metadata"] |= {"resourceVersion": "1"}
PRUNED = {**WITHOUT, "status": {}}


def answer(code, document=None):
    """Returns an API server's answer with a document."""
    reasons = {403: "Forbidden", 404: "NotFound", 409: "AlreadyExists", 500: "InternalError"}
    body = document or {"kind": "Status", "code": code, "reason": reasons[code]}
    return code, [json.dumps(body).encode()], "end"


def saying(verdict, uid, **more):
    """The revision with what a replica says of it."""
    outcome = TrialOutcome(
        verdict, f"waddle-{uid}", f"uid-{uid}", "1", "2026-01-01T00:00:00Z", **more
    )
    made = signed_revision(DOCUMENT, outcome)
    return {**made, "metadata": {**made["metadata"], "resourceVersion": "1"}}


def recorded(tmp_path, answers, outcome=OUTCOME, over="", times=1):
    """Returns the stored revision after a replica's outcome, with records, requests and log."""
    lines = []

    async def work():
        log = Log(lines.append).logger("revisions")
        async with (
            scripted(tmp_path, *answers) as (server, credentials),
            ClusterClient(credentials) as client,
        ):
            pod = Pod("waddle-1", "waddle-system", "uid-1")
            keeper = RevisionKeeper(
                client, pod, keys_of(client), log, limit=2, notify=lambda _: None
            )
            keeper._reflector._statistics.synced = True  # There are none yet.
            records = OutcomeRecords(client, keeper, log)
            for _ in range(times):
                standing = await records.record(DOCUMENT, digest_of(DOCUMENT), outcome, over=over)
            return standing, records, server.requests

    return *asyncio.run(work()), [json.loads(line) for line in lines]


@pytest.mark.parametrize(
    "answers",
    [
        [answer(409), answer(404), answer(201, MADE)],
        [answer(409), answer(200, WITHOUT), answer(404), answer(201, MADE)],
    ],
    ids=["before it is read", "before it is changed"],
)
def test_a_revision_that_goes_meanwhile_is_no_reason_to_enforce_what_nobody_tried(
    tmp_path, answers
):
    """The kind was taken for missing, and the replica tried nothing for a minute."""
    standing, records, requests, _ = recorded(tmp_path, answers)
    assert standing is not None
    assert standing.verdict == "passed"
    assert records.failures == 0
    assert len(requests) == len(answers)


@pytest.mark.parametrize("code", [403, 404])
def test_without_rights_or_without_the_kind_each_replica_tries_for_itself(tmp_path, code):
    """It is not asked again at once, and said."""
    standing, records, requests, lines = recorded(tmp_path, [answer(code)])
    assert standing is None
    assert (records.failures, len(requests)) == (1, 1)
    assert not records.are_kept
    (line,) = lines
    assert line["msg"] == "the outcome of a trial was not written"
    assert line["effect"] == "each replica tries for itself"


def test_a_write_that_fails_is_tried_again(tmp_path):
    standing, records, requests, lines = recorded(tmp_path, [answer(500), answer(201, MADE)])
    assert standing is not None
    assert standing.verdict == "passed"
    assert (records.failures, len(requests)) == (1, 2)
    assert records.are_kept
    assert [line["msg"] for line in lines] == ["the outcome of a trial was not written"]


def test_a_write_that_fails_again_and_again_is_given_up(tmp_path):
    standing, records, requests, _ = recorded(tmp_path, [answer(500)] * TRIES)
    assert standing is None
    assert (records.failures, len(requests)) == (TRIES, TRIES)


def test_what_fails_in_passing_does_not_end_the_pause_after_a_refusal(tmp_path):
    """Another record, which was under way, met no more than an error."""
    answers = [answer(403), *[answer(500)] * TRIES]
    _, records, _, _ = recorded(tmp_path, answers, times=2)
    assert not records.are_kept


@pytest.mark.parametrize("kept", [WITHOUT, PRUNED], ids=["no outcome", "no signature either"])
def test_a_crd_that_keeps_no_outcome_is_reported_and_not_waited_for(tmp_path, kept):
    standing, records, _, lines = recorded(tmp_path, [answer(201, kept)])
    assert standing is None
    assert not records.are_kept
    why = "the CRD of PolicyRevision keeps no outcome, or no signature of it"
    assert lines[-1]["error"] == why


@pytest.mark.parametrize("verdict", ["ended", "refused", "trying", "passed"])
def test_an_outcome_that_no_replica_has_written_stands_for_nothing(tmp_path, verdict):
    """A user with the right to PolicyRevisions kept a change out before it was made."""
    forged = signed_revision(DOCUMENT, replace(OUTCOME, verdict=verdict), FOREIGN)
    forged["metadata"] |= {"resourceVersion": "1", "uid": "of-the-forged"}
    answers = [answer(409), answer(200, forged), answer(200, MADE), answer(201, MADE)]
    standing, _, requests, _ = recorded(tmp_path, answers)
    assert (standing.verdict, standing.uid) == ("passed", "uid-1")
    assert len(requests) == len(answers)


def test_what_another_has_said_meanwhile_stands(tmp_path):
    """Between our look and our write it had come to an end with it."""
    refused = saying("refused", 2, message="no")
    answers = [answer(409), answer(200, saying("trying", 2)), answer(409), answer(200, refused)]
    standing, records, requests, _ = recorded(tmp_path, answers)
    assert (standing.verdict, standing.uid, standing.message) == ("refused", "uid-2", "no")
    assert records.failures == 0
    assert len(requests) == len(answers)


@pytest.mark.parametrize(("over", "claimant"), [("", "uid-2"), ("uid-2", "uid-1")])
def test_a_replica_at_work_is_replaced_only_where_its_word_counts_no_longer(
    tmp_path, over, claimant
):
    trying = replace(OUTCOME, verdict="trying")
    answers = [answer(409), answer(200, saying("trying", 2)), answer(200, saying("trying", 1))]
    standing, _, requests, _ = recorded(tmp_path, answers, trying, over)
    assert standing.uid == claimant
    assert len(requests) == (3 if over else 2)
