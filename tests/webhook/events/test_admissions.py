"""Events of admissions, word for word as Gatekeeper's (pkg/webhook/policy.go)."""

import pytest

from tests.behaviour.serving import review
from tests.webhook.constraint.policies import client, constraint, pod, template
from webhook.api.admission import AdmissionResponse, read_review
from webhook.constraint.review import AugmentedObject
from webhook.events.admissions import QUEUE_MAX, AdmissionEvents
from webhook.log import Log
from webhook.metrics.admission import ADMISSION_EVENTS
from webhook.metrics.registry import Registry
from webhook.serving.recorder import ListenedRecorder

TIMES = (0.0, 0.0)
ALWAYS = 'package p\nviolation[{"msg": "no"}] { true }'


def made(*, inside=False):
    registry = Registry()
    log = Log(lambda _: None).logger("x")
    return AdmissionEvents("waddle-system", registry, log, in_involved_namespace=inside), registry


def found(action="deny"):
    snapshot = client(template(rego=ALWAYS), constraint(enforcementAction=action)).snapshot
    return snapshot.review(AugmentedObject(pod()), enforcement_point="validation.gatekeeper.sh")


def noted(events, responses, **fields):
    """The Events of one admission, through the recorder that the server has."""
    request = read_review(review(fields.pop("object", pod(uid="u1")), **fields))
    response = AdmissionResponse("1", allowed=False)
    recorder = ListenedRecorder([events.note], None)
    answer = recorder.answered(request, responses, None, *TIMES, response)
    assert answer is response
    return list(events._noted)


@pytest.mark.parametrize(
    ("action", "reason", "words"),
    [
        (
            "deny",
            "FailedAdmission",
            'Admission webhook "validation.gatekeeper.sh" denied request',
        ),
        (
            "warn",
            "WarningAdmission",
            'Admission webhook "validation.gatekeeper.sh" raised a warning for this request',
        ),
        ("dryrun", "DryrunViolation", "Dryrun violation"),
    ],
)
def test_each_action_has_gatekeeper_s_reason_and_words(action, reason, words):
    events, _ = made()
    (event,) = noted(events, found(action))

    assert (event["type"], event["reason"]) == ("Warning", reason)
    assert event["message"] == f"{words}, Resource Namespace: shop, Constraint: c, Message: no"
    assert event["source"] == {"component": "gatekeeper-webhook"}
    assert event["metadata"]["namespace"] == "waddle-system"
    assert event["involvedObject"] == {
        "kind": "Pod",
        "name": "web",
        "namespace": "waddle-system",
        "uid": "Pod/shop/web/K8sDeny//c",
    }
    annotations = event["metadata"]["annotations"]
    assert annotations.pop("request_username")
    assert annotations == {
        "process": "admission",
        "event_type": "violation",
        "constraint_name": "c",
        "constraint_group": "constraints.gatekeeper.sh",
        "constraint_api_version": "v1beta1",
        "constraint_kind": "K8sDeny",
        "constraint_action": action,
        "constraint_enforcement_actions": "",
        "resource_group": "",
        "resource_api_version": "v1",
        "resource_kind": "Pod",
        "resource_namespace": "shop",
        "resource_name": "web",
    }


def test_in_the_involved_namespace_it_is_the_object_s_own_reference():
    events, _ = made(inside=True)
    obj = pod(uid="u1")
    obj["metadata"]["resourceVersion"] = "7"
    (event,) = noted(events, found(), object=obj)

    assert event["metadata"]["namespace"] == "shop"
    assert event["involvedObject"] == {
        "kind": "Pod",
        "name": "web",
        "namespace": "shop",
        "uid": "u1",
        "resourceVersion": "7",
    }
    assert event["message"].endswith("denied request, Constraint: c, Message: no")


def test_a_dry_run_makes_none_and_what_finds_no_room_is_dropped_and_counted():
    events, registry = made()
    responses = found()
    assert noted(events, responses, dryRun=True) == []
    for _ in range(QUEUE_MAX + 2):
        noted(events, responses)
    assert len(events._noted) == QUEUE_MAX
    assert registry.counters[ADMISSION_EVENTS] == {("dropped",): 2}
