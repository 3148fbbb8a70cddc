"""Requests without room or time are refused behind their own user's, not behind others'."""

import asyncio
import json
from dataclasses import replace

import pytest

from tests.patience import turns_until
from tests.webhook.server.crowds import beginning, refused, sent_by
from tests.webhook.server.paused import Port
from webhook.api.admission import AdmissionRequest, namespace_in, username_in
from webhook.server.http.limits import PREFIX_BYTES
from webhook.server.outcome import Pending
from webhook.server.responsibility import Responsible
from webhook.server.undecided import UnreadAnswer

SIZE = Port.size


def large(user: str, timeout: str = "30s") -> bytes:
    """A head, and as much of a large body as tells whose it is."""
    head = f"POST /v1/admit?timeout={timeout} HTTP/1.1\r\nHost: x\r\nContent-Length: {SIZE}\r\n\r\n"
    return head.encode() + beginning(user).ljust(PREFIX_BYTES)


def small(user: str) -> bytes:
    """A whole request."""
    body = beginning(user)
    head = "POST /v1/admit?timeout=30s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def late(port: Port, *before: str) -> tuple[int, dict[str, object]]:
    """Returns the answer to mallory's body without a place, behind these users' bodies."""

    async def run() -> tuple[int, dict[str, object]]:
        connected = []
        for user in before:
            connection, transport = port.connect()
            connected.append(connection)
            connection.receive(large(user))
        connection, transport = port.connect()
        connected.append(connection)
        connection.receive(large("mallory", timeout="100ms"))
        await turns_until(lambda: transport.sent)
        for connection in connected:
            connection.connection_lost(None)
        return sent_by(transport)

    found = asyncio.run(run())
    assert port.is_as_at_the_start()
    return found


def test_a_body_that_has_not_arrived_at_its_deadline_behind_its_users_own_is_refused() -> None:
    """The answer 429 came after the API server's timeout: failurePolicy admitted the object."""
    found = late(Port(), "mallory", "mallory", "bob")
    assert refused(found) == 429
    assert "of the same user" in json.dumps(found[1])


def test_a_body_alone_that_has_not_arrived_at_its_deadline_is_informed_of_its_size() -> None:
    """The answer asked for fewer requests at once, though there was one."""
    found = late(Port())
    assert refused(found) == 422
    assert "make it smaller" in json.dumps(found[1])


def test_a_body_that_has_not_arrived_at_its_deadline_behind_others_is_left_to_failure_policy() -> (
    None
):
    code, document = late(Port(), "bob", "bob", "bob")
    assert code == 504
    assert "did not arrive within its time" in str(document["message"])


def test_whoever_has_answers_to_wait_for_has_their_places_without_their_bodies() -> None:
    """Bodies are let go of when they are read: what waited longest counted for nobody."""

    def wait(request: AdmissionRequest, query: bytes, received_at: float) -> Pending:
        return Pending(asyncio.get_running_loop().create_future(), lambda: None, "v1")  # type: ignore[arg-type, return-value]

    port = Port(decide=wait)
    port.hub.limits = replace(port.hub.limits, in_flight_max=4)

    async def run() -> list[tuple[int, dict[str, object]]]:
        waiting = [port.connect()[0] for _ in range(4)]
        for connection in waiting:
            connection.receive(small("mallory"))
        await turns_until(lambda: not port.hub.queue)
        for _ in range(10):
            await asyncio.sleep(0)
        answers = []
        for user in ("mallory", "bob"):
            connection, transport = port.connect()
            # Of another address there is room beyond the bound: this is one of the same.
            connection.receive(small(user))
            answers.append(sent_by(transport))
            connection.connection_lost(None)
        for connection in waiting:
            connection.connection_lost(None)
        return answers

    of_mallory, of_bob = asyncio.run(run())
    assert refused(of_mallory) == 429
    assert of_bob[0] == 429
    assert of_bob[1]["kind"] == "Status"


@pytest.mark.parametrize(
    ("answer", "code", "allowed"),
    [("refuse", 200, False), ("warn", 200, True), ("fail", 504, None)],
)
def test_what_is_not_read_is_answered_as_policies_in_force_have_it(
    answer: UnreadAnswer, code: int, allowed: bool | None
) -> None:
    calls: list[tuple[str, Responsible]] = []

    def answer_unread(namespace: str, responsible: Responsible) -> UnreadAnswer:
        calls.append((namespace, responsible))
        return answer

    found = late(Port(answer_unread=answer_unread), "mallory")
    assert found[0] == code
    assert calls == [("shop", "requester")]
    if allowed is not None:
        response = found[1]["response"]
        assert isinstance(response, dict)
        assert response["allowed"] is allowed
        assert bool(response.get("warnings")) is allowed


def test_whose_a_request_is_stands_before_what_its_object_says() -> None:
    forged = {"namespace": "kube-system", "operation": "CREATE", "userInfo": {"username": "root"}}
    text = beginning("mallory").replace(b'"kind":"Pod"', json.dumps(forged)[1:-1].encode())
    assert (username_in(text), namespace_in(text)) == ("mallory", "shop")
    text = text.replace(b'"namespace":"shop",', b"", 1)
    assert (username_in(text), namespace_in(text)) == ("mallory", "")
