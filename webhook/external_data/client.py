"""One provider asked over HTTPS: TLS 1.3, its own authorities alone, our serving pair where it asks.

Requests and answers have Gatekeeper's shapes. Connections are kept alive. Nothing of the environment
counts, no proxy either, and a redirection is not followed: what a Provider names is what is asked.
"""

from __future__ import annotations

import asyncio
import base64
import os
import socket
import ssl
import time
from typing import TYPE_CHECKING, Final

from webhook import __version__
from webhook.api.encoding import encode
from webhook.external_data.connection import (
    ANSWER_BYTES_MAX,
    AnswerTooLong,
    MalformedAnswer,
    ProviderConnection,
    read_buffer,
)
from webhook.external_data.response import (
    READ,
    SENT,
    UNMARSHALLED,
    ProviderFault,
    UnreadableAnswer,
    read_answer,
)
from webhook.golang import url as go_url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.external_data.connection import WholeAnswer
    from webhook.external_data.provider import ClientPair, DataProvider
    from webhook.external_data.response import ProviderAnswer
    from webhook.golang.url import Url

IDLE_SECONDS: Final = 90.0
"""How long a connection is kept, as Gatekeeper keeps it."""

CONNECTIONS_PER_PROVIDER: Final = 64
"""To one provider; requests beyond wait for one within their own time.

All of them are kept for the next requests, where Gatekeeper keeps ten: a few admissions at once ask
as much beside each other, and a handshake takes as long as twenty requests.
"""


class _Call:
    """One request, and how far it came."""

    __slots__ = ("data", "is_answered")

    def __init__(self, head: bytes, keys: Sequence[str]) -> None:
        body = encode(
            {
                "apiVersion": "externaldata.gatekeeper.sh/v1beta1",
                "kind": "ProviderRequest",
                "request": {"keys": list(keys)},
            }
        )
        self.data = b"%sContent-Length: %d\r\n\r\n%s" % (head, len(body), body)
        self.is_answered = False
        """Whether the answer has begun: what fails from then on fails to be read."""

    def begin(self) -> None:
        """The answer begins."""
        self.is_answered = True


class ProviderClient:
    """Asks one provider, as long as it stays as it is. For one event loop."""

    def __init__(self, provider: DataProvider, pair: ClientPair | None) -> None:
        """``pair`` is shown where the provider asks for a certificate."""
        self.provider = provider
        self._pair = pair
        self._shown: object = None
        self._context = _context(provider)
        self._url = go_url.parse(provider.url)
        self._head = _head(self._url)
        self._shown_url = _without_password(provider.url)
        self._places = asyncio.Semaphore(CONNECTIONS_PER_PROVIDER)
        self._idle: list[ProviderConnection] = []
        self._is_retired = False
        self._buffer = read_buffer()

    async def ask(self, keys: Sequence[str]) -> tuple[ProviderAnswer, int]:
        """The answer to a request for keys, and its HTTP status; raises :class:`ProviderFault`."""
        call = _Call(self._head, keys)
        try:
            async with asyncio.timeout(self.provider.timeout_seconds), self._places:
                answer = await self._answer(call)
        except TimeoutError:
            seconds = self.provider.timeout_seconds
            why = f"context deadline exceeded: no answer within {seconds:g} s"
            if call.is_answered:
                raise ProviderFault("timeout", f"{READ}: {why}") from None
            raise self._unsent("timeout", why) from None
        if 300 <= answer.status < 400 and answer.location:
            raise self._unsent("redirect", "it redirects, which is not followed")
        try:
            return read_answer(answer.body), answer.status
        except UnreadableAnswer as error:
            raise ProviderFault("unreadable", f"{UNMARSHALLED}: {error}") from None

    def retire(self) -> None:
        """Keep no connection any more: those in use end with their answers."""
        self._is_retired = True
        while self._idle:
            self._idle.pop().close()

    def prune(self) -> None:
        """Close connections that nobody has used for long."""
        now = time.monotonic()
        old = [one for one in self._idle if now - one.idle_since >= IDLE_SECONDS]
        self._idle = [one for one in self._idle if one not in old and one.is_open]
        for one in old:
            one.close()

    async def _answer(self, call: _Call) -> WholeAnswer:
        kept = self._kept()
        if kept is not None:
            try:
                return await self._once(kept, call)
            except (EOFError, ConnectionError):
                # It may have been closed before it was asked: Go asks anew, too.
                if call.is_answered:
                    raise ProviderFault("transport", f"{READ}: unexpected EOF") from None
            except (OSError, MalformedAnswer, AnswerTooLong) as error:
                raise self._failed(error, call) from None
        try:
            connection = await self._connected()
        except (OSError, ValueError) as error:
            raise self._unsent("transport", self._not_connected(error), connected=False) from None
        try:
            return await self._once(connection, call)
        except (EOFError, OSError, MalformedAnswer, AnswerTooLong) as error:
            raise self._failed(error, call) from None

    async def _once(self, connection: ProviderConnection, call: _Call) -> WholeAnswer:
        is_whole = False
        try:
            answer = await connection.post(call.data, call.begin)
            is_whole = True
        finally:
            if is_whole and connection.is_open and not self._is_retired:
                self._idle.append(connection)
            else:
                connection.close()
        return answer

    def _kept(self) -> ProviderConnection | None:
        """A connection that was used before, the latest first."""
        now = time.monotonic()
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and now - connection.idle_since < IDLE_SECONDS:
                return connection
            connection.close()
        return None

    async def _connected(self) -> ProviderConnection:
        self._show_pair()
        return await ProviderConnection.open(
            self._url.hostname, int(self._url.port or 443), self._context, self._buffer
        )

    def _show_pair(self) -> None:
        """Show the pair that is served now from the next handshake on."""
        pair = self._pair
        if pair is None or pair.version is self._shown:
            return
        try:
            pair.lend(self._context)
        except ValueError as error:
            raise self._unsent("certificate", f"tls: {error}", connected=False) from None
        self._shown = pair.version

    # --- faults, in the words of Go's net packages where they are common ones ----------------------

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
            return "EOF"  # while TLS was agreed upon
        where = f"{self._url.hostname}:{self._url.port or 443}"
        return f"dial tcp {where}: connect: {_reason(error)}"

    def _failed(self, error: Exception, call: _Call) -> ProviderFault:
        """Turns an error on an open connection into a ProviderFault."""
        if isinstance(error, AnswerTooLong):
            return ProviderFault("too_large", f"{READ}: it is over {ANSWER_BYTES_MAX} bytes")
        if isinstance(error, MalformedAnswer):
            why = "net/http: HTTP/1.x transport connection broken: malformed HTTP response"
            return self._unsent("transport", why)
        is_cut = isinstance(error, EOFError | ConnectionError)
        if call.is_answered:
            why = "unexpected EOF" if is_cut else _reason(error)
            return ProviderFault("transport", f"{READ}: {why}")
        if isinstance(error, ssl.SSLError):
            return self._unsent(
                "transport", f"remote error: tls: {_reason(error)}", connected=False
            )
        return self._unsent("transport", "EOF" if is_cut else _reason(error))


def _context(provider: DataProvider) -> ssl.SSLContext:
    """TLS as Gatekeeper has it: each certificate of the bundle is trusted, and no other is."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.hostname_checks_common_name = False
    context.set_alpn_protocols(["http/1.1"])
    context.load_verify_locations(cadata=b"".join(dict.fromkeys(provider.authorities)))
    return context


def _head(url: Url) -> bytes:
    """Returns the bytes of each request that stand before the length."""
    target = (url.escaped_path or "/") + (f"?{url.raw_query}" if url.raw_query else "")
    lines = [
        f"POST {target} HTTP/1.1",
        f"Host: {url.host.encode('idna').decode() if not url.host.isascii() else url.host}",
        f"User-Agent: waddle/{__version__}",
        "Content-Type: application/json",
        # What is small compressed may be anything decompressed.
        "Accept-Encoding: identity",
    ]
    if url.user is not None:
        credentials = f"{url.user[0]}:{url.user[1] or ''}".encode()
        lines.append(f"Authorization: Basic {base64.b64encode(credentials).decode()}")
    return "".join(f"{line}\r\n" for line in lines).encode()


def _reason(error: BaseException) -> str:
    """One line about a fault, without addresses of memory and file names of OpenSSL."""
    if isinstance(error, ssl.SSLError) and error.reason:
        return str(error.reason).lower().replace("_", " ")
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        # The event loop's own words list each address that it tried.
        return os.strerror(error.errno).lower()
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__


def _without_password(address: str) -> str:
    """A URL as Go's errors show it."""
    parsed = go_url.parse(address)
    if parsed.user is None or parsed.user[1] is None:
        return address
    _, _, rest = address.partition("@")
    return f"{parsed.scheme}://{parsed.user[0]}:***@{rest}"
