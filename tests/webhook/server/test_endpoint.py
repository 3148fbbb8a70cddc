"""Bodies that find no room, are no reviews, or meet a bug; with records of them."""

import asyncio
import json
from typing import Any

import pytest

from tests.behaviour.serving import REQUIRED_LABELS, constraint, pod, review
from tests.webhook.server.admitting import Admitting, request_of
from webhook.api.admission import AdmissionRequest, AdmissionResponse
from webhook.log import Log
from webhook.metrics.admission import REFUSED
from webhook.metrics.registry import Registry
from webhook.server.decoding import LARGE_BYTES, Decoding, Memory
from webhook.server.endpoint import Decide, ReviewEndpoint
from webhook.server.outcome import Pending, Unanswerable
from webhook.serving.recorder import Reviewed

JSON = [(b"content-type", b"application/json")]
LARGE = json.dumps(review(pod() | {"spec": {"text": "x" * LARGE_BYTES}})).encode()


class CalledEndpoint:
    """An endpoint, and what it counted and logged."""

    def __init__(self, decide: Decide, memory: Memory | None = None) -> None:
        self.registry, self.lines = Registry(), list[bytes]()
        self.decoding = Decoding(body_max=1_000_000, memory=memory)
        log = Log(self.lines.append).logger("test")
        self.endpoint = ReviewEndpoint(decide, self.registry, log, decoding=self.decoding)

    def post(self, *parts: bytes, query: bytes = b"") -> tuple[int, Any]:
        """The code and the body of the answer, at once or in a task, as a connection asks."""
        scope: dict[str, Any] = {"method": "POST", "query_string": query, "headers": JSON}
        sent: list[dict[str, Any]] = []
        left = list(parts)

        async def receive() -> dict[str, Any]:
            body = left.pop(0)
            return {"type": "http.request", "body": body, "more_body": bool(left)}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        async def run() -> tuple[int, Any]:
            answer = self.endpoint.respond(scope, parts[0]) if len(parts) == 1 else None
            if callable(answer):
                later = asyncio.get_running_loop().create_future()
                answer(later.set_result)
                answer = await later
            if answer is not None:
                return answer[0], json.loads(answer[2])
            await self.endpoint(scope, receive, send)
            return sent[0]["status"], json.loads(sent[1]["body"])

        return asyncio.run(run())

    @property
    def refused(self) -> dict[tuple[str, ...], int]:
        """Returns the counts of refusals, by reason."""
        return dict(self.registry.counters.get(REFUSED, {}))


def allow(request: AdmissionRequest, query: bytes, received_at: float) -> AdmissionResponse:
    """Decide nothing."""
    return AdmissionResponse(request.uid, allowed=True)


def wait(request: AdmissionRequest, query: bytes, received_at: float) -> Pending:
    """Decide after something else."""
    finished = asyncio.get_running_loop().create_future()
    finished.set_result(None)
    return Pending(finished, lambda: allow(request, query, received_at), request.api_version)


def test_a_body_in_parts_is_read_whole() -> None:
    for body in (json.dumps(review()).encode(), LARGE):
        code, found = CalledEndpoint(allow).post(body[:100], body[100:200], body[200:])
        assert (code, found["response"]["allowed"]) == (200, True)


def test_what_waits_gives_its_room_back_when_it_is_answered() -> None:
    memory = Memory(100_000)
    code, _ = CalledEndpoint(wait, memory).post(json.dumps(review()).encode())
    assert code == 200
    memory.take(100_000)


def test_what_would_have_to_wait_and_finds_no_room_has_to_try_again() -> None:
    endpoint = CalledEndpoint(wait, Memory(1))
    code, found = endpoint.post(json.dumps(review()).encode())
    assert code == 429
    assert "too many large requests are in review" in found["message"]
    assert endpoint.refused == {("overload",): 1}


def test_a_large_request_that_finds_no_room_in_its_time_has_to_try_again() -> None:
    memory = Memory(10_000_000)
    memory.take(10_000_000 - LARGE_BYTES)
    endpoint = CalledEndpoint(allow, memory)
    code, found = endpoint.post(LARGE, query=b"timeout=60ms")
    assert code == 429
    assert "too many large requests" in found["message"]
    assert endpoint.refused == {("overload",): 1}


@pytest.mark.parametrize(
    ("body", "query", "message"),
    [
        (LARGE, b"timeout=soon", "timeout must be a duration"),
        (b"[%s]" % (b"1," * LARGE_BYTES + b"1"), b"", "must be an object"),
        (LARGE[:-10], b"", "not JSON"),
    ],
)
def test_a_large_request_that_is_none_is_refused_as_a_small_one(
    body: bytes, query: bytes, message: str
) -> None:
    memory = Memory(100_000_000)
    endpoint = CalledEndpoint(allow, memory)
    code, found = endpoint.post(body, query=query)
    assert code == 400
    assert message in found["message"]
    memory.take(100_000_000)  # Nothing is held of it.


class Recorded:
    """A recorder."""

    def __init__(self) -> None:
        self.without: list[tuple[int, str]] = []
        self.decided: list[bool] = []
        self.names = iter(("first", "second", "third"))

    def answered(self, *arguments: Any) -> AdmissionResponse:
        response: AdmissionResponse = arguments[-1]
        self.decided.append(response.allowed)
        return response

    def unanswered(self, reviewed: Reviewed, code: int, error: str) -> None:
        self.without.append((code, error))


def test_what_got_no_decision_and_a_bug_are_on_record_too() -> None:
    recorded = Recorded()
    admitting = Admitting(REQUIRED_LABELS, constraint("a", "owner"), recorder=recorded)
    denied = admitting.ask(request_of(pod()))
    assert (denied.allowed, denied.decision_id) == (False, "first")
    assert admitting.ask(request_of(pod(owner="a"))).decision_id == "second"
    another = request_of(pod())._replace(username="bob")  # other users have taken the time
    assert isinstance(admitting.ask(another, b"timeout=1s", late=2.0), Unanswerable)
    broken = request_of(pod())._replace(document=None)  # type: ignore[arg-type]
    with pytest.raises(Exception, match="NoneType"):
        admitting.ask(broken)
    assert recorded.decided == [False, True]
    (late, bug) = recorded.without
    assert late == (504, "the review did not end within its time")
    assert bug[0] == 500
    assert bug[1].startswith("bug: ")
