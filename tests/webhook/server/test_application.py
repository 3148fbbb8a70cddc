"""The application: Starlette, driven by uvicorn's server through our protocol class."""

import asyncio
import json
import socket
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

from tests.patience import PATIENCE_SECONDS
from tests.webhook.server.limits import ADMISSION_LIMITS
from webhook.api.admission import AdmissionRequest, AdmissionResponse
from webhook.log import Log, Logger
from webhook.metrics.registry import Registry
from webhook.server.application import make_application
from webhook.server.decoding import Decoding
from webhook.server.http.connection import Connection
from webhook.server.http.hub import Hub
from webhook.server.http.listener import Listener
from webhook.server.namespace_label import Exemptions

REVIEW = json.dumps(
    {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u"}}
).encode()


class Lines(list[bytes]):
    """The logged lines."""

    @property
    def logger(self) -> Logger:
        """A logger that writes here."""
        return Log(self.append).logger("test")


@pytest.fixture
def lines() -> Lines:
    """Returns the logged lines."""
    return Lines()


async def exchange(application: Any, lines: Lines, *requests: bytes) -> list[bytes]:
    """Serve the application by uvicorn and send each request on a connection of its own."""
    hub = Hub(ADMISSION_LIMITS, Registry(), lines.logger)
    bound = socket.create_server(("127.0.0.1", 0))
    bound.setblocking(False)
    listener = Listener(hub, application, bound)
    found: list[bytes] = []
    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        group.create_task(listener.serve())
        await listener.listening.wait()
        for request in requests:
            reader, writer = await asyncio.open_connection(*bound.getsockname())
            writer.write(request)
            found.append(await reader.read())
            writer.close()
            await writer.wait_closed()
        listener.stop()
    assert hub.in_flight == 0
    assert hub.waiting_bytes == 0
    assert hub.connections == set()
    return found


def post(path: str, body: bytes = b"", method: str = "POST") -> bytes:
    """A request after which the connection is closed."""
    return (
        f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    ).encode() + body


def allow(request: AdmissionRequest, query: bytes, received_at: float) -> AdmissionResponse:
    """Decide nothing."""
    assert received_at > 0
    return AdmissionResponse(request.uid, allowed=True, message=query.decode())


def test_v1_admit_is_served_without_a_task_or_routing(lines: Lines) -> None:
    """The request passes uvicorn's server and our protocol class, which asks the endpoint."""
    application = make_application(
        allow, Exemptions(), Registry(), lines.logger, decoding=Decoding(body_max=1_000_000)
    )

    async def never(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError(scope["path"])

    application.router.middleware_stack = never
    found = asyncio.run(exchange(application, lines, post("/v1/admit?timeout=1s", REVIEW)))
    assert b'"allowed":true' in found[0]
    assert b"\r\ncontent-type: application/json\r\n" in found[0]
    assert b"\r\nconnection: close\r\n" in found[0]
    assert issubclass(Listener, uvicorn.Server)
    assert issubclass(Connection, asyncio.BufferedProtocol)


def test_v1_admit_is_a_route_of_a_starlette_application(lines: Lines) -> None:
    """Other servers and requests that must wait find the route there: the answers are the same."""
    application = make_application(
        allow, Exemptions(), Registry(), lines.logger, decoding=Decoding(body_max=1_000_000)
    )
    assert isinstance(application, Starlette)
    application.at_once = {}
    passed: list[dict[str, Any]] = []
    routed = application.router.app

    async def noted(scope: Any, receive: Any, send: Any) -> None:
        await routed(scope, receive, send)
        passed.append(scope)

    application.router.middleware_stack = noted
    found = asyncio.run(exchange(application, lines, post("/v1/admit?timeout=1s", REVIEW)))
    assert b'"allowed":true' in found[0]
    assert [scope["app"] for scope in passed] == [application]
    assert passed[0]["router"] is application.router
    assert passed[0]["route"].path == "/v1/admit"


def test_a_bug_in_deciding_is_answered_500_and_logged(lines: Lines) -> None:
    def fail(request: AdmissionRequest, query: bytes, received_at: float) -> AdmissionResponse:
        raise ZeroDivisionError("secret detail")

    registry = Registry()
    application = make_application(
        fail, Exemptions(), registry, lines.logger, decoding=Decoding(body_max=1000)
    )
    found = asyncio.run(exchange(application, lines, post("/v1/admit", REVIEW)))
    head, _, body = found[0].partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 500 ")
    assert json.loads(body)["reason"] == "InternalError"
    assert b"secret" not in body
    assert json.loads(lines[0])["error"] == "ZeroDivisionError: secret detail"


async def waits(request: Request) -> PlainTextResponse:
    """Wait for another task, as no admission does."""
    body = await request.body()
    await asyncio.sleep(0)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(asyncio.sleep(0, len(body)))
    return PlainTextResponse(str(task.result()))


async def streams(request: Request) -> StreamingResponse:
    """Answer in parts."""

    async def parts() -> Any:
        for number in range(3):
            await asyncio.sleep(0)
            yield f"part {number}\n"

    return StreamingResponse(parts())


async def fails(request: Request) -> PlainTextResponse:
    """Fail after having waited."""
    await asyncio.sleep(0)
    raise ZeroDivisionError


async def fails_in_parts(request: Request) -> StreamingResponse:
    """Fail after having begun to answer."""

    async def parts() -> Any:
        yield "begun"
        raise ZeroDivisionError

    return StreamingResponse(parts())


WAITING = Starlette(
    routes=[
        Route("/waits", waits, methods=["POST"]),
        Route("/streams", streams),
        Route("/fails", fails),
        Route("/fails-in-parts", fails_in_parts),
    ]
)


def test_a_failure_of_what_answers_at_once_is_a_bug_answered_500(lines: Lines) -> None:
    class Failing:
        def respond(self, scope: dict[str, Any], body: bytes) -> None:
            raise ZeroDivisionError

    failing = Starlette()
    failing.at_once = {"/fails": Failing()}  # type: ignore[attr-defined]
    found = asyncio.run(exchange(failing, lines, post("/fails", b"x")))
    assert found[0].startswith(b"HTTP/1.1 500 ")
    assert b"ZeroDivisionError" in lines[-1]


def test_what_cannot_be_answered_at_once_is_asked_of_the_application(lines: Lines) -> None:
    class Undecided:
        def respond(self, scope: dict[str, Any], body: bytes) -> None:
            assert body == b"x" * 10

    undecided = Starlette(routes=[Route("/waits", waits, methods=["POST"])])
    undecided.at_once = {"/waits": Undecided()}  # type: ignore[attr-defined]
    found = asyncio.run(exchange(undecided, lines, post("/waits", b"x" * 10)))
    assert found[0].endswith(b"\r\n\r\n10")


def test_an_application_that_waits_is_run_in_a_task(lines: Lines) -> None:
    found = asyncio.run(exchange(WAITING, lines, post("/waits", b"x" * 100_000)))
    assert found[0].endswith(b"\r\n\r\n100000")


def test_a_streamed_answer_is_sent_in_chunks(lines: Lines) -> None:
    one_zero = b"GET /streams HTTP/1.0\r\n\r\n"
    chunked, plain = asyncio.run(exchange(WAITING, lines, post("/streams", method="GET"), one_zero))
    assert b"transfer-encoding: chunked" in chunked
    assert chunked.endswith(b"7\r\npart 0\n\r\n7\r\npart 1\n\r\n7\r\npart 2\n\r\n0\r\n\r\n")
    assert plain.endswith(b"\r\n\r\npart 0\npart 1\npart 2\n")


def test_head_has_the_headers_and_no_body(lines: Lines) -> None:
    found = asyncio.run(exchange(WAITING, lines, post("/nothing", method="HEAD")))
    assert found[0].startswith(b"HTTP/1.1 404 ")
    assert b"content-length: 9" in found[0]
    assert found[0].endswith(b"\r\n\r\n")


def test_a_failure_after_waiting_is_answered_500(lines: Lines) -> None:
    found = asyncio.run(exchange(WAITING, lines, post("/fails", method="GET")))
    assert found[0].startswith(b"HTTP/1.1 500 ")
    assert b"ZeroDivisionError" in lines[0]


def test_a_failure_in_the_middle_of_an_answer_breaks_it_off(lines: Lines) -> None:
    """The client must be able to tell that the answer is not whole."""
    found: list[bytes] = []
    try:
        found = asyncio.run(exchange(WAITING, lines, post("/fails-in-parts", method="GET")))
    except* ConnectionResetError:
        pass
    assert not any(answer.endswith(b"0\r\n\r\n") for answer in found)
    assert any(b"ZeroDivisionError" in line for line in lines)


def test_an_application_that_says_nothing_is_a_bug(lines: Lines) -> None:
    async def silent(scope: Any, receive: Any, send: Any) -> None:
        return

    found = asyncio.run(exchange(silent, lines, post("/", b"x")))
    assert found[0].startswith(b"HTTP/1.1 500 ")


def test_a_header_of_two_lines_is_never_sent(lines: Lines) -> None:
    async def splitting(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"a", b"b\r\nset-cookie: c")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    found = asyncio.run(exchange(splitting, lines, post("/", b"x")))
    assert b"set-cookie" not in found[0]
    assert found[0].startswith(b"HTTP/1.1 500 ")


def test_receive_after_the_body_tells_of_the_client_s_leave(lines: Lines) -> None:
    received: list[str] = []

    async def patient(scope: Any, receive: Any, send: Any) -> None:
        received.append((await receive())["type"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})
        received.append((await receive())["type"])

    asyncio.run(exchange(patient, lines, post("/", b"x")))
    assert received == ["http.request", "http.disconnect"]


def test_an_answer_that_comes_later_is_sent_when_it_is_there(lines: Lines) -> None:
    class Later:
        def respond(self, scope: dict[str, Any], body: bytes) -> Any:
            def answer(notify: Any) -> None:
                content = str(len(body)).encode()
                asyncio.get_running_loop().call_soon(notify, (200, (), content))

            return answer

    application = Starlette()
    application.at_once = {"/later": Later()}  # type: ignore[attr-defined]
    found = asyncio.run(exchange(application, lines, post("/later", b"x" * 10)))
    assert found[0].startswith(b"HTTP/1.1 200 ")
    assert found[0].endswith(b"\r\n\r\n10")
