"""AdmissionReviews in and out, malformed ones above all."""

from __future__ import annotations

import contextlib
import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.api.admission import (
    AdmissionResponse,
    InvalidReview,
    decode_review,
    encode_response,
    read_request,
    read_review,
)
from webhook.api.gvk import GroupVersionKind

REVIEW = {
    "kind": "AdmissionReview",
    "apiVersion": "admission.k8s.io/v1",
    "request": {
        "uid": "705ab4f5",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "subResource": "eviction",
        "name": "web",
        "namespace": "shop",
        "operation": "CREATE",
        "userInfo": {"username": "jane", "groups": ["system:authenticated"]},
        "object": {"apiVersion": "v1", "kind": "Pod"},
        "oldObject": None,
        "dryRun": True,
        "options": None,
    },
}


def test_a_request_is_read_with_all_its_fields():
    request = decode_review(json.dumps(REVIEW).encode())

    assert request.uid == "705ab4f5"
    assert GroupVersionKind("", "v1", "Pod") == request.kind
    assert (request.resource, request.sub_resource) == ("pods", "eviction")
    assert (request.name, request.namespace, request.operation) == ("web", "shop", "CREATE")
    assert request.username == "jane"
    assert request.dry_run
    assert request.object == {"apiVersion": "v1", "kind": "Pod"}
    assert request.old_object is None
    assert REVIEW["request"] == request.document


def test_both_versions_are_read_and_answered_in_kind():
    for version in ("admission.k8s.io/v1", "admission.k8s.io/v1beta1"):
        request = read_review({**REVIEW, "apiVersion": version})
        answer = json.loads(encode_response(AdmissionResponse("u", True), request.api_version))
        assert version == answer["apiVersion"]


def test_a_minimal_request_gets_the_shape_that_gos_encoder_gives():
    request = read_request({"uid": "u", "unheard": 1})

    assert request.document == {
        "uid": "u",
        "kind": {"group": "", "version": "", "kind": ""},
        "resource": {"group": "", "version": "", "resource": ""},
        "operation": "",
        "userInfo": {},
        "object": None,
        "oldObject": None,
        "options": None,
    }


def test_a_strict_reading_refuses_unknown_fields():
    with pytest.raises(InvalidReview, match="unknown fields in request: unheard"):
        read_request({"uid": "u", "unheard": 1}, strict=True)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body is not JSON"),
        (b"{", "the body is not JSON"),
        (b"\x80", "the body is not JSON"),
        (b"[]", "must be an object, got an array"),
        (b"null", "must be an object, got null"),
        (b"{}", "got kind None of apiVersion None"),
        (b'{"kind":"Pod","apiVersion":"v1"}', "got kind 'Pod' of apiVersion 'v1'"),
        (b'{"kind":"AdmissionReview","apiVersion":["v1"]}', "apiVersion"),
        (
            b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}',
            "request must be an object, got null",
        ),
        (
            b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":1}}',
            "request.uid must be a string, got a number",
        ),
        (
            (
                b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1",'
                b'"request":{"object":[1]}}'
            ),
            "request.object must be an object, got an array",
        ),
        (
            (
                b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1",'
                b'"request":{"kind":{"kind":true}}}'
            ),
            "request.kind.kind must be a string, got a boolean",
        ),
        (
            (
                b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1",'
                b'"request":{"dryRun":"yes"}}'
            ),
            "request.dryRun must be a boolean, got a string",
        ),
    ],
)
def test_a_malformed_review_is_refused_naming_what_is_wrong(body, message):
    with pytest.raises(InvalidReview, match=message):
        decode_review(body)


def test_a_body_over_the_limit_is_refused_by_its_size():
    with pytest.raises(InvalidReview, match="larger than 100"):
        decode_review(json.dumps(REVIEW).encode(), max_bytes=100)


def _paths(value, path=()):
    yield path
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _paths(item, (*path, key))


JUNK = st.sampled_from([None, True, 0, -1, 1.5, "", "x", [], [None], {}, {"x": {}}, 10**30])


@given(st.sampled_from(list(_paths(REVIEW))), JUNK)
@settings(max_examples=300)
def test_a_review_with_anything_anywhere_is_read_or_refused_never_anything_else(path, junk):
    review = copy.deepcopy(REVIEW)
    if not path:
        review = junk
    else:
        owner: Any = review
        for key in path[:-1]:
            owner = owner[key]
        owner[path[-1]] = junk
    with contextlib.suppress(InvalidReview):
        assert decode_review(json.dumps(review).encode()).document


@given(st.binary(max_size=200))
def test_bytes_of_any_kind_are_refused_never_anything_else(body):
    with pytest.raises(InvalidReview):
        decode_review(body)


def test_a_denial_is_encoded_with_code_reason_and_message():
    response = AdmissionResponse(
        "u", False, 403, "Forbidden", "[c] no", warnings=("w",), decision_id="0f-1"
    )

    assert json.loads(encode_response(response, "admission.k8s.io/v1")) == {
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "response": {
            "uid": "u",
            "allowed": False,
            "status": {"metadata": {}, "message": "[c] no", "reason": "Forbidden", "code": 403},
            "auditAnnotations": {"decision-id": "0f-1"},
            "warnings": ["w"],
        },
    }


@pytest.mark.parametrize("uid", ["u", "", 'a"b\\', "é\n"])
@pytest.mark.parametrize("patch", [None, b"W10="])
@pytest.mark.parametrize("decision_id", ["", "0f-1"])
def test_an_answer_that_allows_and_says_nothing_is_written_as_any_other(uid, patch, decision_id):
    status = {"metadata": {}, "code": 200}
    patch_fields = {} if patch is None else {"patch": "W10=", "patchType": "JSONPatch"}
    named = {"auditAnnotations": {"decision-id": decision_id}} if decision_id else {}

    response = AdmissionResponse(uid, True, decision_id=decision_id, patch=patch)
    answer = encode_response(response, "admission.k8s.io/v1beta1")

    assert json.loads(answer) == {
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1beta1",
        "response": {"uid": uid, "allowed": True, "status": status, **named, **patch_fields},
    }
