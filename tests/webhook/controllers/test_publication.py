"""Policy put into service: what is looked at again, and what rests."""

import pytest

from tests.webhook.controllers.requested_kinds import RequestedKinds, template
from webhook import log
from webhook.api.pod_status import Pod
from webhook.cluster.store import Key
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.limits import UNLIMITED
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.controllers.apply.publication import ClusterPolicies
from webhook.metrics.registry import Registry
from webhook.policy_kinds.known import TEMPLATE
from webhook.serving.revision import Serving
from webhook.watch.queue import Event


@pytest.fixture
def policies():
    return ClusterPolicies(
        Client(targets=(AdmissionTarget(),), drivers=(RegoDriver(),)),
        Serving(),
        Pod("p", "waddle-system", "uid", ("webhook",)),
        (RequestedKinds(), RequestedKinds()),
        registry=Registry(),
        log=log.Log(lambda line: None).logger("test"),
        wait_for_broken=False,
    )


def take(policies, document):
    key = Key("", document["metadata"]["name"])
    policies.reconciler.take_policy(Event("set", TEMPLATE, key, document))
    policies.publish()
    policies.look_for_faults()


def test_what_is_wrong_is_known_after_each_change_and_not_looked_for_without_one(
    policies, monkeypatch
):
    broken = template(rego="violation[{")
    take(policies, broken)
    (fault,) = policies.faults
    assert "rego_parse_error" in fault

    monkeypatch.setattr(policies.policy, "faults", lambda: pytest.fail("nothing has changed"))
    policies.publish()
    policies.look_for_faults()
    assert policies.faults == (fault,)

    monkeypatch.undo()
    mended = template()
    mended["metadata"]["generation"] = 2
    take(policies, mended)
    assert policies.faults == ()


def test_a_template_whose_violations_have_no_message_says_so_in_its_status(policies):
    """Whether they have one may be known only when objects are reviewed."""
    rego = "violation[x] { x := input.review.object.metadata }"
    take(policies, template(rego=rego))
    for awaited in policies.tracker.awaited():
        policies.tracker.expect(awaited.kind, ())
    policies.publish()
    evaluator = policies._serving.revision.snapshot.entries[0].evaluator
    pod = {"object": {"metadata": {"name": "p"}}}
    assert evaluator.evaluate(None, pod, evaluator.begin(UNLIMITED, {})) == []

    policies.take_lost()
    policies.publish()

    (status,) = policies.statuses().values()
    (warning,) = status["status"]["expressionWarnings"]
    assert warning["warning"].startswith('"violation" held an object without "msg"')

    mended = template()
    mended["metadata"]["generation"] = 2
    take(policies, mended)
    policies.take_lost()
    policies.publish()
    (status,) = policies.statuses().values()
    assert "expressionWarnings" not in status["status"]
