"""One connection: uvicorn's protocol class, with the limits and timeouts that uvicorn lacks.

uvicorn makes one for each connection (``http=`` of its configuration). httptools parses. A request
is passed to the application when its body is complete, so a slow client costs bytes and a deadline,
but never a running request. Malformed input is answered with a 4xx that says what is wrong, and the
connection is closed.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final, cast

import httptools

from webhook.server.http import head, limits
from webhook.server.http.body import RequestBody
from webhook.server.http.crowding import IN_FLIGHT, UnreadRefusal, answer_to
from webhook.server.http.exchange import Exchange
from webhook.server.http.fair_queue import Occupant, occupant_of
from webhook.server.http.hub import READ_BYTES, Share

if TYPE_CHECKING:
    from uvicorn import Config

    from webhook.server.http.exchange import Application
    from webhook.server.http.hub import Hub
    from webhook.server.http.limits import Ending, Reading
    from webhook.server.http.responder import Responder

NEVER: Final = float("inf")
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class _Closed(asyncio.Transport):
    """The transport of a closed connection: nothing can be sent or read."""

    __slots__ = ()

    def is_closing(self) -> bool:
        return True

    def write(self, data: Any) -> None:
        """Drops the data."""

    def pause_reading(self) -> None:
        """Nothing is read any more."""

    def resume_reading(self) -> None:
        """Nothing is read any more."""

    def close(self) -> None:
        """Does nothing: the connection is already closed."""

    def abort(self) -> None:
        """Does nothing: the connection is already closed."""


_CLOSED: Final = _Closed()


class Connection(asyncio.BufferedProtocol):
    """The requests and responses of one connection, in order."""

    __slots__ = (
        "_armed",
        "_body",
        "_chunk_size",
        "_completed",
        "_current",
        "_drops",
        "_ending",
        "_headers",
        "_parser",
        "_pending",
        "_raw_size",
        "_reading",
        "_received_at",
        "_refusal",
        "_scope",
        "_target",
        "_transport",
        "_url",
        "application",
        "client",
        "deadline",
        "hub",
        "opening",
        "share",
        "writable",
    )

    def __init__(self, hub: Hub, config: Config, **_uvicorn: Any) -> None:
        self.hub = hub
        self.application: Application = config.loaded_app
        self.client = ""
        """The address of the client."""
        self.opening = head.UNKNOWN
        self.share = Share()
        """The share of the port of all connections with this address."""
        self.deadline = NEVER
        """When the present state must have ended, on the monotonic clock."""
        self.writable: asyncio.Event | None = None
        """Set when the client reads again; None while it reads fast enough."""
        self._transport: asyncio.Transport = None  # type: ignore[assignment]  # until connected
        self._parser: Any = httptools.HttpRequestParser(self)
        self._reading: Reading = "start"
        self._armed: Reading | None = None  # the state that the deadline belongs to
        self._ending: Ending = ""
        self._current: Exchange | None = None
        self._pending: deque[Exchange] = deque()
        self._refusal: UnreadRefusal | None = None
        self._scope: dict[str, Any] = {}
        self._raw_size = 0
        self._received_at = 0.0
        self._chunk_size = 0
        self._completed = False
        self._url = b""
        self._target: head.RequestTarget = (b"", "", b"", b"")
        self._headers: list[tuple[bytes, bytes]] = []
        self._body = RequestBody(hub)
        self._drops = False  # something has arrived lately that is not taken

    # --- the transport's callbacks ---------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Starts a connection after its TLS handshake."""
        self._transport = cast("asyncio.Transport", transport)
        self.deadline = time.monotonic() + self.hub.limits.header_timeout_seconds
        self.client = head.client_of(transport.get_extra_info("peername"))
        socket = transport.get_extra_info("socket")
        if not self.hub.joined(self, -1 if socket is None else socket.fileno()):
            self.abort("too_many_connections")
            return
        fault = self.hub.peer_check(transport) if self.hub.peer_check is not None else None
        if fault is not None:
            self.hub.log.warning("a client certificate was refused", reason=fault)
            self.abort("client_certificate")
            return
        self._scope = head.connection_scope(transport)
        if self.hub.is_known is not None and not self.hub.is_known(transport):
            self._scope[head.STRANGER] = f"stranger {self.client}"

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002  # asyncio's signature
        """Returns the buffer for received bytes, which are parsed before anything else is read."""
        return self.hub.reads if self._refusal is None else self.hub.buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Parses received bytes."""
        self.receive(self.hub.buffer[:nbytes])

    def receive(self, data: bytes | memoryview) -> None:
        """Continues with received bytes."""
        if self._refusal is not None:
            # Read and dropped, so that the client comes to read its answer; not as fast as it sends.
            self._drops = True
            self._transport.pause_reading()
            self.hub.dropping.wait(self)
            return
        self._completed = False
        self._chunk_size = len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(501, "upgrade", "protocol upgrades are not supported")
        except httptools.HttpParserError as error:
            self._refuse(400, "malformed", f"malformed HTTP request: {error}")
        if self._reading != "start" and not self._completed:
            # The parser hands out whole fields only: an endless one shows here.
            self._raw_size += len(data)
            self._check_raw()
        if self._current is None:
            self._settle()
        elif self._completed:
            self.hub.answer_ahead(self._current)
        if self._body.waits:
            if self._body.size >= limits.PREFIX_BYTES:  # Enough to know whose it is.
                self._transport.pause_reading()
        elif (reserved := self._body.reserved) and not self.hub.large.is_read_at_once(reserved):
            # More of a large body is to come. With other large bodies, or beyond the usual size, it
            # is read in turns.
            self._transport.pause_reading()
            self.hub.large.turns.wait(self)

    def _settle(self) -> None:
        """Answers a refusal, or sets the deadline for the next part of the request."""
        if self._refusal is not None:
            self._answer_refusal()
        elif self._reading != self._armed:
            self._rearm()

    def eof_received(self) -> bool:
        """Handles the end of the client's data; keeps a plain connection open for its answer."""
        return self._current is not None

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's signature
        """Drops the connection; its requests need no answer."""
        self.deadline = NEVER
        self.hub.remove(self)
        self._body.release(self, self.share)
        for exchange in (self._current, *self._pending):
            if exchange is not None:
                exchange.disconnected()
                self._discharge(exchange)
        self._current = None
        self._pending.clear()
        # Both refer back to this object: with them it would stay until a full collection of garbage,
        # which is hours away, and TLS has a buffer of 256 KiB for each connection.
        self._parser = None
        self._transport = _CLOSED
        self.resume_writing()

    def pause_writing(self) -> None:
        """The client reads more slowly than we send."""
        self.writable = asyncio.Event()

    def resume_writing(self) -> None:
        """The client has caught up, or is gone."""
        if self.writable is not None:
            self.writable.set()
            self.writable = None

    # --- the parser's callbacks ------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Begins a request."""
        self._reading = "head"
        self._raw_size = 0
        self._url = b""
        self._headers = []

    def on_url(self, url: bytes) -> None:
        """Adds a part of the target."""
        self._url = self._url + url if self._url else url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Adds a header field; drops a trailer."""
        if self._reading == "head":
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Checks the complete head, so that a refused request's body is not read."""
        headers = self._headers
        fields = dict(headers)
        bounds = self.hub.limits
        # The head is no larger than the bytes that it came in.
        raw = self._raw_size + self._chunk_size
        if raw > bounds.header_bytes_max or len(headers) > limits.HEADERS_MAX:
            self._check_head(head.size_of(self._url, headers))
        body = self._body
        body.bound = min(limits.LARGE_BODY_BYTES, bounds.body_bytes_max)
        # The parser has accepted the number.
        length = int(fields.get(b"content-length", 0))
        # However long the body takes.
        self._received_at = self.opening.since(time.monotonic())
        if length > READ_BYTES:
            self._limit_arrival()
        if length > body.bound:
            self._expect_large(length)
        fault = head.fault_in(headers, fields, self._parser.get_http_version())
        if fault is not None:
            self._refuse(*fault)
        if self._parser.should_upgrade():
            self._refuse(501, "upgrade", "protocol upgrades are not supported")
        self._reading = "body"
        self._raw_size = 0
        asks = b"expect" in fields and fields[b"expect"].lower() == b"100-continue"
        if asks and self._refusal is None and self._current is None:
            self._transport.write(_CONTINUE)

    def on_chunk_header(self) -> None:
        """Counts a chunk."""
        if not self._body.add_chunk():
            self._refuse(400, "malformed", limits.SMALL_CHUNKS)
            raise ValueError("no more of this is parsed")  # the first reason stands

    def on_body(self, body: bytes) -> None:
        """Adds a part of the body."""
        if self._refusal is not None:
            return
        hub, whole = self.hub, self._body
        whole.add(body, self.share)
        if whole.size > whole.bound:
            self._exceed()
        if hub.is_overfull(self.share):
            self._refuse(429, "overload", "too many bytes wait for review: try again")

    def on_message_complete(self) -> None:
        """Queues the complete request."""
        self._reading = "start"
        self._completed = True
        if self._body.complete(self):
            # In chunks: it got large in the same bytes that it ended in.
            self._transport.resume_reading()
        if self._body.too_large:
            self._refuse_body()
        if self._refusal is not None:
            return
        if len(self._pending) >= limits.PIPELINED_MAX:
            self._refuse(400, "pipelined", "too many requests sent without awaiting an answer")
            return
        exchange = self._exchange()
        if exchange is None:
            return
        if self._current is None:
            self._begin(exchange)
        else:
            self._pending.append(exchange)
            self._transport.pause_reading()

    # --- requests --------------------------------------------------------------------------------

    def _exchange(self) -> Exchange | None:
        if self._target[0] != self._url and not self._read_target(self._url):
            self._refuse(400, "malformed", "malformed HTTP request: the target is not a path")
            return None
        parser = self._parser
        scope = head.request_scope(self._scope, parser, self._target, self._headers)
        scope["received_at"] = self._received_at
        # The bytes go over to the exchange, and with them their place in the hub's count.
        body, reserved = self._body.hand_over()
        stays = scope["http_version"] == "1.1" and parser.should_keep_alive()
        exchange = Exchange(self, scope, body, keep_alive=stays)
        exchange.reserved = reserved
        exchange.share = self.share
        return exchange

    def _read_target(self, url: bytes) -> bool:
        """Parses the target; consecutive requests usually have the same one."""
        if (target := head.target_of(url)) is not None:
            self._target = target
        return target is not None

    def _begin(self, exchange: Exchange) -> None:
        self._current = exchange
        self.deadline = NEVER
        self._armed = None
        exchange.queued = self.hub.submit(exchange, self.share)
        if not exchange.queued:
            responder = self._responder()
            exchange.answer(
                *answer_to(IN_FLIGHT, exchange.body, responder, self.hub, self._received_at)
            )

    def answered(self, exchange: Exchange) -> None:
        """Continues after a complete response: with the next request, or waiting for one."""
        self._discharge(exchange)
        self._current = None
        if self._transport.is_closing() or self._ending:
            return
        if not exchange.keep_alive:
            self._close("drain" if self.hub.draining else "")
        elif self._pending:
            following = self._pending.popleft()
            if not self._pending:
                self._transport.resume_reading()
            self._begin(following)
        elif self._refusal is not None:
            self._answer_refusal()
        else:
            self._rearm()

    def _rearm(self) -> None:
        """Sets the deadline for the part of the request that the connection waits for."""
        if self._current is not None or self._ending:
            return
        self._armed = self._reading
        seconds = self.hub.limits.seconds_for(self._reading, self._body.reserved)
        self.deadline = time.monotonic() + seconds

    @property
    def occupant(self) -> Occupant:
        """See :class:`~webhook.server.http.hub.Member`."""
        if self._body.content or self._current is None:
            return occupant_of(self._body.content)
        return self._current.occupant

    def _discharge(self, exchange: Exchange) -> None:
        """Releases a request's share of the hub's bounds."""
        if exchange.queued:
            exchange.queued = False
            self.hub.in_flight -= 1
            self.share.in_flight -= 1
        exchange.release_body(self.hub)

    # --- large bodies ----------------------------------------------------------------------------

    def _expect_large(self, length: int) -> None:
        """Prepares for a body of this length: it needs a place, or is too large."""
        bound, body = self.hub.limits.body_bytes_max, self._body
        if length > bound:
            # The beginning of the body contains the user.
            body.too_large = True
            body.bound = limits.PREFIX_BYTES
            if self._responder() is None:
                self._refuse_body()
            return
        body.bound = bound
        if self._current is not None:
            self._refuse(400, "pipelined", "a large body was sent without awaiting an answer")
        else:
            body.reserve(self, length)

    def _exceed(self) -> None:
        """Refuses the body, because it is larger than its place."""
        bound, body = self.hub.limits.body_bytes_max, self._body
        if body.too_large or body.size > bound:
            self._refuse_body()
        else:  # A chunked body, without a length.
            self._limit_arrival()
            self._expect_large(bound)

    def _limit_arrival(self) -> None:
        """Sets a timer for a body in several parts.

        If the body is incomplete when the answer is due, the request is refused on its received
        part.
        """
        responder = self._responder()
        if responder is not None and self._body.timer is None:
            seconds = responder.until(self._target[3], self._received_at) - time.monotonic()
            later = asyncio.get_running_loop().call_later
            self._body.timer = later(seconds, self._give_up, *limits.LATE_BODY)

    def _give_up(self, status: int, reason: str, message: str) -> None:
        """Stops waiting for the rest of a request, and refuses it."""
        self._refuse(status, reason, message)
        self._transport.resume_reading()
        if self._current is None:
            self._answer_refusal()

    def let_in(self, size: int) -> None:
        """Continues reading a large body, which now has a place."""
        self._body.waits = False
        self._body.reserved = size
        self.hub.large.turns.wait(self)
        self._rearm()

    def read_more(self) -> None:
        """Reads a little more: it is this connection's turn."""
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def _responder(self) -> Responder | None:
        """Returns the responder for this path that answers at once."""
        if self._target[0] != self._url:
            self._read_target(self._url)
        return self.hub.at_once.get(self._target[1])

    # --- refusals --------------------------------------------------------------------------------

    def _check_head(self, size: int) -> None:
        fault = head.size_fault(size, len(self._headers), self.hub.limits.header_bytes_max)
        if fault is not None:
            self._refuse(*fault)

    def _refuse_body(self) -> None:
        self._body.too_large = True
        limit = self.hub.limits.body_bytes_max
        self._refuse(413, "body_too_large", f"request entity is too large; limit is {limit} bytes")

    def _check_raw(self) -> None:
        """Limits the bytes that the parser keeps: fields, chunk extensions and trailers."""
        if self._reading == "head":
            self._check_head(self._raw_size)
        elif self._raw_size > self.hub.limits.raw_body_bytes_max(self._body.size):
            self._refuse(413, "body_too_large", limits.FRAMING)

    def _refuse(self, status: int, reason: str, message: str) -> None:
        """Records why the input cannot continue; the first reason counts."""
        if self._refusal is None:
            self._refusal = UnreadRefusal(status, reason, message)

    def _answer_refusal(self) -> None:
        """Answers a refusal, and reads a little longer so that the answer arrives."""
        assert self._refusal is not None
        answer = answer_to(
            self._refusal, self._body.content, self._responder(), self.hub, self._received_at
        )
        self._body.release(self, self.share)
        self._ending = "linger"
        self.deadline = NEVER
        until = time.monotonic() + limits.DROP_SECONDS
        asyncio.get_running_loop().call_later(limits.LINGER_SECONDS, self._leave, until)
        Exchange(self, {"method": "POST"}, b"", keep_alive=False).answer(*answer)

    def _leave(self, until: float) -> None:
        """Closes when the client sends no more, so that the answer arrives, or at this moment."""
        if not self._drops:
            self._close("")
        elif time.monotonic() < until:
            self._drops = False
            asyncio.get_running_loop().call_later(limits.LINGER_SECONDS, self._leave, until)
        else:
            self.abort("")

    # --- ends ------------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Sends bytes."""
        self._transport.write(data)

    def expire(self) -> None:
        """Ends the present state, which has lasted too long."""
        if self._ending == "closing":
            self.abort("")
        elif self._reading == "start":
            self._close("shutdown" if self.hub.draining else "idle")
        elif self._body.waits:
            self._give_up(429, "overload", "large requests are being reviewed: try again")
        else:
            part = "headers" if self._reading == "head" else "body"
            self._give_up(408, "slow_client", f"the request's {part} took too long to arrive")

    def shutdown(self) -> None:
        """Answers running requests and those that arrive in a moment, then closes."""
        if self._current is None and not self._ending and self._reading == "start":
            self.deadline = time.monotonic() + limits.LAST_CHANCE_SECONDS

    def _close(self, reason: str) -> None:
        """Sends the remaining output and closes; the sweep aborts a close that takes too long."""
        if reason:
            self.hub.closed(reason)
        self._ending = "closing"
        # A client that does not close must not delay the end of the process.
        leave = limits.LAST_CHANCE_SECONDS if self.hub.draining else limits.CLOSE_SECONDS
        self.deadline = time.monotonic() + leave
        self._transport.close()

    def abort(self, reason: str) -> None:
        """Closes at once and drops the remaining output."""
        if reason:
            self.hub.closed(reason)
        self._ending = "closing"
        self._transport.abort()
