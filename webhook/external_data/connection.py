"""A connection to a provider: one POST after another, each answered whole.

A general client takes several times as long for a request as TLS and the system do, on the one
interpreter that admissions need, too. What a provider is asked is always the same: a body of known
length, on a connection that is kept; so the bytes are written and read here.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import httptools

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

ANSWER_BYTES_MAX: Final = 8 << 20
"""Of an answer, as of http.send: a thousand keys have 8 KiB each."""

READ_AT_ONCE_BYTES: Final = 64 * 1024
"""Read at once: four records of TLS."""

_LENGTHS: Final = frozenset({b"content-length", b"transfer-encoding"})


class MalformedAnswer(Exception):
    """What came is no answer of HTTP."""


class AnswerTooLong(Exception):
    """An answer is larger than any may be."""


class WholeAnswer(NamedTuple):
    """A whole answer; ``location`` says that it names another place."""

    status: int
    body: bytes
    location: bool


def read_buffer() -> memoryview:
    """Where a loop's connections read to, one after another: what arrived is parsed at once.

    A protocol without one has 256 KiB taken from the system, and given back, for each answer.
    """
    return memoryview(bytearray(READ_AT_ONCE_BYTES))


class ProviderConnection(asyncio.BufferedProtocol):
    """One connection; :meth:`post` once at a time."""

    def __init__(self, buffer: memoryview) -> None:
        """``buffer`` is shared by all connections of a loop."""
        self._buffer = buffer
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[WholeAnswer] | None = None
        self._begun: Callable[[], None] | None = None
        self._parser: Any = None
        self._parts: list[bytes] = []
        self._size = 0
        self._status = 0
        self._location = self._has_length = self._in_body = False
        self.is_open = False
        self.idle_since = 0.0

    @classmethod
    async def open(
        cls, host: str, port: int, context: ssl.SSLContext, buffer: memoryview
    ) -> ProviderConnection:
        """Connect; raises OSError, and ssl.SSLError among it."""
        loop = asyncio.get_running_loop()
        _, protocol = await loop.create_connection(
            lambda: cls(buffer), host, port, ssl=context, server_hostname=host
        )
        return protocol

    def post(self, request: bytes, begun: Callable[[], None]) -> asyncio.Future[WholeAnswer]:
        """Send a request and have its answer; ``begun`` is called when that begins.

        The future's error is an OSError, EOFError, :class:`MalformedAnswer` or :class:`AnswerTooLong`.
        """
        assert self._transport is not None
        self._waiter = asyncio.get_running_loop().create_future()
        self._begun = begun
        self._parser = httptools.HttpResponseParser(self)
        self._reset()
        self._transport.write(request)
        return self._waiter

    def close(self) -> None:
        """Leave at once: nothing is said on the way out."""
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    def _reset(self) -> None:
        self._parts = []
        self._size = self._status = 0
        self._location = self._has_length = self._in_body = False

    # --- what the transport tells --------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is open."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's own class
        self.is_open = True

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002  # asyncio's signature
        """Where bytes are read to."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Some of an answer."""
        if self._waiter is None or self._waiter.done():
            self.close()  # Nobody asked.
            return
        if self._begun is not None:
            self._begun()
            self._begun = None
        try:
            self._parser.feed_data(self._buffer[:nbytes])
        except httptools.HttpParserError as error:
            self._end(MalformedAnswer(str(error)))

    def connection_lost(self, error: Exception | None) -> None:
        """It is over: so is an answer that says no length."""
        self.is_open = False
        if self._in_body and not self._has_length and error is None:
            self._tell()
        else:
            self._end(error or EOFError())
        # Both refer back to this object: with them it would stay until a full collection of garbage.
        self._transport = self._parser = None

    # --- what the parser tells -----------------------------------------------------------------

    def on_header(self, name: bytes, _value: bytes) -> None:
        """A header: a few of them matter."""
        lowered = name.lower()
        self._has_length = self._has_length or lowered in _LENGTHS
        self._location = self._location or lowered == b"location"

    def on_headers_complete(self) -> None:
        """The head is over."""
        self._status = self._parser.get_status_code()
        self._in_body = True

    def on_body(self, part: bytes) -> None:
        """A part of the body."""
        self._size += len(part)
        if self._size > ANSWER_BYTES_MAX:
            self._end(AnswerTooLong())
        else:
            self._parts.append(part)

    def on_message_complete(self) -> None:
        """The answer is whole; one that only says to wait is none."""
        if self._status < 200:
            self._reset()
            return
        if not self._parser.should_keep_alive():
            self.close()
        self._tell()

    def _tell(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self.idle_since = time.monotonic()
            self._waiter.set_result(
                WholeAnswer(self._status, b"".join(self._parts), self._location)
            )
        self._parts = []

    def _end(self, error: Exception) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)
        self._parts = []
        self.close()
