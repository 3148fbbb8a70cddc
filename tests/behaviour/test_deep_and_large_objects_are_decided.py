"""Deep and large objects of an API server are decided or refused with a reason: no call fails."""

import json
from typing import Any

import pytest

from tests.behaviour.serving import Server, pod, review

LONGEST = "/v1/admit?timeout=30s"
"""The longest timeout of an API server; a busy machine takes its time for megabytes."""

PLACE = b'"@here@"'


def body_with(text: bytes, labels: dict[str, str], **request: Any) -> bytes:
    """A review, in the order that Go writes it, of a Pod whose managedFields are this JSON."""
    subject = pod(**labels)
    subject["metadata"]["managedFields"] = "@here@"
    found = review(subject, **request)
    ordered = {
        "kind": found["kind"],
        "apiVersion": found["apiVersion"],
        "request": found["request"],
    }
    return json.dumps(ordered, separators=(",", ":")).encode().replace(PLACE, text)


def nested(levels: int) -> bytes:
    """ManagedFields so deep."""
    return b'[{"fieldsV1":' + b'{"f:a":' * levels + b"{}" + b"}" * levels + b"}]"


@pytest.mark.parametrize("levels", [990, 1_100, 3_000, 9_900])
def test_an_object_is_decided_however_deep_it_is(server: Server, levels: int) -> None:
    denied = server.post(body_with(nested(levels), {}), LONGEST).verdict
    assert not denied["allowed"]
    assert denied["status"]["message"] == "[needs-owner] label <owner> is missing"
    assert server.post(body_with(nested(levels), {"owner": "me", "team": "a"}), LONGEST).verdict[
        "allowed"
    ]


@pytest.mark.parametrize("levels", [980, 3_000])
def test_an_object_with_a_long_number_is_decided_however_deep_it_is(
    server: Server, levels: int
) -> None:
    text = nested(levels).replace(b"{}", b"123456789012345678901")
    assert server.post(body_with(text, {}), LONGEST).verdict["status"]["code"] == 403
    assert server.post(body_with(text, {"owner": "me"}), LONGEST).verdict["allowed"]


def test_an_update_of_what_go_escapes_is_decided(server: Server) -> None:
    """Three MiB of ``<`` as object and as oldObject: six bytes for each."""
    text = b'"' + b"\\u003c" * (3 * 1024 * 1024) + b'"'
    for labels, allowed in (({}, False), ({"owner": "me"}, True)):
        old: Any = pod(**labels)
        old["metadata"]["managedFields"] = "@here@"
        raw = body_with(text, labels, operation="UPDATE", oldObject=old)
        assert len(raw) > 37_000_000
        assert server.post(raw, LONGEST).verdict["allowed"] is allowed


BEYOND = {
    "deeper than Go's decoder goes": (nested(10_020), "nested deeper than 10016 levels"),
    "a number longer than any": (b"1" * 5_000, "number is infinity"),
    "larger than any": (b'"' + b"a" * 41 * 1024 * 1024 + b'"', "request entity is too large"),
    "more memory than there is": (b"[" + b'{"":{}},' * 1_000_000 + b"1]" * 1, "bytes of memory"),
}


@pytest.mark.parametrize(("text", "message"), BEYOND.values(), ids=BEYOND.keys())
def test_what_cannot_be_decided_for_what_it_is_is_refused(
    server: Server, text: bytes, message: str
) -> None:
    before = server.metric("waddle_objects_undecidable_total") or 0
    verdict = server.post(body_with(text, {"owner": "me"}), LONGEST).verdict
    assert verdict["uid"] == review()["request"]["uid"]
    assert verdict["allowed"] is False
    assert verdict["status"]["reason"] == "Undecidable"
    assert message in verdict["status"]["message"]
    assert server.metric("waddle_objects_undecidable_total") == before + 1
    assert server.admit(pod(owner="me"))["allowed"]


def test_an_object_without_a_kind_is_quoted_in_short(server: Server) -> None:
    """The whole of it stood in every constraint's message, and in the log."""
    document = review(pod())
    document["request"]["object"] = {"metadata": {"name": "a"}, "data": "x" * 2_000_000}
    seen = len(server.events)
    answer = server.post(document)
    assert answer.verdict["allowed"] is False
    assert len(answer.body) < 10_000
    assert all(len(json.dumps(event)) < 70_000 for event in server.events[seen:])


POLICIES = {
    "a template's schema": (
        "templates.gatekeeper.sh/v1",
        "ConstraintTemplate",
        lambda value: {
            "crd": {
                "spec": {
                    "names": {"kind": "Deep"},
                    "validation": {"openAPIV3Schema": {"type": "object", "properties": value}},
                }
            },
            "targets": [
                {
                    "target": "admission.k8s.gatekeeper.sh",
                    "rego": 'package deep\nviolation[{"msg": "x"}] { false }',
                }
            ],
        },
    ),
    "a template's target": (
        "templates.gatekeeper.sh/v1",
        "ConstraintTemplate",
        lambda value: {"crd": {"spec": {"names": {"kind": "Deep"}}}, "targets": [value]},
    ),
    "a constraint's parameters": (
        "constraints.gatekeeper.sh/v1beta1",
        "RequiredLabel",
        lambda value: {"parameters": {"label": "a", "more": value}},
    ),
    "a constraint's match": (
        "constraints.gatekeeper.sh/v1beta1",
        "RequiredLabel",
        lambda value: {"match": {"labelSelector": value}, "parameters": {"label": "a"}},
    ),
    "Config": ("config.gatekeeper.sh/v1alpha1", "Config", lambda value: {"match": [value]}),
}


@pytest.mark.parametrize("levels", [100, 300, 1_500])
@pytest.mark.parametrize(("api_version", "kind", "spec"), POLICIES.values(), ids=POLICIES.keys())
def test_policies_that_nest_deep_are_decided(
    server: Server, api_version: str, kind: str, spec: Any, levels: int
) -> None:
    text = json.dumps(spec("@here@")).encode().replace(PLACE, _text(levels))
    for operation, old in (("CREATE", b"null"), ("UPDATE", text), ("DELETE", b"null")):
        subject = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "deep"}}
        found = review({**subject, "spec": "@new@"}, operation="CREATE")
        found["request"] |= {"operation": operation, "oldObject": {**subject, "spec": "@old@"}}
        raw = json.dumps(found).encode().replace(b'"@new@"', text).replace(b'"@old@"', old)
        assert server.post(raw, LONGEST).verdict["uid"]
    assert server.admit(pod(owner="me"))["allowed"]


def _text(levels: int) -> bytes:
    return b'{"properties": {"a":' * levels + b"{}" + b"}}" * levels
