"""A roll-out advances by statuses that replicas have signed, and by no others."""

from typing import Any

import pytest

from tests.webhook.controllers.pod_statuses import pod, says
from tests.webhook.controllers.signing import KEY, keys_of, rollouts_of
from webhook.api.pod_status import SIGNATURE, Pod
from webhook.constraint.rollout import ANNOTATION
from webhook.controllers.revisions.keys import KeyRing
from webhook.controllers.status.convergence import subject_for
from webhook.controllers.status.rollout_keeper import RolloutKeeper
from webhook.controllers.status.statuses import signed
from webhook.events.policies import EventWriter

NOBODY: Any = None
"""For what is never asked here."""

POD = Pod("a", "waddle-system", "a-uid", ("status", "webhook"))


@pytest.fixture
def keys():
    return keys_of(None)


@pytest.fixture
def keeper(keys):
    events = EventWriter(NOBODY, NOBODY)
    return RolloutKeeper(events, POD, lambda event, **details: None, rollouts_of(keys))


def constraint(status=None):
    metadata = {"name": "words", "uid": "c-uid", "generation": 1}
    metadata["annotations"] = {ANNOTATION: "dryrun after=0s, warn"}
    document = {"apiVersion": "constraints.gatekeeper.sh/v1beta1", "kind": "Alpha"}
    spec = {"enforcementAction": "deny"}
    return {**document, "metadata": metadata, "spec": spec, "status": status or {}}


def status_by(name, action="dryrun"):
    """Returns a replica's status of the constraint."""
    document = constraint()
    return says(name, observed=1, active=1, of=document, enforced=True, enforcementAction=action)


def stage(keeper, statuses):
    """The stage that is recorded, once all that may be done is."""
    document, pods = constraint(), [pod("a", ready=True), pod("b", ready=True)]
    for _ in range(3):
        status = keeper.merged(subject_for(document), document, None, statuses, pods)
        if status is None:
            break
        document = constraint(status)
    return document["status"]["rollout"]["action"]


def test_a_roll_out_goes_on_once_each_replica_has_signed_that_it_is_there(keeper, keys):
    assert stage(keeper, [signed(status_by("a"), keys.sign)]) == "dryrun"
    assert stage(keeper, [signed(status_by(name), keys.sign) for name in ("a", "b")]) == "warn"


def test_what_nobody_signed_or_another_said_hurries_nothing(keeper, keys):
    genuine, other = signed(status_by("a"), keys.sign), signed(status_by("b", "warn"), keys.sign)
    status = status_by("b")["status"]
    for forged in (
        status,
        {**status, SIGNATURE: genuine["status"][SIGNATURE]},
        {**status, SIGNATURE: other["status"][SIGNATURE]},
        {**status, SIGNATURE: KEY.signature(b"")},
        {**status, SIGNATURE: 5},
        {**genuine["status"]},
    ):
        statuses = [genuine, {**status_by("b"), "status": forged}]
        assert stage(keeper, statuses) == "dryrun", forged
        keeper.seen(subject_for(constraint()), None)


def test_without_any_key_what_is_said_counts(keeper, keys):
    keys.ring = KeyRing()
    assert stage(keeper, [status_by("a"), status_by("b")]) == "warn"


def test_only_what_tells_of_a_stage_is_signed(keys):
    steady = says("a", of=constraint(), enforced=True)
    assert signed(steady, keys.sign) is steady
    preview = says("a", of=constraint(), enforced=False, preview=True)
    assert signed(preview, keys.sign)["status"][SIGNATURE].startswith(KEY.name)
