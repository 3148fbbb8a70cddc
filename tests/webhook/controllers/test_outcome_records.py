"""What comes of a trial is written into a revision, whatever others do to that meanwhile."""

import asyncio
import json

import pytest

from tests.webhook.cluster.fault_server import scripted
from tests.webhook.controllers.test_policies import template
from webhook.api.pod_status import Pod
from webhook.api.revision import digest_of, revision_object
from webhook.api.revision_outcome import Outcome
from webhook.cluster.client import ClusterClient
from webhook.controllers.outcome_records import OutcomeRecords
from webhook.controllers.revision_keeper import RevisionKeeper
from webhook.log import open_log

OUTCOME = Outcome("passed", "waddle-1", "uid-1", "1", "2026-01-01T00:00:00Z")
DOCUMENT = template() | {"metadata": {"name": "tried", "uid": "u", "generation": 1}}
MADE = revision_object(DOCUMENT, digest_of(DOCUMENT), OUTCOME)
WITHOUT = {**MADE, "status": {}, "metadata": {**MADE["metadata"], "resourceVersion": "1"}}


def answer(code, document=None):
    """As the API server gives it."""
    reasons = {404: "NotFound", 409: "AlreadyExists"}
    said = document or {"kind": "Status", "code": code, "reason": reasons[code]}
    return code, [json.dumps(said).encode()], "end"


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
    """It was taken for a kind that is gone, and the replica tried nothing for a minute."""

    async def work():
        log = open_log(str(tmp_path / "log")).logger("revisions")
        async with (
            scripted(tmp_path, *answers) as (server, credentials),
            ClusterClient(credentials) as client,
        ):
            pod = Pod("waddle-1", "waddle-system", "uid-1")
            keeper = RevisionKeeper(client, pod, log, limit=2, tell=lambda _: None)
            records = OutcomeRecords(client, keeper, log)
            standing = await records.record(DOCUMENT, digest_of(DOCUMENT), OUTCOME)
            assert standing is not None
            assert standing.verdict == "passed"
            assert records.failures == 0
            assert len(server.requests) == len(answers)

    asyncio.run(work())
