"""The HTTPS client of one provider: TLS 1.3, and only the Provider's own authorities.

The serving pair is the client certificate if the provider requests one. Requests and answers have
Gatekeeper's shapes. Connections are kept alive. Environment variables such as proxies are ignored,
and redirects are not followed: only the Provider's URL is called.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import socket
import ssl
import threading
import time
from collections import deque
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from webhook import __version__
from webhook.api.encoding import encode
from webhook.external_data.connection import (
    AnswerTooLong,
    MalformedAnswer,
    ProviderConnection,
    read_buffer,
)
from webhook.external_data.response import (
    IN_ONE_GO_BYTES,
    READ,
    SENT,
    UNMARSHALLED,
    ProviderFault,
    UnreadableAnswer,
    read_answer,
)
from webhook.golang import url as go_url

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.external_data.connection import Addresses, WholeAnswer
    from webhook.external_data.provider import ClientPair, DataProvider
    from webhook.external_data.response import ProviderAnswer
    from webhook.golang.url import Url

IDLE_SECONDS: Final = 90.0
"""The time that an idle connection is kept, in seconds; the same as in Gatekeeper."""

CONNECTIONS_PER_PROVIDER: Final = 64
"""The number of connections to one provider; further requests wait within their own timeouts. All
of them are kept for later requests, while Gatekeeper keeps ten. A few simultaneous admissions need
as many, and a handshake takes as long as twenty requests.
"""

TIMER_SECONDS: Final = 0.002
"""How early a timer of the loop may be: it counts milliseconds."""

OnAnswer: TypeAlias = "Callable[[ProviderAnswer | Exception, int], None]"
"""Receives an answer and its status, or the fault: a :class:`ProviderFault`, or a bug."""


class ProviderCall:
    """One request, until it is answered, fails, or times out."""

    __slots__ = (
        "_client",
        "_is_over",
        "_notify",
        "connection",
        "data",
        "is_read",
        "task",
        "until",
    )

    def __init__(self, client: ProviderClient, data: bytes, notify: OnAnswer) -> None:
        self.data = data
        self.is_read = False
        """Whether a whole answer is being read on another thread."""
        self.connection: ProviderConnection | None = None
        self.task: asyncio.Task[ProviderConnection] | None = None
        """The task that opens a connection for the call."""
        self._client = client
        self._notify = notify
        self._is_over = False
        self.until = client.loop.time() + client.provider.timeout_seconds
        """When it times out, on the loop's clock."""

    @property
    def is_over(self) -> bool:
        """Whether the call has ended."""
        return self._is_over

    @property
    def is_answered(self) -> bool:
        """Whether the answer has begun: later faults are faults of reading."""
        return self.is_read or (self.connection is not None and self.connection.is_answered)

    def end(self, answer: ProviderAnswer | Exception, status: int = 0) -> None:
        """Reports the outcome, once."""
        if not self._is_over:
            notify = self._notify
            self._finish()
            notify(answer, status)

    def cancel(self) -> None:
        """Ends the call without a report."""
        if not self._is_over:
            self._finish()
            self._client.drop(self)

    def _finish(self) -> None:
        self._is_over = True
        self._client.forget(self)
        self._notify = _nobody  # Its target refers back to this object.


class ProviderClient:
    """The client of one unchanged Provider. For one event loop."""

    def __init__(self, provider: DataProvider, pair: ClientPair | None) -> None:
        """``pair`` is the client certificate for providers that request one."""
        self.provider = provider
        self.loop = asyncio.get_running_loop()  # To ask for it costs a system call each time.
        self._pair = pair
        self._shown: object = None
        self._contexts = [
            _context(authorities) for authorities in (provider.authorities, *provider.namesakes)
        ]
        """Tried one after another; the one that has succeeded is the first."""
        self._url = go_url.parse(provider.url)
        self._head = _head(self._url)
        self._shown_url = _without_password(self._url)
        self._used = 0
        """Connections that are in use, or being opened."""
        self._waiting: deque[ProviderCall] = deque()
        """Calls without a connection."""
        self._idle: list[ProviderConnection] = []
        self._running: dict[ProviderCall, None] = {}
        """The calls that are not over, in the order in which they time out."""
        self._timer: asyncio.TimerHandle | None = None
        """The timer of the first of them, or of one before it: one for each call takes longer."""
        self._lookup: asyncio.Future[Addresses] | None = None
        """The look-up of the host that is under way."""
        self._is_retired = False
        self._buffer = read_buffer()

    def ask(self, keys: Sequence[str], notify: OnAnswer) -> ProviderCall:
        """Sends keys at once, over an open connection if one is free.

        ``notify`` receives the answer and its HTTP status, or the fault.
        """
        call = ProviderCall(self, _request(self._head, keys), notify)
        self._running[call] = None
        if self._timer is None:
            self._time_out_after(self.provider.timeout_seconds)
        if self._used < CONNECTIONS_PER_PROVIDER:
            self._begin(call)
        else:
            self._waiting.append(call)
        return call

    def retire(self) -> None:
        """Closes idle connections; connections in use are closed after their answers."""
        self._is_retired = True
        while self._idle:
            self._idle.pop().close()
        if not self._running:
            self._stop_timer()

    def prune(self) -> None:
        """Closes long unused connections."""
        now = time.monotonic()
        old = [
            connection for connection in self._idle if now - connection.idle_since >= IDLE_SECONDS
        ]
        self._idle = [
            connection for connection in self._idle if connection not in old and connection.is_open
        ]
        for connection in old:
            connection.close()

    def forget(self, call: ProviderCall) -> None:
        """Notes that a call is over."""
        self._running.pop(call, None)
        if self._is_retired and not self._running:
            self._stop_timer()

    def _time_out_after(self, seconds: float) -> None:
        self._timer = self.loop.call_later(seconds, self._time_out)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _time_out(self) -> None:
        """Ends the calls whose time is over, and waits for the next."""
        loop = self.loop
        for call in tuple(self._running):
            if call.until > loop.time() + TIMER_SECONDS:
                break
            self._overdue(call)
        self._stop_timer()
        if self._running:
            self._time_out_after(next(iter(self._running)).until - loop.time())

    def _overdue(self, call: ProviderCall) -> None:
        """Ends a call whose time is over."""
        why = f"context deadline exceeded: no answer within {self.provider.timeout_seconds:g} s"
        fault = self._unsent("timeout", why)
        if call.is_answered:
            fault = ProviderFault("timeout", f"{READ}: {why}")
        call.end(fault)
        self.drop(call)

    def drop(self, call: ProviderCall) -> None:
        """Closes the connection of a cancelled call: its answer would reach the next call."""
        if call.connection is not None:
            call.connection.close()
            self._release(call)
        elif call.task is not None:
            call.task.cancel()
        elif call in self._waiting:
            self._waiting.remove(call)

    def _begin(self, call: ProviderCall) -> None:
        """Sends a request on an open connection, or opens one."""
        self._used += 1
        kept = self._kept()
        if kept is not None:
            self._send(call, kept, is_kept=True)
        else:
            self._open_for(call)

    def _open_for(self, call: ProviderCall) -> None:
        call.task = self.loop.create_task(self._open())
        call.task.add_done_callback(partial(self._opened, call))

    async def _open(self) -> ProviderConnection:
        self._show_pair()
        addresses = await self._addresses()
        host = self._url.hostname.removesuffix(".")  # Certificates name hosts without it.
        for context in tuple(self._contexts):
            try:
                connection = await ProviderConnection.open(host, addresses, context, self._buffer)
            except ssl.SSLCertVerificationError as error:
                fault = error
            else:
                self._contexts.sort(key=lambda known: known is not context)
                return connection
        raise fault

    async def _addresses(self) -> Addresses:
        """Looks the host up; raises OSError. All calls share a look-up, also of one that is over."""
        host, port = self._url.hostname, int(self._url.port or 443)
        try:
            return socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
            )
        except socket.gaierror:  # It is a name.
            if self._lookup is None:
                self._lookup = _look_up(host, port)
                self._lookup.add_done_callback(self._looked_up)
        return await asyncio.shield(self._lookup)

    def _looked_up(self, lookup: asyncio.Future[Addresses]) -> None:
        self._lookup = None
        if not lookup.cancelled():
            lookup.exception()  # Perhaps no call waits for it any more.

    def _opened(self, call: ProviderCall, task: asyncio.Task[ProviderConnection]) -> None:
        """Takes a new connection for a call, or the fault of opening it."""
        call.task = None
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is None and not call.is_over:
            self._send(call, task.result())
            return
        self._freed()
        if error is None:
            task.result().close()
        elif isinstance(error, OSError | ValueError):
            why = self._not_connected(error)
            call.end(self._unsent("transport", why, connected=False))
        elif isinstance(error, Exception):
            call.end(error)

    def _send(
        self, call: ProviderCall, connection: ProviderConnection, *, is_kept: bool = False
    ) -> None:
        call.connection = connection
        connection.post(call.data, partial(self._answered, call, is_kept))

    def _answered(self, call: ProviderCall, is_kept: bool, answer: WholeAnswer | Exception) -> None:
        """Handles the answer or the fault of a connection."""
        if isinstance(answer, Exception):
            if is_kept and not call.is_answered and isinstance(answer, EOFError | ConnectionError):
                # The peer may have closed it before the request; Go retries, too.
                call.connection = None
                self._open_for(call)
                return
            fault = self._failed(answer, is_answered=call.is_answered)
            self._release(call)
            call.end(fault)
            return
        connection = call.connection
        self._release(call)
        if connection is not None and connection.is_open:
            if self._is_retired:
                connection.close()
            else:
                self._idle.append(connection)
        if 300 <= answer.status < 400 and answer.location:
            call.end(self._unsent("redirect", "it redirects, which is not followed"))
        elif len(answer.body) <= IN_ONE_GO_BYTES:
            call.end(_read(answer.body), answer.status)
        else:
            self._read_beside(call, answer)

    def _read_beside(self, call: ProviderCall, answer: WholeAnswer) -> None:
        """Reads a large answer on another thread, so that others are answered meanwhile."""
        call.is_read = True
        reading = self.loop.run_in_executor(None, _read, answer.body)

        def read(done: asyncio.Future[ProviderAnswer | Exception]) -> None:
            if not done.cancelled():
                call.end(done.result(), answer.status)

        reading.add_done_callback(read)

    def _release(self, call: ProviderCall) -> None:
        """Takes the connection from a call that has ended."""
        call.connection = None
        self._freed()

    def _freed(self) -> None:
        """Gives the free connection slot to the next call, in the next turn of the loop."""
        self._used -= 1
        if self._waiting:
            self.loop.call_soon(self._next)

    def _next(self) -> None:
        if self._waiting and self._used < CONNECTIONS_PER_PROVIDER:
            self._begin(self._waiting.popleft())

    def _kept(self) -> ProviderConnection | None:
        """Returns the most recently used open connection, or None."""
        now = time.monotonic()
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and now - connection.idle_since < IDLE_SECONDS:
                return connection
            connection.close()
        return None

    def _show_pair(self) -> None:
        """Uses the present certificate pair from the next handshake on."""
        pair = self._pair
        if pair is None or pair.version is self._shown:
            return
        try:
            for context in self._contexts:
                pair.lend(context)
        except ValueError as error:
            raise self._unsent("certificate", f"tls: {error}", connected=False) from None
        self._shown = pair.version

    # --- faults, in the wording of Go's net packages if common
    # -------------------------------------

    def _unsent(self, outcome: str, why: str, *, connected: bool = True) -> ProviderFault:
        message = f'{SENT}: Post "{self._shown_url}": {why}'
        return ProviderFault(outcome, message, connected=connected)

    def _not_connected(self, error: Exception) -> str:
        if isinstance(error, ssl.SSLCertVerificationError):
            return f"tls: failed to verify certificate: x509: {error.verify_message}"
        if isinstance(error, ssl.SSLError):
            return f"tls: {_reason(error)}"
        if isinstance(error, socket.gaierror):
            return f"dial tcp: lookup {self._url.hostname}: no such host"
        if isinstance(error, ConnectionResetError | ConnectionAbortedError):
            return "EOF"  # during the TLS handshake
        where = f"{self._url.hostname}:{self._url.port or 443}"
        return f"dial tcp {where}: connect: {_reason(error)}"

    def _failed(self, error: Exception, *, is_answered: bool) -> ProviderFault:
        """Turns an error on an open connection into a ProviderFault."""
        if isinstance(error, AnswerTooLong):
            return ProviderFault("too_large", f"{READ}: {error}")
        if isinstance(error, MalformedAnswer):
            why = "net/http: HTTP/1.x transport connection broken: malformed HTTP response"
            return self._unsent("transport", why)
        is_cut = isinstance(error, EOFError | ConnectionError)
        if is_answered:
            why = "unexpected EOF" if is_cut else _reason(error)
            return ProviderFault("transport", f"{READ}: {why}")
        if isinstance(error, ssl.SSLError):
            return self._unsent(
                "transport", f"remote error: tls: {_reason(error)}", connected=False
            )
        return self._unsent("transport", "EOF" if is_cut else _reason(error))


def _nobody(answer: ProviderAnswer | Exception, status: int) -> None:
    """Drops an answer without a waiting caller."""


def _look_up(host: str, port: int) -> asyncio.Future[Addresses]:
    """Looks a name up on a thread of its own, which ends with the process.

    A resolver may take a minute. Of the loop's threads it would occupy one for that time, and other
    providers' names would wait; a loop that ends would wait for it, too.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Addresses] = loop.create_future()

    def end(outcome: Addresses | Exception) -> None:
        if future.done():
            return
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)

    def look_up() -> None:
        outcome: Addresses | Exception
        try:
            outcome = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, ValueError) as error:
            outcome = error
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(end, outcome)

    threading.Thread(target=look_up, name="look-up", daemon=True).start()
    return future


def _request(head: bytes, keys: Sequence[str]) -> bytes:
    body = encode(
        {
            "apiVersion": "externaldata.gatekeeper.sh/v1beta1",
            "kind": "ProviderRequest",
            "request": {"keys": list(keys)},
        }
    )
    return b"%sContent-Length: %d\r\n\r\n%s" % (head, len(body), body)


def _read(body: bytes) -> ProviderAnswer | Exception:
    try:
        return read_answer(body)
    except UnreadableAnswer as error:
        return ProviderFault("unreadable", f"{UNMARSHALLED}: {error}")
    except Exception as error:  # noqa: BLE001  # the caller gets it as a bug
        return error


def _context(authorities: Sequence[bytes]) -> ssl.SSLContext:
    """Returns TLS as in Gatekeeper: trusts exactly these certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.hostname_checks_common_name = False
    context.set_alpn_protocols(["http/1.1"])
    context.load_verify_locations(cadata=b"".join(authorities))
    return context


def _head(url: Url) -> bytes:
    """Returns the bytes of each request before the length."""
    target = (url.escaped_path or "/") + (f"?{url.raw_query}" if url.raw_query else "")
    lines = [
        f"POST {target} HTTP/1.1",
        f"Host: {_host(url)}",
        f"User-Agent: waddle/{__version__}",
        "Content-Type: application/json",
        # Small compressed data may decompress to any size.
        "Accept-Encoding: identity",
    ]
    if url.user is not None:
        credentials = f"{url.user[0]}:{url.user[1] or ''}".encode()
        lines.append(f"Authorization: Basic {base64.b64encode(credentials).decode()}")
    return "".join(f"{line}\r\n" for line in lines).encode()


def _host(url: Url) -> str:
    if url.host.isascii():
        return url.host
    name = url.hostname.encode("idna").decode()
    return f"{name}:{url.port}" if url.port else name


def _reason(error: BaseException) -> str:
    """Returns one line about a fault, without memory addresses and OpenSSL's file names."""
    if isinstance(error, ssl.SSLError) and error.reason:
        return str(error.reason).lower().replace("_", " ")
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        # The event loop's message lists each address that it tried.
        return os.strerror(error.errno).lower()
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__


def _without_password(url: Url) -> str:
    """Returns a URL in the form of Go's errors, with a masked password."""
    if url.user is None or url.user[1] is None:
        return str(url)
    rest = str(replace(url, user=None)).removeprefix(f"{url.scheme}://")
    return f"{url.scheme}://{url.user[0]}:***@{rest}"
