"""One request and its response: the ASGI side of a connection.

A request that is answered at once (:attr:`~webhook.server.http.hub.Hub.at_once`), as nearly every
admission, is one function call: without coroutines, a task and messages it costs a tenth less. One
that waits for something is another call when that is there. All others are ASGI calls in a task.
"""

from __future__ import annotations

import asyncio
import functools
import math
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Protocol

from webhook.api.admission import origin_of
from webhook.server.deadline import RequestTime
from webhook.server.http.crowding import answer_overdue
from webhook.server.http.fair_queue import Occupant, flow_of, occupant_of
from webhook.server.http.head import STRANGER
from webhook.server.http.limits import PREFIX_BYTES
from webhook.server.http.responder import JSON
from webhook.server.responsibility import NOTHING_KNOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from webhook.server.http.fair_queue import Flow
    from webhook.server.http.hub import Hub, Share
    from webhook.server.http.responder import HttpAnswer, HttpHeader, Responder

    Receive = Callable[[], Coroutine[Any, Any, dict[str, Any]]]
    Send = Callable[[dict[str, Any]], Coroutine[Any, Any, None]]
    Application = Callable[[dict[str, Any], Receive, Send], Coroutine[Any, Any, None]]

JSON_ALONE: Final = (JSON,)
"""The headers of nearly every answer, known by identity."""

RELEASE: Final = "waddle.release_body"
"""The scope's key of the function that releases the request's body before the answer."""


def status_line(status: int) -> bytes:
    """Returns the first line of a response."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    return f"HTTP/1.1 {status} {phrase}\r\n".encode()


_STATUS_LINES: Final = {status: status_line(status) for status in range(100, 600)}
_BODILESS: Final = frozenset({204, 304})


class Peer(Protocol):
    """The connection of a request, as far as its response needs it."""

    hub: Hub
    application: Application
    writable: asyncio.Event | None
    """Set when the client reads again; None while it reads fast enough."""

    def write(self, data: bytes) -> None:
        """Sends bytes."""

    def answered(self, exchange: Exchange) -> None:
        """Called after a complete response."""

    def abort(self, reason: str) -> None:
        """Closes at once."""


class Exchange:
    """A complete request on its way to a response."""

    __slots__ = (
        "_chunked",
        "_gone",
        "_head",
        "_occupant",
        "_received",
        "_run_until",
        "_started",
        "before",
        "body",
        "complete",
        "connection",
        "keep_alive",
        "queued",
        "reserved",
        "scope",
        "share",
    )

    def __init__(
        self, connection: Peer, scope: dict[str, Any], body: bytes | bytearray, *, keep_alive: bool
    ) -> None:
        self.connection: Peer | None = connection
        self.scope = scope
        self.body = body
        self.keep_alive = keep_alive
        self.complete = False
        self.queued = False
        self.reserved = 0
        """Bytes of its place among the large bodies."""
        self.share: Share | None = None
        """The client's share of the hub, in which its body is counted."""
        self._occupant: Occupant | None = None
        self.before = NOTHING_KNOWN
        """The requests that waited before it, and its own user's share of them."""
        self._run_until: float | None = None
        self._received = False
        self._started = False
        self._chunked = False
        self._head: tuple[int, list[HttpHeader]] | None = None
        self._gone: asyncio.Event | None = None

    @property
    def occupant(self) -> Occupant:
        """Returns the user of the request, and the size of its body."""
        if self._occupant is None:
            self._occupant = occupant_of(self.body)
        return self._occupant

    @property
    def flow(self) -> Flow:
        """See :class:`~webhook.server.http.request_queue.Waiting`."""
        return flow_of(self.body, self.scope.get(STRANGER, ""))

    @property
    def size(self) -> int:
        """See :class:`~webhook.server.http.request_queue.Waiting`."""
        return len(self.body)

    @property
    def run_until(self) -> float:
        """See :class:`~webhook.server.http.request_queue.Waiting`."""
        if self._run_until is None:
            responder = self._responder
            # Only an API server gives up after its timeout; other clients' requests have no
            # deadline, and cannot be refused unread.
            if responder is None or origin_of(self.body[:PREFIX_BYTES]) is None:
                return math.inf
            received_at = self.scope["received_at"]
            until = responder.until(self.scope["query_string"], received_at)
            self._run_until = RequestTime(received_at, until).review_until
        return self._run_until

    @property
    def _responder(self) -> Responder | None:
        """Returns the responder that answers at once; None if the client is gone."""
        connection = self.connection
        return None if connection is None else connection.hub.at_once.get(self.scope["path"])

    # --- running -------------------------------------------------------------------------------

    def run(self) -> None:
        """Runs the application for this request: completely, or in a task if it may wait."""
        connection = self.connection
        if connection is None:
            return  # The client has closed the connection: nothing reads the answer.
        scope = self.scope
        responder = connection.hub.at_once.get(scope["path"])
        if responder is not None:
            try:
                answer = responder.respond(scope, self.body)
                if isinstance(answer, tuple):
                    self.answer(*answer)
                    return
                if answer is not None:
                    self._occupant = self.occupant  # It counts for its user without its body, too.
                    self.release_body(connection.hub)
                    answer(self._answer_later)
                    return
            except Exception as error:  # noqa: BLE001  # the request's boundary: a bug is answered 500
                self._failed(error)
                return
        self._occupant = self.occupant  # It counts for its user without its body, too.
        scope[RELEASE] = functools.partial(self.release_body, connection.hub)
        application = connection.application(scope, self.receive, self.send)
        connection.hub.keep(asyncio.get_running_loop().create_task(self._finish(application)))

    def _answer_later(self, answer: HttpAnswer) -> None:
        try:
            self.answer(*answer)
        except Exception as error:  # noqa: BLE001  # the request's boundary: a bug is answered 500
            self._failed(error)

    def give_up(self) -> None:
        """Answers that there was no time for it, because of its own user or of others."""
        responder, connection = self._responder, self.connection
        if responder is None or connection is None:
            return
        since = self.scope["received_at"]
        answer = answer_overdue(self.body, responder, connection.hub, since, self.before)
        self.answer(*answer)

    async def _finish(self, application: Coroutine[Any, Any, None]) -> None:
        try:
            await application
        except Exception as error:  # noqa: BLE001  # the request's boundary: a bug is answered 500
            self._failed(error)
        else:
            self._ended()
        finally:
            self.scope.pop(RELEASE, None)  # It refers back to this object.

    def _ended(self) -> None:
        if not self.complete and self.connection is not None:
            self._failed(RuntimeError("the application returned without completing its response"))

    def _failed(self, error: Exception) -> None:
        """Handles a bug: logs it, and answers 500 if nothing was answered yet."""
        connection = self.connection
        if connection is not None:
            connection.hub.log.fault("bug while answering a request", error)
        if self.complete or connection is None:
            return
        if self._started:
            self.abandon()
        else:
            connection.hub.refused("bug")
            self.keep_alive = False
            self.answer(500, (), b"internal server error\n")

    def abandon(self) -> None:
        """Gives up a response that has begun or cannot begin: the connection must close."""
        connection = self.connection
        if connection is not None:
            connection.abort("bug")

    def release_body(self, hub: Hub) -> None:
        """Releases the body and its share of the hub's bounds."""
        hub.waiting_bytes -= len(self.body)
        if self.share is not None:
            self.share.bytes -= len(self.body)
        self.body = b""
        if self.reserved:
            size, self.reserved = self.reserved, 0
            hub.large.release(size)

    def disconnected(self) -> None:
        """Notes that the client is gone."""
        self.connection = None
        if self._gone is not None:
            self._gone.set()

    # --- ASGI ----------------------------------------------------------------------------------

    async def receive(self) -> dict[str, Any]:
        """Returns the whole body, and then the event that the client is gone or was answered."""
        if not self._received:
            self._received = True
            return {"type": "http.request", "body": self.body, "more_body": False}
        if self.connection is not None and not self.complete:
            self._gone = asyncio.Event()
            await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        """Takes a part of the response; the head is sent with the first part of the body."""
        connection = self.connection
        if connection is None or self.complete:
            return
        if message["type"] == "http.response.start":
            self._head = (message["status"], list(message.get("headers", ())))
            return
        assert self._head is not None, "a response has a start before its body"
        body = message.get("body", b"")
        more = message.get("more_body", False)
        if self._started:
            self._write_part(connection, body, more=more)
        elif more:
            self._write_first_part(connection, body)
        else:
            self.answer(*self._head, body)
        if more and connection.writable is not None:
            await connection.writable.wait()

    def answer(self, status: int, headers: Iterable[HttpHeader], body: bytes) -> None:
        """Writes a complete response."""
        connection = self.connection
        if connection is None:
            return
        hub = connection.hub
        if headers is JSON_ALONE and self.keep_alive and not hub.draining:
            self._started = True
            head = b"%b%bcontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (
                _STATUS_LINES[status],
                hub.date_line,
                len(body),
            )
            connection.write(head if self.scope["method"] == "HEAD" else head + body)
            self._completed(connection)
            return
        lines = [_STATUS_LINES[status], hub.date_line]
        for name, value in headers:
            if name == b"connection":
                self.keep_alive = self.keep_alive and value != b"close"
            elif name != b"content-length":
                lines.append(_header(name, value))
        if hub.draining:
            self.keep_alive = False
        if status not in _BODILESS:
            lines.append(b"content-length: %d\r\n" % len(body))
        if not self.keep_alive:
            lines.append(b"connection: close\r\n")
        lines.append(b"\r\n")
        if self.scope["method"] != "HEAD":
            lines.append(body)
        self._started = True
        connection.write(b"".join(lines))
        self._completed(connection)

    def _write_first_part(self, connection: Peer, body: bytes) -> None:
        assert self._head is not None
        status, headers = self._head
        # A length that the application knows would spare the chunks; no route of ours knows one.
        self._chunked = self.scope["http_version"] == "1.1"
        if not self._chunked or connection.hub.draining:
            self.keep_alive = False
        lines = [_STATUS_LINES[status], connection.hub.date_line]
        lines += [_header(name, value) for name, value in headers if name != b"content-length"]
        if self._chunked:
            lines.append(b"transfer-encoding: chunked\r\n")
        if not self.keep_alive:
            lines.append(b"connection: close\r\n")
        lines.append(b"\r\n")
        self._started = True
        connection.write(b"".join(lines))
        self._write_part(connection, body, more=True)

    def _write_part(self, connection: Peer, body: bytes, *, more: bool) -> None:
        if body and self.scope["method"] != "HEAD":
            connection.write(b"%x\r\n%b\r\n" % (len(body), body) if self._chunked else body)
        if not more:
            if self._chunked and self.scope["method"] != "HEAD":
                connection.write(b"0\r\n\r\n")
            self._completed(connection)

    def _completed(self, connection: Peer) -> None:
        self.complete = True
        if self._gone is not None:
            self._gone.set()
        connection.answered(self)


def _header(name: bytes, value: bytes) -> bytes:
    line = b"%b: %b\r\n" % (name, value)
    if line.count(b"\n") != 1 or b"\r" in line[:-2]:
        raise ValueError(f"a response header of more than one line: {name!r}")
    return line
