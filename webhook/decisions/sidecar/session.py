"""One sender's connection, without I/O: bytes or frames in, bytes or frames out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.decisions.wire.framing import (
    Ack,
    Bye,
    ClientHello,
    ProtocolError,
    Record,
    Rows,
    ServerHello,
    StreamID,
    decode_client_line,
    shared_protocol,
)
from webhook.decisions.wire.rows import received

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.decisions.sidecar.intake import Intake


class Session:
    """The state of a connection; hands records to the intake.

    A sender without a hello sends plain ndjson: lines that are not records are counted in
    ``rejected`` and skipped, and nothing is answered.
    """

    __slots__ = ("_acknowledged", "_begun", "_intake", "_owner", "rejected", "stream")

    def __init__(self, intake: Intake, owner: str) -> None:
        """``owner`` is the identity of the peer from the transport: see ``Streams``."""
        self._intake = intake
        self._owner = owner
        self._begun = False
        self._acknowledged = -1
        self.stream: StreamID | None = None
        self.rejected = 0

    def hello(self, hello: ClientHello) -> ServerHello:
        """Begins a stream.

        Raises :class:`ProtocolError` after any other frame, or for a stream of another owner.
        """
        if self._begun:
            raise ProtocolError("bad_frame", "hello must be the first frame")
        self._begun = True
        self._acknowledged = self._intake.streams.open(
            hello.stream, hello.acknowledged, self._owner
        )
        self.stream = hello.stream
        return ServerHello(self._acknowledged, shared_protocol(hello.protocols))

    def lines(self, lines: Iterable[bytes]) -> ServerHello | None:
        """Takes whole lines; returns the hello to answer, if one was among them.

        Raises :class:`ProtocolError`, after which the connection must end; the records before the
        fault are taken.
        """
        answer: ServerHello | None = None
        records: list[Record] = []
        fault: ProtocolError | None = None
        try:
            for line in lines:
                match self._decode(line):
                    case Record() as record:
                        self._begun = True
                        records.append(record)
                    case Rows(value):
                        records += self._rows(value)
                    case ClientHello() as hello:
                        answer = self.hello(hello)
                    case Bye(last_sequence):
                        self._accept(records)
                        records.clear()
                        self.bye(last_sequence)
                    case None:
                        self.rejected += 1
        except ProtocolError as error:
            fault = error
        self._accept(records)
        if fault is not None:
            raise fault
        return answer

    def acknowledgement(self) -> Ack | None:
        """Returns the acknowledgement to send; None without a new one."""
        if self.stream is None:
            return None
        durable = self._intake.streams.durable(self.stream)
        if durable <= self._acknowledged:
            return None
        self._acknowledged = durable
        return Ack(durable)

    def _rows(self, value: dict[str, Any]) -> list[Record]:
        if self.stream is None:
            raise ProtocolError("bad_frame", "rows come after a hello")
        return received(value, self.stream)

    def _decode(self, line: bytes) -> Record | Rows | ClientHello | Bye | None:
        try:
            frame = decode_client_line(line)
        except ProtocolError:
            if self.stream is None and self._begun:
                return None
            raise
        if self.stream is not None and isinstance(frame, Record) and frame.stream != self.stream:
            raise ProtocolError(
                "bad_record",
                "a record's podUID and process must be the hello's, sequence 1 or more",
            )
        return frame

    def bye(self, last_sequence: int) -> None:
        """The sender has nothing more."""
        if self.stream is not None:
            self._intake.streams.finish(self.stream, last_sequence)

    def _accept(self, records: list[Record]) -> None:
        if not records:
            return
        if self.stream is not None:
            if refused := self._intake.accept(records, self._owner):
                raise refused[0]
            return
        # A sender without a hello never continues the stream of a sender with one.
        self.rejected += len(self._intake.accept(records, f"{self._owner}, without a hello"))
