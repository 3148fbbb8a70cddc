"""Events of admissions, word for word as Gatekeeper's (pkg/webhook/policy.go)."""

import asyncio
import json

import pytest

from tests.behaviour.serving import review
from tests.webhook.constraint.policies import client, constraint, pod, template
from tests.webhook.events.refusing import RefusingServer, forbidden
from webhook.api.admission import AdmissionResponse, read_review
from webhook.backoff import Backoff
from webhook.cluster.errors import ApiUnreachable
from webhook.constraint.review import AugmentedObject
from webhook.events import admissions
from webhook.events.admissions import QUEUE_MAX, AdmissionEvents
from webhook.log import Log
from webhook.metrics.admission import ADMISSION_EVENTS
from webhook.metrics.registry import Registry
from webhook.serving.recorder import ListenedRecorder

TIMES = (0.0, 0.0)
ALWAYS = 'package p\nviolation[{"msg": "no"}] { true }'


def admission_events(*, inside=False):
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
    events, _ = admission_events()
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
    events, _ = admission_events(inside=True)
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


def test_an_object_that_has_no_version_yet_is_named_without_a_uid():
    events, _ = admission_events(inside=True)
    (event,) = noted(events, found(), object=pod(uid="u1"))
    assert event["involvedObject"] == {"kind": "Pod", "name": "web", "namespace": "shop"}


def test_an_action_that_gatekeeper_has_no_event_for_makes_none():
    events, _ = admission_events()
    assert noted(events, found("tell")) == []


def test_a_dry_run_makes_none_and_what_finds_no_room_is_dropped_and_counted():
    events, registry = admission_events()
    responses = found()
    assert noted(events, responses, dryRun=True) == []
    for _ in range(QUEUE_MAX + 2):
        noted(events, responses)
    assert len(events._noted) == QUEUE_MAX
    assert registry.counters[ADMISSION_EVENTS] == {("dropped",): 2}


def written_events(server, count, monkeypatch):
    """Returns the written Events and the log lines of a writer that is cancelled then."""
    monkeypatch.setattr(admissions, "TAKE_OVER_SECONDS", 0.0)
    delays = []

    def next_seconds(backoff):
        delays.append(backoff.initial_seconds)
        return 0.0

    monkeypatch.setattr(Backoff, "next_seconds", next_seconds)
    lines: list[bytes] = []
    registry = Registry()
    log = Log(lines.append).logger("x")
    events = AdmissionEvents("waddle-system", registry, log, in_involved_namespace=False)
    for number in range(count):
        noted(events, found(), object=pod(name=f"web-{number}", uid="u"))

    async def run():
        async with asyncio.TaskGroup() as group:
            writing = group.create_task(events.run(server))
            while sum(registry.counters.get(ADMISSION_EVENTS, {}).values()) < count:
                assert not writing.done(), "nothing ends it"
                await asyncio.sleep(0)
            assert not writing.done()
            writing.cancel()

    asyncio.run(run())
    return registry.counters[ADMISSION_EVENTS], [json.loads(line) for line in lines], delays


def test_events_are_written_in_the_order_of_their_admissions_and_counted(monkeypatch):
    server = RefusingServer()
    counts, lines, delays = written_events(server, 2, monkeypatch)

    assert counts == {("written",): 2}
    assert [one["involvedObject"]["name"] for one in server.events.values()] == ["web-0", "web-1"]
    assert (lines, delays) == ([], [])


@pytest.mark.parametrize("refusal", [forbidden(), ApiUnreachable("gone")])
def test_one_that_the_api_server_refuses_is_counted_and_reported_and_the_next_is_written(
    refusal, monkeypatch
):
    server = RefusingServer(refusal)
    counts, lines, delays = written_events(server, 2, monkeypatch)

    assert counts == {("failed",): 1, ("written",): 1}
    ((namespace, name), written), *others = server.events.items()
    assert not others
    assert (namespace, written["involvedObject"]["name"]) == ("waddle-system", "web-1")
    (line,) = lines
    assert (line["level"], line["msg"]) == ("warning", "an Event was not written")
    assert line["error"] == str(refusal)
    assert line["name"].startswith("web-0.")
    assert name.startswith("web-1.")
    assert delays == [], "it is the API server's fault, and the next may be no one's"


def test_a_bug_is_reported_with_its_place_and_waited_for_and_the_next_is_written(monkeypatch):
    server = RefusingServer(ValueError("surprise"))
    counts, lines, delays = written_events(server, 2, monkeypatch)

    assert counts == {("failed",): 1, ("written",): 1}
    assert [one["involvedObject"]["name"] for one in server.events.values()] == ["web-1"]
    (line,) = lines
    assert (line["level"], line["msg"], line["error"]) == (
        "error",
        "bug: an Event of an admission could not be made",
        "ValueError: surprise",
    )
    assert "refusing.py" in line["stacktrace"]
    assert delays == [1.0]
