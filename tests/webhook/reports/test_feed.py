"""Admissions noted for reports: admitted resources, once each, within a bound."""

import pytest

from tests.behaviour.serving import review
from tests.webhook.constraint.policies import client, constraint, pod, template
from webhook.api.admission import AdmissionResponse, read_review
from webhook.reports import feed as feed_module
from webhook.reports.feed import AdmissionFeed
from webhook.serving.recorder import Reviewed

ALLOWED = AdmissionResponse("1", allowed=True)
DENIED = AdmissionResponse("1", allowed=False, code=403)
WRITES = frozenset({"CREATE", "UPDATE"})
TIMES = (0.0, 0.0)


@pytest.fixture(scope="module")
def snapshot():
    kinds = [{"apiGroups": [""], "kinds": ["Pod", "Namespace", "Event"]}]
    return client(template(), constraint(match={"kinds": kinds})).snapshot


def request_of(obj=None, **fields):
    obj = pod(uid="u1") if obj is None else obj
    return read_review(review(obj, **fields))


def noted(snapshot, *admissions, operations=WRITES):
    feed = AdmissionFeed(operations)
    for one, response in admissions:
        feed.note(Reviewed(one, None, snapshot, TIMES), response)
    return [subject for subject, _ in feed.take()]


def test_what_was_let_in_is_noted_by_kind_place_name_and_uid(snapshot):
    (subject,) = noted(snapshot, (request_of(), ALLOWED))
    assert (subject.gvk.kind, subject.namespace, subject.name, subject.uid) == (
        "Pod",
        "shop",
        "web",
        "u1",
    )


@pytest.mark.parametrize(
    ("fields", "response"),
    [
        ({}, DENIED),
        ({"dryRun": True}, ALLOWED),
        ({"operation": "DELETE"}, ALLOWED),
        ({"operation": "CONNECT"}, ALLOWED),
        ({"subResource": "status"}, ALLOWED),
        ({"subResource": "binding"}, ALLOWED),
    ],
    ids=["denied", "dry-run", "deleted", "connect", "status", "binding"],
)
def test_what_changes_nothing_that_reports_speak_of_is_not_noted(snapshot, fields, response):
    assert noted(snapshot, (request_of(**fields), response)) == []


def test_a_deletion_is_noted_where_reports_hold_several_resources(snapshot):
    one = request_of(operation="DELETE")
    assert len(noted(snapshot, (one, ALLOWED), operations=WRITES | {"DELETE"})) == 1


def test_a_change_of_containers_through_a_subresource_is_noted(snapshot):
    assert noted(snapshot, (request_of(subResource="ephemeralcontainers"), ALLOWED))


@pytest.mark.parametrize("kind", ["ConfigMap", "Event"])
def test_kinds_without_a_policy_or_without_reports_are_not_noted(snapshot, kind):
    assert noted(snapshot, (request_of(pod(uid="u") | {"kind": kind}), ALLOWED)) == []


def test_what_has_no_uid_is_nowhere_stored(snapshot):
    assert noted(snapshot, (request_of(pod()), ALLOWED)) == []


def test_nothing_is_noted_before_there_are_policies():
    assert noted(None, (request_of(), ALLOWED)) == []


def test_a_namespace_is_no_part_of_itself(snapshot):
    """Server-side apply names the Namespace as its own."""
    obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "uid": "u"}}
    (subject,) = noted(snapshot, (request_of(obj, namespace="shop"), ALLOWED))
    assert subject.namespace == ""


def test_a_resource_is_noted_once_however_often_it_is_admitted(snapshot):
    assert len(noted(snapshot, *[(request_of(), ALLOWED)] * 5)) == 1


def test_what_finds_no_room_is_counted(snapshot, monkeypatch):
    monkeypatch.setattr(feed_module, "NOTED_MAX", 2)
    feed = AdmissionFeed(WRITES)
    for uid in ("a", "b", "c", "a"):
        feed.note(Reviewed(request_of(pod(uid=uid)), None, snapshot, TIMES), ALLOWED)
    assert feed.take_dropped() == 1
    assert feed.take_dropped() == 0
    assert sorted(subject.uid for subject, _ in feed.take()) == ["a", "b"]
    assert list(feed.take()) == []
