"""A connection to a provider: one POST after another, each answer read as a whole.

A general HTTP client takes several times as long for a request as TLS and the system do. It would
take that time from the interpreter that admissions need, too. Requests to providers are always
alike: a body of known length on a kept connection. So this module reads and writes the bytes
itself, at once: a transport would write them at the end of its turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import httptools

ANSWER_BYTES_MAX: Final = 8 << 20
"""The size of an answer at most, as for http.send: a thousand keys have 8 KiB each."""

FRAMING_BYTES_MAX: Final = 1 << 20
"""The size of heads, trailers and chunk sizes of an answer at most: an endless head would occupy
the loop until the provider's timeout."""

READ_AT_ONCE_BYTES: Final = 64 * 1024
"""The size of one read: four TLS records."""

RECORD_BYTES: Final = 16 * 1024
"""The size of a TLS record at most."""

_LENGTHS: Final = frozenset({b"content-length", b"transfer-encoding"})

_HEAD_END: Final = b"\r\n\r\n"


class MalformedAnswer(Exception):
    """Bytes that are no HTTP response."""


class AnswerTooLong(Exception):
    """An answer above a bound; the message says which."""


class WholeAnswer(NamedTuple):
    """A whole answer; ``location`` is whether it has a Location header."""

    status: int
    body: bytes
    location: bool


class _KnownHead(NamedTuple):
    """The head of an earlier answer, as the parser read it, and the size of that answer."""

    head: bytes
    size: int
    status: int
    location: bool


_NO_HEAD: Final = _KnownHead(b"", 0, 0, False)

Addresses: TypeAlias = "Sequence[tuple[int, int, int, str, Any]]"
"""The addresses of a host, as :func:`socket.getaddrinfo` returns them."""

Answered: TypeAlias = "Callable[[WholeAnswer | Exception], None]"
"""Receives the answer to a request or the reason for none: an OSError, EOFError,
:class:`MalformedAnswer` or :class:`AnswerTooLong`."""


def read_buffer() -> memoryview:
    """Returns the read buffer that all connections of a loop share: data is decrypted at once."""
    return memoryview(bytearray(READ_AT_ONCE_BYTES))


class ProviderConnection:
    """One connection, for one event loop; one :meth:`post` at a time."""

    def __init__(self, plain: socket.socket, tls: TlsEnds, buffer: memoryview) -> None:
        """``buffer`` is shared by all connections of a loop."""
        self._loop = asyncio.get_running_loop()
        self._socket = plain
        self._tls, self._incoming, self._outgoing = tls
        self._buffer = buffer
        self._unsent = b""
        self._answered: Answered | None = None
        self.is_answered = False
        """Whether the answer to the last request has begun."""
        self._parser: Any = httptools.HttpResponseParser(self)
        self._parts: list[bytes] = []
        self._size = 0
        self._framing = 0
        """The received bytes beside the body, also of informational answers."""
        self._status = 0
        self._location = self._has_length = self._in_body = False
        self._whole: WholeAnswer | None = None
        self._known_head = _NO_HEAD
        self.is_open = True
        self.idle_since = 0.0
        self._loop.add_reader(plain, self._readable)

    @classmethod
    async def open(
        cls, host: str, addresses: Addresses, context: ssl.SSLContext, buffer: memoryview
    ) -> ProviderConnection:
        """Connects to a host by its addresses; raises OSError, including ssl.SSLError."""
        plain = await _connected(addresses)
        try:
            tls = await _agreed(plain, host, context, buffer)
            return cls(plain, tls, buffer)
        except BaseException:
            plain.close()
            raise

    def post(self, request: bytes, answered: Answered) -> None:
        """Sends a request; calls ``answered`` when its answer ends."""
        self._answered, self.is_answered = answered, False
        self._framing = 0
        self._reset()
        try:
            self._tls.write(request)
            self._flush()
        except OSError as error:
            self._end(error)

    def close(self) -> None:
        """Closes the socket at once, without a TLS closing message."""
        if not self.is_open:
            return
        self.is_open = False
        self._loop.remove_reader(self._socket)
        if self._unsent:
            self._loop.remove_writer(self._socket)
            self._unsent = b""
        self._socket.close()
        # The parser refers back to this object and would keep it until a full garbage collection.
        self._parser = None

    def _reset(self) -> None:
        self._parts = []
        self._size = self._status = 0
        self._location = self._has_length = self._in_body = False
        self._whole = None

    # --- the socket ----------------------------------------------------------------------------

    def _flush(self) -> None:
        """Sends encrypted data as far as the system takes it; raises OSError."""
        data = self._outgoing.read()
        if self._unsent:
            self._unsent += data
        elif (sent := _sent(self._socket, data)) < len(data):
            self._unsent = data[sent:]
            self._loop.add_writer(self._socket, self._writable)

    def _writable(self) -> None:
        try:
            self._unsent = self._unsent[_sent(self._socket, self._unsent) :]
        except OSError as error:
            self._end(error)
            return
        if not self._unsent:
            self._loop.remove_writer(self._socket)

    def _readable(self) -> None:
        """Reads what has arrived, and then passes a whole answer on: its receiver may post again."""
        has_more = self.is_open and self._read()
        if self._whole is not None:
            self._notify(self._whole)
        elif has_more and self.is_open and self._answered is not None:
            # uvloop calls only once if the peer has reset the connection behind this data.
            self._loop.call_soon(self._readable)

    def _read(self) -> bool:
        """Reads arrived bytes, or the end of the stream; returns whether there may be more."""
        try:
            count = self._socket.recv_into(self._buffer)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            self._end(error)
            return False
        if count:
            self._incoming.write(self._buffer[:count])
        else:
            self._incoming.write_eof()
        try:
            while self.is_open:
                data = self._tls.read(RECORD_BYTES)
                if not data:  # The peer has closed its side.
                    self._ended()
                    break
                self._received(data)
                # One read takes a whole record.
                if count and not self._incoming.pending:
                    break
        except ssl.SSLWantReadError:
            self._reply()
        except ssl.SSLEOFError:
            self._ended()
        except OSError as error:
            self._end(error)
        return count > 0

    def _reply(self) -> None:
        """Sends TLS's own messages, such as acknowledgements of new keys."""
        if self._outgoing.pending:
            try:
                self._flush()
            except OSError as error:
                self._end(error)

    def _ended(self) -> None:
        """Handles the peer's end of stream, which completes an answer without a length."""
        if self._whole is None and self._in_body and not self._has_length:
            self._whole = self._made()
        self._end(EOFError())

    def _received(self, data: bytes) -> None:
        """Passes a part of an answer to the parser."""
        if self._answered is None or self._whole is not None:
            self.close()  # No request is pending.
            return
        self.is_answered = True
        is_first = not self._framing
        if is_first and (whole := self._like_before(data)) is not None:
            self._whole = whole
            return
        self._framing += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._end(MalformedAnswer(str(error)))
            return
        if self._framing > FRAMING_BYTES_MAX:
            self._end(AnswerTooLong(f"its head and framing are over {FRAMING_BYTES_MAX} bytes"))
        elif is_first:
            self._know(data)

    def _like_before(self, data: bytes) -> WholeAnswer | None:
        """Reads an answer whose head and size equal an earlier one's, which the parser has read.

        A provider's answers differ in their bodies alone for a second: then the date changes.
        """
        known = self._known_head
        if len(data) == known.size and data.startswith(known.head):
            return WholeAnswer(known.status, data[len(known.head) :], known.location)
        return None

    def _know(self, data: bytes) -> None:
        """Remembers the head of an answer that came at once, with its length in the head."""
        whole = self._whole
        if whole is None or not self.is_open:
            return
        head = len(data) - len(whole.body)
        if whole.body and data.find(_HEAD_END) + len(_HEAD_END) == head:
            self._known_head = _KnownHead(data[:head], len(data), whole.status, whole.location)

    # --- callbacks of the parser -----------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Closes the connection at a second answer to the same request."""
        if self._whole is not None:
            self.close()

    def on_header(self, name: bytes, _value: bytes) -> None:
        """Notes the headers that matter: of length and location."""
        lowered = name.lower()
        self._has_length = self._has_length or lowered in _LENGTHS
        self._location = self._location or lowered == b"location"

    def on_headers_complete(self) -> None:
        """Notes the status."""
        self._status = self._parser.get_status_code()
        self._in_body = True

    def on_body(self, part: bytes) -> None:
        """Keeps a part of the body."""
        self._size += len(part)
        self._framing -= len(part)
        if self._size > ANSWER_BYTES_MAX:
            self._end(AnswerTooLong(f"it is over {ANSWER_BYTES_MAX} bytes"))
        else:
            self._parts.append(part)

    def on_message_complete(self) -> None:
        """Completes the answer; skips informational ones (1xx)."""
        if self._parser is None:
            return  # It was too long.
        if self._status // 100 == 1:
            self._reset()
            return
        self._whole = self._made()
        if not self._parser.should_keep_alive():
            self.close()

    def _made(self) -> WholeAnswer:
        parts, self._parts = self._parts, []
        return WholeAnswer(self._status, b"".join(parts), self._location)

    def _notify(self, whole: WholeAnswer) -> None:
        answered, self._answered = self._answered, None
        self._whole = None
        if answered is not None:
            self.idle_since = time.monotonic()
            answered(whole)

    def _end(self, error: Exception) -> None:
        """Closes with a fault; after a whole answer it is none."""
        self.close()
        if self._whole is not None:
            return
        answered, self._answered = self._answered, None
        self._parts = []
        if answered is not None:
            answered(error)


# --- connecting -----------------------------------------------------------------------------------


class TlsEnds(NamedTuple):
    """A TLS object after the handshake, with its input and output buffers."""

    tls: ssl.SSLObject
    incoming: ssl.MemoryBIO
    outgoing: ssl.MemoryBIO


async def _connected(addresses: Addresses) -> socket.socket:
    """Connects to the first address that accepts; raises OSError."""
    loop = asyncio.get_running_loop()
    fault: OSError = socket.gaierror(socket.EAI_NONAME, "no address")
    for family, kind, protocol, _, where in addresses:
        plain = socket.socket(family, kind, protocol)
        try:
            plain.setblocking(False)  # as in the standard library
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.sock_connect(plain, where)
        except OSError as error:
            fault = error
            plain.close()
        except BaseException:
            plain.close()
            raise
        else:
            return plain
    raise fault


async def _agreed(
    plain: socket.socket, host: str, context: ssl.SSLContext, buffer: memoryview
) -> TlsEnds:
    """Makes the TLS handshake.

    Raises OSError, and ConnectionResetError if the peer closes meanwhile.
    """
    loop = asyncio.get_running_loop()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname=host)
    while True:
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            await loop.sock_sendall(plain, outgoing.read())
            # A buffer of its own: other connections use the shared buffer while this waits.
            data = await loop.sock_recv(plain, len(buffer))
            if not data:
                raise ConnectionResetError from None
            incoming.write(data)
        except ssl.SSLError:
            with contextlib.suppress(OSError):  # tells the peer the reason
                await loop.sock_sendall(plain, outgoing.read())
            raise
        else:
            await loop.sock_sendall(plain, outgoing.read())
            return TlsEnds(tls, incoming, outgoing)


def _sent(plain: socket.socket, data: bytes) -> int:
    """Sends as much as the system takes at once; returns the number of bytes. Raises OSError."""
    try:
        return plain.send(data)
    except (BlockingIOError, InterruptedError):
        return 0
