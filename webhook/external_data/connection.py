"""A connection to a provider: one POST after another, each answered whole.

A general client takes several times as long for a request as TLS and the system do, on the one
interpreter that admissions need, too. What a provider is asked is always the same: a body of known
length, on a connection that is kept. So the bytes are written and read here, at once: a transport
would write them when all else of its turn is done.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import httptools

if TYPE_CHECKING:
    from collections.abc import Callable

ANSWER_BYTES_MAX: Final = 8 << 20
"""Of an answer, as of http.send: a thousand keys have 8 KiB each."""

READ_AT_ONCE_BYTES: Final = 64 * 1024
"""Read at once: four records of TLS."""

RECORD_BYTES: Final = 16 * 1024
"""The most that one record of TLS holds."""

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


Answered: TypeAlias = "Callable[[WholeAnswer | Exception], None]"
"""Takes the answer to a request, or why there is none: an OSError, EOFError, :class:`MalformedAnswer`
or :class:`AnswerTooLong`."""


def read_buffer() -> memoryview:
    """Where a loop's connections read to, one after another: what arrived is decrypted at once."""
    return memoryview(bytearray(READ_AT_ONCE_BYTES))


class ProviderConnection:
    """One connection, for one event loop; :meth:`post` once at a time."""

    def __init__(self, plain: socket.socket, tls: TlsEnds, buffer: memoryview) -> None:
        """``buffer`` is shared by all connections of a loop."""
        self._loop = asyncio.get_running_loop()
        self._socket = plain
        self._tls, self._incoming, self._outgoing = tls
        self._buffer = buffer
        self._unsent = b""
        self._answered: Answered | None = None
        self._begun: Callable[[], None] | None = None
        self._parser: Any = None
        self._parts: list[bytes] = []
        self._size = 0
        self._status = 0
        self._location = self._has_length = self._in_body = False
        self._whole: WholeAnswer | None = None
        self.is_open = True
        self.idle_since = 0.0
        self._loop.add_reader(plain, self._readable)

    @classmethod
    async def open(
        cls, host: str, port: int, context: ssl.SSLContext, buffer: memoryview
    ) -> ProviderConnection:
        """Connect; raises OSError, and ssl.SSLError among it."""
        plain = await _connected(host, port)
        try:
            tls = await _agreed(plain, host, context, buffer)
            return cls(plain, tls, buffer)
        except BaseException:
            plain.close()
            raise

    def post(self, request: bytes, begun: Callable[[], None], answered: Answered) -> None:
        """Send a request; ``begun`` is called when its answer begins, ``answered`` with all of it."""
        self._answered = answered
        self._begun = begun
        self._parser = httptools.HttpResponseParser(self)
        self._reset()
        try:
            self._tls.write(request)
            self._flush()
        except OSError as error:
            self._end(error)

    def close(self) -> None:
        """Leave at once: nothing is said on the way out."""
        if not self.is_open:
            return
        self.is_open = False
        self._loop.remove_reader(self._socket)
        if self._unsent:
            self._loop.remove_writer(self._socket)
            self._unsent = b""
        self._socket.close()
        # It refers back to this object: with it this would stay until a full collection of garbage.
        self._parser = None

    def _reset(self) -> None:
        self._parts = []
        self._size = self._status = 0
        self._location = self._has_length = self._in_body = False
        self._whole = None

    # --- the socket ----------------------------------------------------------------------------

    def _flush(self) -> None:
        """Send what is encrypted, as far as the system takes it; raises OSError."""
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
        """Some bytes have arrived, or the end."""
        try:
            count = self._socket.recv_into(self._buffer)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._end(error)
            return
        if count:
            self._incoming.write(self._buffer[:count])
        else:
            self._incoming.write_eof()
        try:
            while self.is_open:
                data = self._tls.read(RECORD_BYTES)
                if not data:  # The peer says that it says no more.
                    self._ended()
                    return
                self._received(data)
                if count and not self._incoming.pending and not self._tls.pending():
                    return
        except ssl.SSLWantReadError:
            self._reply()
        except ssl.SSLEOFError:
            self._ended()
        except OSError as error:
            self._end(error)

    def _reply(self) -> None:
        """Send what TLS itself has to say: new keys are acknowledged."""
        if self._outgoing.pending:
            try:
                self._flush()
            except OSError as error:
                self._end(error)

    def _ended(self) -> None:
        """The peer says no more: so an answer is over that gives no length."""
        if self._in_body and not self._has_length:
            self.close()
            self._tell(self._made())
        else:
            self._end(EOFError())

    def _received(self, data: bytes) -> None:
        """Some of an answer."""
        if self._answered is None:
            self.close()  # There is no request.
            return
        if self._begun is not None:
            self._begun()
            self._begun = None
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            if self._whole is None:
                self._end(MalformedAnswer(str(error)))
            self.close()
        if self._whole is not None:
            self._tell(self._whole)

    # --- what the parser tells -----------------------------------------------------------------

    def on_message_begin(self) -> None:
        """An answer begins: a second one to the same request is nobody's."""
        if self._whole is not None:
            self.close()

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
        if self._parser is None:
            return  # It was too long.
        if self._status < 200:
            self._reset()
            return
        self._whole = self._made()
        if not self._parser.should_keep_alive():
            self.close()

    def _made(self) -> WholeAnswer:
        parts, self._parts = self._parts, []
        return WholeAnswer(self._status, b"".join(parts), self._location)

    def _tell(self, whole: WholeAnswer) -> None:
        answered, self._answered = self._answered, None
        self._whole = None
        if answered is not None:
            self.idle_since = time.monotonic()
            answered(whole)

    def _end(self, error: Exception) -> None:
        answered, self._answered = self._answered, None
        self._parts = []
        self.close()
        if answered is not None:
            answered(error)


# --- until it is open -----------------------------------------------------------------------------


class TlsEnds(NamedTuple):
    """TLS that was agreed upon, what it reads, and what it writes."""

    tls: ssl.SSLObject
    incoming: ssl.MemoryBIO
    outgoing: ssl.MemoryBIO


async def _connected(host: str, port: int) -> socket.socket:
    """A connection to the first address of a host that takes one; raises OSError."""
    loop = asyncio.get_running_loop()
    addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    fault: OSError = socket.gaierror(socket.EAI_NONAME, "no address")
    for family, kind, protocol, _, where in addresses:
        plain = socket.socket(family, kind, protocol)
        try:
            plain.setblocking(False)  # the standard library's own
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
    """Agree upon TLS; raises OSError, a ConnectionResetError where the peer leaves meanwhile."""
    loop = asyncio.get_running_loop()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname=host)
    while True:
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            await loop.sock_sendall(plain, outgoing.read())
            # A buffer of its own: others read to theirs while this waits.
            data = await loop.sock_recv(plain, len(buffer))
            if not data:
                raise ConnectionResetError from None
            incoming.write(data)
        except ssl.SSLError:
            with contextlib.suppress(OSError):  # so that the peer learns why
                await loop.sock_sendall(plain, outgoing.read())
            raise
        else:
            await loop.sock_sendall(plain, outgoing.read())
            return TlsEnds(tls, incoming, outgoing)


def _sent(plain: socket.socket, data: bytes) -> int:
    """Send what the system takes at once; raises OSError."""
    try:
        return plain.send(data)
    except (BlockingIOError, InterruptedError):
        return 0
