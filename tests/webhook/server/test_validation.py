"""``/v1/validate-policy``: who may ask, what is read, and what ends a call."""

import asyncio
import json
from concurrent.futures import Future
from typing import Any

import pytest
import yaml

from tests.behaviour.serving import REQUIRED_LABELS, constraint, pod
from tests.patience import turns_until
from webhook.log import Log
from webhook.metrics.registry import Registry
from webhook.server import validation
from webhook.server.validation import (
    BODY_BYTES_MAX,
    POLICIES_MAX,
    TOKEN_BYTES_MAX,
    WAITING_MAX,
    WITHHELD,
    Access,
    PoliciesRefused,
    ValidationEndpoint,
    read_policies,
)

READER = Access(200, reads=True)


def answered(value: Any) -> Future[Any]:
    """A future that is done: with a value, or with an error."""
    future: Future[Any] = Future()
    if isinstance(value, BaseException):
        future.set_exception(value)
    else:
        future.set_result(value)
    return future


class Called:
    """An endpoint, whoever it asks, and what it told."""

    def __init__(self, access: Any = READER, answer: Any = None) -> None:
        """``access`` and ``answer`` are what is found out; a Future that is not done yet stays so."""
        self.access, self.answer = access, {"effect": "e"} if answer is None else answer
        self.tokens: list[str] = []
        self.calls: list[tuple[bytes, bool]] = []
        self.lines: list[bytes] = []
        self.registry = Registry()
        log = Log(self.lines.append).logger("test")
        self.endpoint = ValidationEndpoint(self, self, self.registry, log)

    def ask(self, token: str) -> Future[Access]:
        self.tokens.append(token)
        return self.access if isinstance(self.access, Future) else answered(self.access)

    def validate(self, body: bytes, *, with_effect: bool) -> Future[dict[str, Any]]:
        self.calls.append((body, with_effect))
        return self.answer if isinstance(self.answer, Future) else answered(self.answer)

    async def post(
        self, *parts: bytes, headers: tuple[tuple[bytes, bytes], ...] = (), method: str = "POST"
    ) -> tuple[int, Any, dict[bytes, bytes]]:
        """The code, the body and the headers of the answer to a body in these parts."""
        left, sent = list(parts) or [b""], []

        async def receive() -> dict[str, Any]:
            part = left.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(left)}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await self.endpoint({"method": method, "headers": headers}, receive, send)
        return sent[0]["status"], json.loads(sent[1]["body"]), dict(sent[0]["headers"])


@pytest.mark.parametrize(
    ("headers", "token"),
    [
        ((), ""),
        (((b"authorization", b"Bearer a.b"),), "a.b"),
        (((b"authorization", b"bEARER  a.b "),), "a.b"),
        (((b"authorization", b"Basic a.b"),), ""),
        (((b"authorization", b"Bearer a"), (b"authorization", b"Bearer b")), ""),
    ],
)
def test_the_bearer_token_alone_says_who_calls(
    headers: tuple[tuple[bytes, bytes], ...], token: str
) -> None:
    called = Called()
    assert asyncio.run(called.post(b"{", b"}", headers=headers))[:2] == (200, {"effect": "e"})
    assert called.tokens == [token]
    assert called.calls == [(b"{}", True)]


def test_effects_are_withheld_from_who_may_not_read_all_that_policies_can() -> None:
    called = Called(Access(200))
    code, answer, _ = asyncio.run(called.post(b"{}"))
    assert (code, answer) == (200, {"effect": None, "effectWithheld": WITHHELD})
    assert called.calls == [(b"{}", False)]


@pytest.mark.parametrize("code", [401, 403])
def test_who_is_refused_is_informed_why_and_nothing_is_validated(code: int) -> None:
    called = Called(Access(code, "not you"))
    found, answer, headers = asyncio.run(called.post(b"{}"))
    assert (found, answer["message"]) == (code, "not you")
    assert headers.get(b"www-authenticate") == (b"Bearer" if code == 401 else None)
    assert called.calls == []


def test_a_token_beyond_any_is_refused_unasked() -> None:
    called = Called()
    headers = ((b"authorization", b"Bearer " + b"a" * (TOKEN_BYTES_MAX + 1)),)
    code, answer, _ = asyncio.run(called.post(b"{}", headers=headers))
    assert (code, answer["message"]) == (401, "the bearer token is not valid")
    assert called.tokens == []


def test_a_body_beyond_any_policy_is_refused_before_the_rest_of_it_is_read() -> None:
    called = Called()
    parts = [b" " * (BODY_BYTES_MAX // 2)] * 3
    code, answer, _ = asyncio.run(called.post(*parts, b"never read"))
    assert (code, answer["message"]) == (413, f"body larger than {BODY_BYTES_MAX} bytes")
    assert called.calls == []


@pytest.mark.parametrize(
    ("waits_for", "message"),
    [
        ("access", "the API server is busy with other callers' rights"),
        ("answer", "other policies are being"),
    ],
)
def test_a_few_calls_wait_at_a_time_and_the_next_has_to_ask_again(
    waits_for: str, message: str
) -> None:
    async def work() -> None:
        pending: Future[Any] = Future()
        called = Called(**{waits_for: pending})
        async with asyncio.TaskGroup() as tasks:
            waiting = [tasks.create_task(called.post(b"{}")) for _ in range(WAITING_MAX)]
            seen = called.tokens if waits_for == "access" else called.calls
            await turns_until(lambda: len(seen) == WAITING_MAX)
            code, answer, _ = await called.post(b"{}")
            assert code == 429
            assert message in answer["message"]
            pending.set_result(READER if waits_for == "access" else {"effect": "e"})
        assert [task.result()[0] for task in waiting] == [200] * WAITING_MAX
        assert (await called.post(b"{}"))[0] == 200

    asyncio.run(work())


@pytest.mark.parametrize(
    ("waits_for", "message"),
    [
        ("access", "the API server did not say in time who calls"),
        ("answer", "the validation exceeded its time limit"),
    ],
)
def test_what_is_not_found_out_in_time_is_answered_504(
    waits_for: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Late(Called):
        """Has no time left for what is awaited."""

        def ask(self, token: str) -> Future[Access]:
            no_time_left()
            return super().ask(token)

    def no_time_left() -> None:
        monkeypatch.setattr(validation, "ANSWER_SECONDS", 0.0)

    if waits_for == "access":
        no_time_left()
    pending: Future[Any] = Future()
    code, answer, _ = asyncio.run(Late(**{waits_for: pending}).post(b"{}"))
    assert (code, answer["message"]) == (504, message)
    assert pending.cancelled()


def test_a_refusal_of_the_validator_s_is_answered_as_it_is() -> None:
    code, answer, _ = asyncio.run(Called(answer=PoliciesRefused(503, "ends")).post(b"{}"))
    assert (code, answer["message"]) == (503, "ends")


def test_a_bug_is_answered_500_and_reported_to_the_log_alone() -> None:
    called = Called(answer=ZeroDivisionError("secret detail"))
    code, answer, _ = asyncio.run(called.post(b"{}"))
    assert (code, answer["message"]) == (500, "internal error: see the webhook's log")
    assert b"ZeroDivisionError: secret detail" in called.lines[0]


def test_policies_are_read_from_an_object_a_list_or_yaml() -> None:
    text = f"{REQUIRED_LABELS}\n---\n{constraint('a', 'owner')}"
    documents = list(yaml.safe_load_all(text))
    for body in (
        text.encode(),
        json.dumps(documents).encode(),
        json.dumps({"kind": "List", "items": documents}).encode(),
    ):
        assert read_policies(body) == documents
    assert read_policies(json.dumps(documents[1]).encode()) == documents[1:]


NAMELESS = {"apiVersion": "constraints.gatekeeper.sh/v1beta1", "kind": "A", "metadata": {}}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"a: [", "neither JSON nor YAML"),
        (b"\xff\xfe", "neither JSON nor YAML"),
        (b"[]", "the body has no template and no constraint"),
        (b"[1]", "item 0 is neither a ConstraintTemplate nor a constraint"),
        (json.dumps([NAMELESS]).encode(), r"item 0 \(A\) has no metadata.name"),
        (
            json.dumps([yaml.safe_load(REQUIRED_LABELS), pod()]).encode(),
            "item 1 is neither a ConstraintTemplate nor a constraint",
        ),
        (b"[%s]" % b",".join([b"{}"] * (POLICIES_MAX + 1)), "201 policies: 200 at most in a call"),
    ],
)
def test_what_is_no_policy_is_refused_by_its_place(body: bytes, message: str) -> None:
    with pytest.raises(PoliciesRefused, match=message) as caught:
        read_policies(body)
    assert caught.value.code == 400
