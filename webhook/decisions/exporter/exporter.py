"""The exporter client: takes records from the server and gets them acknowledged.

It lives on the server's event loop. :meth:`Exporter.offer` never waits and is
all that an admission sees of it; :meth:`Exporter.run`, one task of the
application, connects, sends and sends again until the sidecar says that a
record is durable.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import TYPE_CHECKING, Any, Final

import orjson

from webhook.decisions.exporter import transport
from webhook.decisions.exporter.bounding import encode_bounded
from webhook.decisions.exporter.counters import Counters
from webhook.decisions.exporter.outbox import Outbox
from webhook.decisions.exporter.pauses import Pauses
from webhook.decisions.exporter.record import SPEC_VERSION
from webhook.decisions.exporter.rows import (
    ROWS,
    ROWS_RECORD_BYTES_MIN,
    NotedRows,
    RowWriter,
    longest_record,
)
from webhook.decisions.wire.framing import (
    ROWS_PROTOCOL,
    Ack,
    Bye,
    ClientHello,
    ProtocolError,
    Refusal,
    ServerHello,
    StreamID,
)
from webhook.decisions.wire.rows import expanded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.decisions.exporter.admission import RecordedPolicies
    from webhook.decisions.exporter.origin import Origin
    from webhook.decisions.exporter.settings import ExporterSettings
    from webhook.decisions.exporter.transport import SidecarConnection
    from webhook.log import Logger

SEND_BYTES: Final = 256 * 1024
"""Sent at a time at most: well below a grpc message's 4 MiB."""

RECORD_BYTES_MIN: Final = 512
"""Of a review: the names of its fields alone take as many."""

GOODBYE_SECONDS: Final = 1.0

USER_FIELDS: Final = ("requestUsername", "requestUserUID", "requestUserGroups", "userInfo")


class Exporter:
    """The client's end of the decision log; belongs to one event loop, not thread-safe."""

    def __init__(self, settings: ExporterSettings, origin: Origin, logger: Logger) -> None:
        self.origin = origin
        self.counters = Counters()
        self.connected = False
        self._logger = logger
        self._sequence = 0
        self._acknowledged, self._heard = 0, 0.0
        self.ids = f"{origin.process}-"
        self.numbers = itertools.count(1)
        self._closing = False
        self._finished = asyncio.Event()
        self._wake = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._moment: asyncio.TimerHandle | None = None
        self._room = asyncio.Event()
        self._changed = asyncio.Event()
        self._pauses = Pauses(settings, self.counters, logger)
        self._settings = settings
        self.noted = NotedRows()
        self._takes_rows = True
        self.outbox = Outbox(settings.max_records, settings.max_bytes)
        self.configure(settings)

    @property
    def settings(self) -> ExporterSettings:
        """The settings in force."""
        return self._settings

    @property
    def queued(self) -> int:
        """Records not yet acknowledged."""
        return len(self.outbox) + len(self.noted.rows)

    @property
    def newest(self) -> int:
        """The sequence of the record that was queued last; 0 where none waits."""
        self.settle()
        return self.outbox.newest

    @property
    def in_rows(self) -> bool:
        """Whether decisions are queued as rows.

        Their records are as they are made, and the receiver, as far as it is known, takes them so.
        """
        return self._in_rows and self._takes_rows

    @property
    def queued_bytes(self) -> int:
        """Bytes not yet acknowledged."""
        return self.outbox.queued_bytes

    def configure(self, settings: ExporterSettings) -> None:
        """Put other settings in force; a connection to another address is made anew."""
        self.settle()
        old, self._settings = self._settings, settings
        self.outbox.max_records = settings.max_records
        self.outbox.max_bytes = settings.max_bytes
        self._pauses.configure(settings)
        constant = {
            "specVersion": SPEC_VERSION,
            "podUID": self.origin.pod_uid,
            "pod": self.origin.pod,
            "podNamespace": self.origin.namespace,
            "node": self.origin.node,
            "process": self.origin.process,
        }
        if settings.labels:
            constant["labels"] = dict(settings.labels)  # type: ignore[assignment]
        encoded = orjson.dumps(constant)
        self._row_writer = RowWriter(constant)
        self._prefix = encoded[:-1] + b',"sequence":'
        # The value of the first of its names, with the others after it: written where it stands.
        self._constant = orjson.Fragment(encoded[len(b'{"specVersion":') : -1])
        self._line_bytes_max = settings.max_record_bytes + len(self._prefix) + len("9" * 16)
        masking = settings.masking
        self._masks = bool(masking.paths or masking.of_kinds or settings.include_objects)
        self._as_made = not (self._masks or settings.rules.rules) and settings.include_user_info
        self._in_rows = (
            self._as_made
            and settings.acknowledged
            and settings.max_record_bytes >= ROWS_RECORD_BYTES_MIN
        )
        if (old.address, old.acknowledged) != (settings.address, settings.acknowledged):
            self._changed.set()

    def decision_id(self) -> str:
        """A name for the next decision, unique among all replicas and their restarts."""
        return f"{self.ids}{next(self.numbers)}"

    def offer(self, record: dict[str, Any]) -> bool:
        """Queue a record if there is room; False, and counted, if not. Never waits.

        Takes the mapping over and may change it. Masked and encoded at once:
        nothing that must not leave is ever queued.
        """
        as_made = self._as_made and "mutation" not in record
        if not as_made and not self._prepare(record):
            return False
        sequence = self._sequence + 1
        record["specVersion"] = self._constant
        record["sequence"] = sequence
        try:
            line = orjson.dumps(record)
        except TypeError:
            line = b""
        if not line or len(line) > self._line_bytes_max:
            del record["specVersion"], record["sequence"]
            body = self._encode_bounded(record)
            self.counters.offered += 1  # last, so that a bug above is counted once, by `lose`
            return body is not None and self._add(body)
        self.counters.offered += 1
        return self._queue(sequence, line)

    def open_rows(self, policies: RecordedPolicies) -> None:
        """Let decisions by these policies be noted as rows, where :attr:`in_rows` and not refused.

        As many as :attr:`NotedRows.limit` says before this is called again. They are put together
        a few requests later or when they are sent.
        """
        noted = self.noted
        if policies is not noted.policies or len(noted.rows) >= ROWS:
            self.settle()
            noted.begin(policies)
        # Where room is scarce it is asked for each.
        ample = self.outbox.has_room(RECORD_BYTES_MIN, ROWS)
        noted.limit = ROWS if ample else len(noted.rows) + 1
        if self._moment is None:
            self._wake_later()

    def settle(self) -> None:
        """Put the rows together that were noted."""
        noted = self.noted
        noted.limit = 0
        if noted.rows:
            rows, noted.rows = noted.rows, []
            self._queue_rows(rows)
            noted.begin(noted.policies)

    def refuse(self) -> bool:
        """Count a record that has no room before it is made; False where it is to be offered.

        Where rules leave records out, it takes the record to say which: then it is to be offered.
        """
        waiting = len(self.noted.rows) + 1
        has_room = self.outbox.has_room(RECORD_BYTES_MIN, waiting) and not self._closing
        if has_room or not self._as_made:
            return False
        self.counters.offered += 1
        self._sequence += 1  # the sidecar sees the gap
        self.counters.drop("shutdown" if self._closing else "queue_full")
        return True

    def _has_room(self, size: int) -> bool:
        """Whether there is room for a record of so many bytes beside the rows that are noted."""
        return self.outbox.has_room(size, len(self.noted.rows) + 1)

    def lose(self, error: Exception) -> None:
        """A bug kept a record from being made or queued: count and tell it."""
        self.counters.offered += 1
        self.counters.drop("bug")
        self._logger.fault("bug: a decision was not recorded", error)

    async def put(self, record: dict[str, Any]) -> bool:
        """Queue a record, waiting for room; False only for what rules or limits leave out.

        For the audit, which can wait, and must not crowd out admissions: it
        waits until the queue is half empty.
        """
        if not self._prepare(record):
            return False
        line = self._encode_bounded(record)
        self.counters.offered += 1
        if line is None:
            return False
        # Room is reserved for admissions: a sweep alone would keep the queue full.
        try:
            while not self._closing and not (
                self.queued < self.outbox.max_records // 2 + 1
                and self.outbox.queued_bytes <= self.outbox.max_bytes // 2
                and self._has_room(len(line) + 20)
            ):
                self._room.clear()
                await self._room.wait()
        except asyncio.CancelledError:
            self._sequence += 1  # the sidecar sees the gap
            self.counters.drop("audit_timeout")
            raise
        return self._add(line)

    async def run(self) -> None:
        """Connect and send until :meth:`drain`; for ever otherwise."""
        self._loop = asyncio.get_running_loop()
        while not self._finished.is_set():
            try:
                await self._session()
            except Exception as error:  # noqa: BLE001  # the log's boundary: it begins anew
                await _wait(self._finished, self._pauses.after_bug(error))

    async def _session(self) -> None:
        """One connection, from the attempt to its end."""
        self._changed.clear()
        try:
            async with asyncio.timeout(self._settings.connect_seconds):
                connection = await transport.make(self._settings.address).connect()
        except (OSError, ProtocolError) as error:
            self.counters.connect_failures += 1
            await _wait(self._finished, self._pauses.after(error))
            return
        try:
            await self._converse(connection)
        except* (OSError, ProtocolError) as group:
            if not self._finished.is_set() and not self._changed.is_set():
                await _wait(self._finished, self._pauses.after(group.exceptions[0]))
        finally:
            self.connected = False
            await connection.close()

    async def drain(self, grace_seconds: float) -> None:
        """Wait until everything is acknowledged, at most ``grace_seconds``, then end :meth:`run`.

        Call after the last answer. What is left is counted as dropped
        (``shutdown``).
        """
        self.settle()
        self._closing = True
        self._room.set()
        self._wake.set()
        try:
            async with asyncio.timeout(grace_seconds):
                while len(self.outbox):
                    self._room.clear()
                    self._wake.set()
                    await self._room.wait()
        except TimeoutError:
            pass  # What is left is counted, and told.
        lost = self.outbox.clear()
        self.counters.drop("shutdown", lost)
        self._finished.set()
        self._wake.set()
        if lost:
            self._logger.warning("decisions not acknowledged", records=lost)

    def _prepare(self, record: dict[str, Any]) -> bool:
        """Rules and masks; False, and counted, for what is left out."""
        settings = self._settings
        if settings.rules.rules:
            reason = settings.rules.drop_reason(record)
            if reason:
                self.counters.offered += 1
                self.counters.drop(reason)
                return False
        if not settings.include_user_info:
            for name in USER_FIELDS:
                record.pop(name, None)
        if self._masks or "mutation" in record:
            settings.masking.apply(record)
        return True

    def _encode_bounded(self, record: dict[str, Any]) -> bytes | None:
        """A record's own part, within the limit of one record; None, and counted, for none."""
        line = encode_bounded(record, self._settings.max_record_bytes)
        if line is None:
            self._sequence += 1  # the sidecar sees the gap
            self.counters.drop("too_large")
        return line

    def _add(self, body: bytes) -> bool:
        sequence = self._sequence + 1
        return self._queue(sequence, b"%s%d,%s" % (self._prefix, sequence, body[1:]))

    def _queue_rows(self, rows: Sequence[bytes]) -> None:
        """Queue these on one line if they may be; else half by half."""
        try:
            if self._are_queued(rows):
                return
        except Exception as bug:  # noqa: BLE001  # the log's boundary: the decisions stand
            if len(rows) == 1:  # it keeps no other from being recorded
                self.counters.drop("bug")
                self._logger.fault("bug: a decision was not recorded", bug)
                return
        middle = len(rows) // 2
        self._queue_rows(rows[:middle])
        self._queue_rows(rows[middle:])

    def _are_queued(self, rows: Sequence[bytes]) -> bool:
        """Queue these together, or count a single one as dropped; False where they must be fewer."""
        noted, count = self.noted, len(rows)
        line = self._row_writer.line(self._sequence + 1, noted, rows)
        size = sum(map(len, line))
        fits = longest_record(size, noted.results) <= self._settings.max_record_bytes
        if fits and self.outbox.has_room(size, count):
            self._sequence += count
            self.outbox.add(self._sequence, *line, count=count)
        elif count > 1:
            return False
        elif fits:
            self._queue(self._sequence + 1, b"".join(line))
        else:
            body = self._encode_bounded(self._row_writer.record(b"".join(line), noted.policies))
            if body is not None:
                self._add(body)
        return True

    def _queue(self, sequence: int, line: bytes) -> bool:
        """Queue the record of the next number if there is room."""
        self._sequence = sequence
        self.noted.limit = 0  # there may be less room than there was
        if self._closing or not self._has_room(len(line)):
            self.counters.drop("shutdown" if self._closing else "queue_full")
            return False
        self.outbox.add(sequence, line)
        if self._moment is None:
            self._wake_later()
        return True

    def _wake_later(self) -> None:
        """Have the records of a moment sent together: a wake-up for each would cost more."""
        if self._loop is None:
            self._wake.set()  # nothing is sent before :meth:`run`
        else:
            self._moment = self._loop.call_later(self._settings.flush_seconds, self._wake.set)

    async def _converse(self, connection: SidecarConnection) -> None:
        """Use one connection until it fails, the address changes, or all is done."""
        self.counters.connects += 1
        if self._settings.acknowledged:
            await self._greet(connection)
        self.counters.retried += self.outbox.rewind()
        if len(self.outbox):
            self._wake.set()  # the next offer may be far off, or refused for want of room
        self.connected = True
        self._logger.info("decisions connected", address=self._settings.address.scheme)
        async with asyncio.TaskGroup() as tasks:
            sender = tasks.create_task(self._send(connection))
            others = [
                tasks.create_task(self._watch_address()),
                tasks.create_task(self._watch_finish()),
            ]
            if self._settings.acknowledged:
                others.append(tasks.create_task(self._receive(connection)))
                others.append(tasks.create_task(self._watch_silence()))
            await asyncio.wait([sender])
            for task in others:
                task.cancel()

    async def _greet(self, connection: SidecarConnection) -> None:
        hello = ClientHello(
            StreamID(self.origin.pod_uid, self.origin.process), self.origin.pod, self._acknowledged
        )
        async with asyncio.timeout(self._settings.connect_seconds):
            await connection.hello(hello)
            answer = await connection.receive()
        if isinstance(answer, Refusal):
            raise ProtocolError(answer.code, answer.message)
        if not isinstance(answer, ServerHello):
            raise ProtocolError("bad_frame", "the receiver's first frame is no hello")
        self._takes_rows = answer.protocol >= ROWS_PROTOCOL
        self.noted.limit = 0
        self._take_ack(answer.acknowledged)

    async def _send(self, connection: SidecarConnection) -> None:
        while not self._finished.is_set():
            await self._wake.wait()
            self._wake.clear()
            if self._moment is not None:
                self._moment.cancel()
                self._moment = None
            self.settle()
            while lines := self.outbox.take(SEND_BYTES):
                await connection.send(lines if self.in_rows else expanded(bytes(lines)))
                if not self._settings.acknowledged:
                    self.counters.sent += self.outbox.release()
                    self._room.set()
            if self._closing and not len(self.outbox):
                break
        if self._settings.acknowledged:  # plain ndjson is records and nothing else
            await connection.bye(Bye(self._sequence))

    async def _receive(self, connection: SidecarConnection) -> None:
        while True:
            match await connection.receive():
                case Ack(sequence):
                    self._heard = time.monotonic()
                    self._take_ack(sequence)
                    self._pauses.succeeded()
                case Refusal(code, message):
                    raise ProtocolError(code, message)
                case ServerHello():
                    raise ProtocolError("bad_frame", "a second hello")

    def _take_ack(self, sequence: int) -> None:
        if sequence > self._sequence:
            raise ProtocolError("bad_frame", f"acknowledged {sequence} of {self._sequence}")
        self._acknowledged = max(self._acknowledged, sequence)
        self.counters.acknowledged += self.outbox.acknowledge(sequence)
        self._room.set()
        if self._closing:
            self._wake.set()

    async def _watch_silence(self) -> None:
        """End a connection whose receiver owes acknowledgements and has sent none for too long.

        Beside :meth:`_receive`: a timeout of its own for each would cost more than reading it.
        """
        self._heard = time.monotonic()
        while True:
            silent = time.monotonic() - self._heard
            if silent < self._settings.acknowledge_seconds:
                await asyncio.sleep(self._settings.acknowledge_seconds - silent)
            elif self.outbox.in_flight:
                raise ConnectionAbortedError(f"no acknowledgement for {silent:.1f} seconds")
            else:
                self._heard = time.monotonic()

    async def _watch_address(self) -> None:
        await self._changed.wait()
        raise ConnectionAbortedError("the address changed")

    async def _watch_finish(self) -> None:
        """After the end there is a second to say goodbye, even to a peer that does not read."""
        await self._finished.wait()
        await asyncio.sleep(GOODBYE_SECONDS)
        raise ConnectionAbortedError("the receiver did not take the goodbye")


async def _wait(end: asyncio.Event, seconds: float) -> None:
    """Wait, but not beyond the end."""
    try:
        async with asyncio.timeout(seconds):
            await end.wait()
    except TimeoutError:
        return
