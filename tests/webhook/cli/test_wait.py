"""`waddle wait` at a small API server: what it says of a policy that one replica tries first."""

from pathlib import Path

import pytest

from tests.behaviour.consoles import CONSTRAINTS, in_namespace
from tests.webhook.cli.in_process import waddle
from tests.webhook.console.assembled import KIND, pod, policy, status_by
from tests.webhook.console.listing import Listing
from webhook.api import pod_status
from webhook.api.revision import digest_of, revision_object
from webhook.api.revision_outcome import TrialOutcome, TrialVerdict
from webhook.cluster.kinds import PODS
from webhook.controllers.revisions.keeper import REVISIONS
from webhook.controllers.status_kinds import status_resource

SINCE = "2026-01-01T00:00:00Z"
TRIED = f"a tries it first, since {SINCE}"
UNTRIED = ("no status yet", "at generation 1")


@pytest.mark.parametrize(
    ("verdict", "reasons"),
    [
        ("trying", (TRIED, f"at generation 1; {TRIED}")),
        ("passed", UNTRIED),
        (None, UNTRIED),
    ],
)
def test_wait_says_that_a_policy_is_tried_and_by_which_replica(
    tmp_path: Path, verdict: TrialVerdict | None, reasons: tuple[str, str]
) -> None:
    """It has a status of an earlier generation at one replica, and none at the other."""
    document = policy()
    document["metadata"] |= {"uid": "u-owner", "generation": 2}
    with Listing(tmp_path, KIND) as listing:
        listing.put(CONSTRAINTS, document)
        listing.put(PODS, in_namespace(pod("a")), in_namespace(pod("b")))
        earlier = {**document, "metadata": {**document["metadata"], "generation": 1}}
        listing.put(status_resource(pod_status.CONSTRAINT), status_by("b", earlier))
        if verdict is not None:
            listing.serve(REVISIONS)
            outcome = TrialOutcome(verdict, "a", "u-a", "1", SINCE)
            listing.put(REVISIONS, revision_object(document, digest_of(document), outcome))
        shown = f"{KIND}/{document['metadata']['name']}"
        arguments = (shown, "--kubeconfig", listing.kubeconfig, "--timeout")
        for seconds in ("2s", "8s", "32s"):  # a busy machine may not have answered sooner
            done = waddle("wait", *arguments, seconds)
            if reasons[0] in done.stderr:
                break
    assert done.returncode == 1
    assert done.stderr.endswith(f"s: a: {reasons[0]}; b: {reasons[1]}\n")
