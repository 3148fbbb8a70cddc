"""With ``failurePolicy: Ignore`` what is not decided is stored: nobody gets in by being slow.

An answer with another code than 200 is what the API server ignores.
"""

import json
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loadtest.slow_objects import many_capabilities, many_containers, ordinary
from tests.behaviour.serving import SLOW, Answer, Server, review, thing, write_policies

POLICIES = Path(__file__).parents[2] / "policies"

THREE_SECONDS = "/v1/admit?timeout=3s"


@pytest.fixture(scope="module")
def shipped() -> Iterator[Server]:
    """A server of the policies that are shipped."""
    with Server(POLICIES) as running:
        yield running.ready()


def refusal(answer: Answer) -> dict[str, Any]:
    """The status of a refusal; fails for whatever lets an object in."""
    verdict = answer.verdict
    assert not verdict["allowed"], verdict
    status: dict[str, Any] = verdict["status"]
    return status


@pytest.mark.parametrize(
    "obj", [many_containers(3_000), many_capabilities(20_000)], ids=["containers", "capabilities"]
)
def test_a_privileged_pod_that_takes_long_is_refused(shipped: Server, obj: dict[str, Any]) -> None:
    status = refusal(shipped.post(review(obj), THREE_SECONDS))
    assert status["code"] in (403, 422)
    assert "privileged" in status["message"]


def test_a_flood_of_ones_own_does_not_get_in_what_waits_behind_it(shipped: Server) -> None:
    body = json.dumps(review(many_containers(1_650))).encode()
    answers: list[Answer] = []

    def ask() -> None:
        answers.append(shipped.post(body, THREE_SECONDS))

    threads = [threading.Thread(target=ask) for _ in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    codes = {refusal(answer)["code"] for answer in answers}
    assert len(answers) == 100
    assert codes <= {403, 422, 429}
    assert 429 in codes


def test_service_accounts_of_a_namespace_share_what_they_may_have(shipped: Server) -> None:
    """A user who may create one account may create a hundred, each with a name of its own."""
    answers: list[Answer] = []

    def ask(number: int) -> None:
        user = {"username": f"system:serviceaccount:shop:runner-{number}"}
        body = review(many_containers(1_650, namespace="shop"), userInfo=user)
        answers.append(shipped.post(body, THREE_SECONDS))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {refusal(answer)["code"] for answer in answers} <= {403, 422, 429}


@pytest.mark.parametrize("name", list(ordinary()))
def test_the_largest_ordinary_objects_are_decided(shipped: Server, name: str) -> None:
    verdict = shipped.post(review(ordinary()[name])).verdict
    assert verdict["allowed"], verdict
    assert "could not be decided" not in json.dumps(verdict)


def large(**metadata: Any) -> dict[str, Any]:
    """A ConfigMap larger than is usual, which the policy that is slow is asked about."""
    return {**thing("ConfigMap", "large", **metadata), "data": {"text": "x" * 40_000}}


def test_an_operator_may_have_such_objects_let_in(tmp_path: Path) -> None:
    policies = write_policies(tmp_path, SLOW)
    with Server(policies, "--on-undecidable=ignore", "--evaluation-budget=10ms") as running:
        verdict = running.ready().admit(large(namespace="default"))
    assert verdict["allowed"]
    (warning,) = verdict["warnings"]
    assert "[slow] Slow could not be decided (object)" in warning


def test_what_one_constraint_lets_in_another_refuses(tmp_path: Path) -> None:
    """The annotation of a constraint comes before the flag."""
    kept = SLOW.replace(
        "metadata: {name: slow}\nspec:\n  match",
        "metadata: {name: slow, annotations: {waddle.dev/on-undecidable: refuse}}\nspec:\n  match",
    )
    assert kept != SLOW
    flags = ("--on-undecidable=ignore", "--evaluation-budget=10ms")
    with Server(write_policies(tmp_path, kept), *flags) as running:
        running.ready()
        status = refusal(running.post(review(large(namespace="default"))))
        assert (status["code"], status["reason"]) == (422, "Undecidable")
        assert "make the object smaller" in status["message"]
        repair = running.admit(large(namespace="kube-system"))
        assert repair["allowed"]
        assert "could not be decided" in repair["warnings"][0]
        assert (running.metric("waddle_objects_undecidable_total") or 0) >= 1


def test_a_request_that_arrives_slowly_has_no_more_time_for_that(shipped: Server) -> None:
    """The API server counts from before it sends: its answer would come too late."""
    body = json.dumps(review(many_containers(1))).encode()
    head = b"POST /v1/admit?timeout=100ms HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
    with shipped.raw() as connection:
        connection.sendall(head + b"content-length: %d\r\n\r\n" % len(body) + body[:10])
        time.sleep(0.3)  # the test shows that this time is gone
        connection.sendall(body[10:])
        answer = _first_line(connection)
    assert b" 504 " in answer


def _first_line(connection: ssl.SSLSocket) -> bytes:
    connection.settimeout(60)
    text = b""
    while b"\r\n" not in text:
        try:
            part = connection.recv(4096)
        except (ConnectionError, TimeoutError):
            break
        if not part:
            break
        text += part
    return text.partition(b"\r\n")[0]
