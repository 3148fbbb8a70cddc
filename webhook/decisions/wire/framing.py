"""The protocol between exporter client and sidecar, without any I/O.

Over a stream each frame is one JSON object on one line. A client sends ``hello`` first, then
records. The sidecar answers ``hello``, then cumulative ``ack`` frames, each with the highest
sequence number up to which everything is durable. A stream whose first line is no hello is plain
ndjson: it is stored and never acknowledged. Version 3 also has decisions in rows
(:mod:`webhook.decisions.wire.rows`). docs/protocol.md is the specification.
"""

from __future__ import annotations

import zlib
from typing import Any, Final

import orjson

from webhook.values import dataclass

PROTOCOL: Final = 1
ROWS_PROTOCOL: Final = 3
"""The version from which decisions may come in rows."""

SUPPORTED: Final = (PROTOCOL, ROWS_PROTOCOL)

MAX_LINE_BYTES: Final = 1024 * 1024
"""The longest line accepted. A record is limited to a quarter of it by the client's default. A
receiver must be able to refuse lines that it cannot hold."""


NAME_BYTES_MAX: Final = 128
"""The most bytes of a podUID or a process: a UUID has 36. A receiver keeps a thousand of them in
each segment."""

SEQUENCE_MAX: Final = 2**53
"""The largest whole number that every reader of JSON keeps."""


class ProtocolError(Exception):
    """The peer broke the protocol; ``code`` is the error frame's, the message has the details."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class StreamID:
    """One start of one replica's process: sequence numbers count within it."""

    pod_uid: str
    process: str


@dataclass(frozen=True, slots=True)
class ClientHello:
    """The client's first frame.

    ``acknowledged`` is the highest sequence number that any receiver acknowledged to the client, 0
    for none. If the receiver knows no higher number of the stream, numbers between it and the first
    record are a gap.
    """

    stream: StreamID
    pod: str
    acknowledged: int
    protocols: tuple[int, ...] = SUPPORTED


@dataclass(frozen=True, slots=True)
class ServerHello:
    """The sidecar's answer, with the highest number of this stream that is durable."""

    acknowledged: int
    protocol: int = PROTOCOL


@dataclass(frozen=True, slots=True)
class Ack:
    """Everything up to and including ``sequence`` is durable."""

    sequence: int


@dataclass(frozen=True, slots=True)
class Bye:
    """The client is done; ``last_sequence`` was the last number it gave to a record."""

    last_sequence: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """The last frame of a connection that is given up, with the reason."""

    code: str
    message: str


ServerFrame = ServerHello | Ack | Refusal
Frame = ClientHello | Bye | ServerFrame


@dataclass(frozen=True, slots=True)
class Record:
    """One received record: its line as received, its stream and its number.

    ``sequence`` is 0 if the sender does not number records (plain ndjson).
    """

    line: bytes
    stream: StreamID | None
    sequence: int


@dataclass(frozen=True, slots=True)
class Rows:
    """A frame of rows, still unchecked: see :mod:`webhook.decisions.wire.rows`."""

    value: dict[str, Any]


class LineSplitter:
    """Cuts a byte stream into lines; an unfinished line waits for the rest.

    Raises :class:`ProtocolError` (``line_too_long``) beyond ``max_line_bytes``.
    """

    __slots__ = ("_max", "_rest")

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max = max_line_bytes
        self._rest = bytearray()

    @property
    def unfinished(self) -> int:
        """The bytes of an unfinished line."""
        return len(self._rest)

    def feed(self, data: bytes) -> list[bytes]:
        """Returns the lines that ``data`` completes, without newlines; empty lines are skipped."""
        first, *others = data.split(b"\n")
        # So a line that arrives byte by byte is not copied for each of them.
        self._rest += first
        lines = []
        if others:
            lines = [bytes(self._rest), *others]
            self._rest = bytearray(lines.pop())
        if len(self._rest) > self._max or any(len(line) > self._max for line in lines):
            raise ProtocolError("line_too_long", f"a line is longer than {self._max} bytes")
        return [line for line in lines if line]


def encode(frame: Frame) -> bytes:
    """Returns a frame as its line, newline included."""
    match frame:
        case ClientHello():
            body: dict[str, Any] = {
                "type": "hello",
                "protocols": list(frame.protocols),
                "podUID": frame.stream.pod_uid,
                "process": frame.stream.process,
                "pod": frame.pod,
                "acknowledged": frame.acknowledged,
            }
        case ServerHello():
            body = {
                "type": "hello",
                "protocol": frame.protocol,
                "acknowledged": frame.acknowledged,
            }
        case Ack():
            body = {"type": "ack", "sequence": frame.sequence}
        case Bye():
            body = {"type": "bye", "lastSequence": frame.last_sequence}
        case Refusal():
            body = {"type": "error", "code": frame.code, "message": frame.message}
    return orjson.dumps(body, option=orjson.OPT_APPEND_NEWLINE)


def decode_client_line(line: bytes) -> ClientHello | Bye | Record | Rows:
    """Decodes a client's line; raises :class:`ProtocolError` for other lines."""
    value = _object(line)
    match value.get("type"):
        case None:
            return read_record(line.strip(), value)
        case "decisions":
            return Rows(value)
        case "hello":
            return client_hello(value)
        case "bye":
            return Bye(_integer(value, "lastSequence"))
        case other:
            raise ProtocolError("bad_frame", f"a client sends no frame of type {other!r}")


def client_hello(value: dict[str, Any]) -> ClientHello:
    """Reads a hello; raises :class:`ProtocolError` without a shared version."""
    offered = value.get("protocols")
    protocols = (
        tuple(number for number in offered if type(number) is int) if type(offered) is list else ()
    )
    check_protocols(protocols)
    stream = StreamID(_text(value, "podUID"), _text(value, "process"))
    check_stream(stream)
    return ClientHello(stream, _text(value, "pod"), _integer(value, "acknowledged"), protocols)


def check_stream(stream: StreamID) -> None:
    """Raises :class:`ProtocolError` for a stream without a name, or with a name that is too long."""
    if not stream.process:
        raise ProtocolError("bad_frame", "hello without a process")
    if not _are_names(stream.pod_uid, stream.process):
        raise ProtocolError(
            "bad_frame", f"podUID and process have at most {NAME_BYTES_MAX} bytes each"
        )


def shared_protocol(offered: tuple[int, ...]) -> int:
    """Returns the newest version of both sides; :func:`check_protocols` must have passed."""
    return max(number for number in offered if number in SUPPORTED)


def check_protocols(offered: tuple[int, ...]) -> None:
    """Raises :class:`ProtocolError` if no offered version is supported."""
    if not any(number in SUPPORTED for number in offered):
        raise ProtocolError(
            "unsupported_protocol", f"offered {list(offered)}, supported {list(SUPPORTED)}"
        )


def decode_server_line(line: bytes) -> ServerFrame:
    """Decodes a sidecar's line; raises :class:`ProtocolError`."""
    value = _object(line)
    match value.get("type"):
        case "hello":
            protocol = _integer(value, "protocol")
            if protocol not in SUPPORTED:
                raise ProtocolError(
                    "unsupported_protocol", f"the receiver speaks version {protocol}"
                )
            return ServerHello(_integer(value, "acknowledged"), protocol)
        case "ack":
            return Ack(_integer(value, "sequence"))
        case "error":
            return Refusal(_text(value, "code"), _text(value, "message"))
        case other:
            raise ProtocolError("bad_frame", f"a receiver sends no frame of type {other!r}")


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ProtocolError("bad_frame", f"a line is not JSON: {error}") from None
    if type(value) is not dict:
        raise ProtocolError("bad_frame", "a line is not a JSON object")
    return value


def read_record(line: bytes, value: dict[str, Any]) -> Record:
    """Returns the record of a decoded line; without a sequence it is unnumbered."""
    process = value.get("process")
    sequence = value.get("sequence")
    if (
        type(process) is not str
        or not process
        or type(sequence) is not int
        or not 1 <= sequence <= SEQUENCE_MAX
    ):
        return Record(line, None, 0)
    pod_uid = value.get("podUID")
    if type(pod_uid) is not str:
        pod_uid = ""
    if not _are_names(pod_uid, process):
        return Record(line, None, 0)
    return Record(line, StreamID(pod_uid, process), sequence)


def _are_names(pod_uid: str, process: str) -> bool:
    # No character has more than four bytes: a short text needs no second look.
    return all(
        len(name) * 4 <= NAME_BYTES_MAX
        or len(name.encode("utf-8", "surrogatepass")) <= NAME_BYTES_MAX
        for name in (pod_uid, process)
    )


def _text(value: dict[str, Any], key: str) -> str:
    text = value.get(key, "")
    if type(text) is not str:
        raise ProtocolError("bad_frame", f"{key} must be a string")
    return text


def _integer(value: dict[str, Any], key: str) -> int:
    number = value.get(key, 0)
    if type(number) is not int or number < 0:
        raise ProtocolError("bad_frame", f"{key} must be a whole number, 0 or more")
    return number


def with_checksum(body: bytes) -> bytes:
    """Returns the body with its CRC-32 on a further line."""
    return b"%s\n%08x\n" % (body, zlib.crc32(body))


def checked(data: bytes) -> bytes:
    """Returns the body of data with a checksum; raises :class:`ValueError` for damage."""
    body, _, checksum = data.removesuffix(b"\n").rpartition(b"\n")
    if checksum != b"%08x" % zlib.crc32(body):
        raise ValueError("the checksum does not match")
    return body
