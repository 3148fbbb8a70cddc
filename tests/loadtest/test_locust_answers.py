"""The load test accepts right answers only: any wrong answer is a failure."""

import json
from typing import Any

import pytest

from loadtest.locust.answers import (
    WRONG,
    Expectation,
    fault_of_object,
    fault_of_review,
    warnings_of,
)

ALLOWED = Expectation(allowed=True)
DENIED = Expectation(allowed=False, message="[a] no\n[b] never")
WARNED = Expectation(allowed=True, warnings=("[w] careful",))


def answer(uid: str = "u", **response: Any) -> bytes:
    return json.dumps({"response": {"uid": uid, "allowed": True, **response}}).encode()


def denial(message: str = DENIED.message, code: int = 403) -> bytes:
    return answer(allowed=False, status={"code": code, "message": message})


def refused(message: str = DENIED.message) -> bytes:
    text = f'admission webhook "validation.gatekeeper.sh" denied the request: {message}'
    return json.dumps({"kind": "Status", "code": 403, "message": text}).encode()


@pytest.mark.parametrize(
    ("expected", "content"),
    [
        (ALLOWED, answer()),
        (DENIED, denial()),
        (WARNED, answer(warnings=["[w] careful"])),
    ],
)
def test_a_right_review_has_no_fault(expected: Expectation, content: bytes) -> None:
    assert fault_of_review(expected, "u", 200, content) is None


@pytest.mark.parametrize(
    ("expected", "content", "fault"),
    [
        (ALLOWED, denial(), "verdict: denied, not allowed"),
        (DENIED, answer(), "verdict: allowed, not denied"),
        (ALLOWED, answer(allowed=1), "verdict: "),
        (ALLOWED, answer(allowed=None), "verdict: "),
        (ALLOWED, answer(uid="v"), "uid: "),
        (DENIED, denial("[a] no"), "message: [a] no"),
        (DENIED, denial(code=500), "code: 500, not 403"),
        (DENIED, answer(allowed=False), "code: None"),
        (ALLOWED, answer(warnings=["[w] careful"]), "warnings: [w] careful"),
        (WARNED, answer(), "warnings: none"),
        (ALLOWED, b"", "body: "),
        (ALLOWED, b"[]", "body: "),
        (ALLOWED, b'{"response": null}', "body: "),
        (ALLOWED, b"not JSON", "body: "),
        (ALLOWED, None, "body: "),
    ],
)
def test_a_wrong_review_is_called_wrong(
    expected: Expectation, content: bytes | None, fault: str
) -> None:
    assert (fault_of_review(expected, "u", 200, content) or "").startswith(WRONG + fault)


def test_a_server_that_gives_up_failed_but_was_not_wrong() -> None:
    """An error's ratio may be tolerated, a wrong answer's may not."""
    assert fault_of_review(ALLOWED, "u", 503, b"busy") == "no review: status 503"
    timeout = json.dumps({"message": "failed calling webhook: deadline exceeded"}).encode()
    assert fault_of_object(ALLOWED, 500, timeout, []) == (
        "status 500: failed calling webhook: deadline exceeded"
    )
    # A denial is expected, but this one is not a webhook's.
    forbidden = json.dumps({"message": "pods is forbidden: no service account"}).encode()
    assert (fault_of_object(DENIED, 403, forbidden, []) or "").startswith("status 403")


def test_an_api_server_s_answer_is_judged_by_the_webhook_s_words_in_it() -> None:
    """Status, message and warnings; warnings of the API server's own are not a policy's."""
    made = b'{"kind": "Pod"}'
    own = ("Warning", '299 - "would violate PodSecurity"')
    policy = ("warning", '299 - "[w] careful"')
    assert fault_of_object(ALLOWED, 201, made, [own]) is None
    assert fault_of_object(WARNED, 201, made, [own, policy]) is None
    assert fault_of_object(DENIED, 403, refused(), []) is None
    for expected, status, content, headers in (
        (ALLOWED, 403, refused(), []),
        (DENIED, 201, made, []),
        (DENIED, 403, refused("[a] no"), []),
        (WARNED, 201, made, []),
        (ALLOWED, 201, made, [policy]),
        (ALLOWED, 201, b"", []),
        (ALLOWED, 201, b"[]", []),
    ):
        fault = fault_of_object(expected, status, content, headers)
        assert fault is not None
        assert fault.startswith(WRONG)


def test_warnings_are_read_from_one_header_or_from_many() -> None:
    headers = [
        ("Warning", r'299 - "[a] say \"please\"", 299 - "[b] two, three"'),
        ("Content-Type", "application/json"),
        ("warning", '299 - "[c] more"'),
    ]
    assert warnings_of(headers) == ['[a] say "please"', "[b] two, three", "[c] more"]
