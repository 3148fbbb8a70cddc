"""The exporter client: takes records from the server and delivers them to the sidecar.

It runs on the server's event loop. An admission only calls :meth:`Exporter.offer`, which never
waits. :meth:`Exporter.run`, one task of the application, connects, and sends each record until the
sidecar has acknowledged it as durable.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections import deque
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from webhook.backoff import Backoff
from webhook.decisions.exporter import transport
from webhook.decisions.exporter.encoding import MASKED_ALWAYS, Origin, RecordEncoder
from webhook.decisions.exporter.outbox import Outbox
from webhook.decisions.exporter.rows import LINE_BYTES_MAX, ROWS, NotedRows, separated
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
from webhook.decisions.wire.rows import EXPANDED_BYTES_MAX, expanded
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.decisions.exporter.admission import RecordedPolicies
    from webhook.decisions.exporter.settings import ExporterSettings
    from webhook.decisions.exporter.transport import SidecarConnection
    from webhook.log import Logger
    from webhook.serving.trace import Trace, Tracer

AWAITED_MAX: Final = 1024
"""The most traces that wait for a sidecar; the oldest beyond that get no such span."""


class AwaitedExports:
    """Traced records that are queued; for the thread that the exporter lives on."""

    def __init__(self, exporter: Exporter, tracer: Tracer) -> None:
        self._exporter = exporter
        self._tracer = tracer
        self._awaited: deque[tuple[int, int, Trace]] = deque(maxlen=AWAITED_MAX)
        exporter.outbox.notify = self._left

    def recorded(self) -> int:
        """Returns the sequence of the record that was queued last."""
        return self._exporter.newest

    def await_export(self, trace: Trace) -> None:
        """Adds another span to the trace once the newest record is acknowledged."""
        self._awaited.append((self._exporter.newest, time.monotonic_ns(), trace.later()))

    def _left(self, sequence: int) -> None:
        now = time.monotonic_ns()
        while self._awaited and self._awaited[0][0] <= sequence:
            _, began, later = self._awaited.popleft()
            later.add("export", began, now)
            self._tracer.finish(later)


DROP_REASONS: Final = (
    *("queue_full", "rule", "sampled", "too_large"),
    *("shutdown", "bug", "audit_timeout"),
)
"""The reasons for dropped records. Each is a series from the start; new series show no increase."""


@dataclass(slots=True)
class Counters:
    """The numbers of records by their outcome.

    ``offered`` counts all records. At any time ``offered = acknowledged + sent + dropped +
    queued``, with the records still queued (``sent`` is for a receiver that never acknowledges).
    ``retried`` counts records sent again, which is no outcome. ``faults`` counts connections that a
    bug ended.
    """

    offered: int = 0
    acknowledged: int = 0
    sent: int = 0
    retried: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    connect_failures: int = 0
    faults: int = 0
    full_at: float = -math.inf
    """When a record had no room in the queue last, on the monotonic clock."""

    def drop(self, reason: str, count: int = 1) -> None:
        """Counts records that will never be delivered."""
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count
            if reason == "queue_full":
                self.full_at = time.monotonic()


SEND_BYTES: Final = 256 * 1024
"""Sent at a time at most: well below a grpc message's 4 MiB."""

RECORD_BYTES_MIN: Final = 512
"""The least bytes of a review's record: the names of its fields alone take as many."""

NAMES: Final = 64
"""The number of decision ids made at a time."""

GOODBYE_SECONDS: Final = 1.0

DROPPED_NEWS_SECONDS: Final = 60.0
"""How long a record without room is a fault that is shown."""


class Pauses:
    """Seconds to wait before the next connection, longer with each failure in a row."""

    def __init__(self, settings: ExporterSettings, counters: Counters, logger: Logger) -> None:
        self._counters = counters
        self._logger = logger
        self.error = ""
        """The error of the last attempt; empty once something was acknowledged."""
        self._failures = Backoff(healthy_seconds=math.inf)
        # No success, and no time, makes a bug harmless.
        self._bugs = Backoff(settings.backoff_initial_seconds, 60.0, healthy_seconds=math.inf)
        self.configure(settings)

    def configure(self, settings: ExporterSettings) -> None:
        """Applies other limits."""
        self._failures.initial_seconds = settings.backoff_initial_seconds
        self._failures.max_seconds = settings.backoff_max_seconds
        self._bugs.max_seconds = settings.backoff_max_seconds

    def succeeded(self) -> None:
        """Something was acknowledged."""
        self.error = ""
        self._failures.reset()

    def after(self, error: BaseException) -> float:
        """Seconds to wait after this failure."""
        seconds = self._failures.next_seconds()
        failures = self._failures.failures
        self.error = f"{type(error).__name__}: {error}"
        # The first failure and then each doubling, not a line for every try.
        if failures & (failures - 1) == 0:
            self._logger.warning(
                "the decision log has no connection to its sidecar; it tries again",
                error=self.error,
                failures=failures,
                retry_seconds=round(seconds, 3),
            )
        return seconds

    def after_bug(self, error: Exception) -> float:
        """Seconds to wait after a bug: it ends a connection, not the export, and is counted."""
        self._counters.faults += 1
        seconds = self._bugs.next_seconds()
        faults = self._counters.faults
        if faults & (faults - 1) == 0:
            self._logger.fault(
                "bug: the export of decisions ended; it begins again",
                error,
                faults=faults,
                retry_seconds=round(seconds, 3),
            )
        return seconds


class Exporter:
    """The client's end of the decision log; belongs to one event loop, not thread-safe."""

    def __init__(self, settings: ExporterSettings, origin: Origin, logger: Logger) -> None:
        self.origin = origin
        self._counters = Counters()
        self.connected = False
        self._logger = logger
        self._sequence = 0
        self._acknowledged, self._answered_at = 0, 0.0
        self.names: Iterator[str] = itertools.chain.from_iterable(_names(f"{origin.process}-"))
        """Names for decisions, unique among all replicas and their restarts."""
        self._closing = False
        self._finished = asyncio.Event()
        self._wake = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._moment: asyncio.TimerHandle | None = None
        self._room = asyncio.Event()
        self._changed = asyncio.Event()
        self._pauses = Pauses(settings, self._counters, logger)
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
    def counters(self) -> Counters:
        """The current numbers of records, by their outcome."""
        # Rows are not counted one by one, which would cost time for each. Scrapes are on another
        # thread; each of these numbers only ever grows.
        return replace(self._counters, offered=self._counters.offered + self.noted.total)

    @property
    def queued(self) -> int:
        """The number of records not yet acknowledged."""
        return len(self.outbox) + self.noted.count

    @property
    def newest(self) -> int:
        """The sequence number of the record queued last; 0 if none waits."""
        self.settle()
        return self.outbox.newest

    @property
    def in_rows(self) -> bool:
        """Whether decisions are queued as rows.

        It requires records without masks or rules, and a receiver that accepts rows, as far as
        known.
        """
        return self._encoder.in_rows and self._takes_rows

    @property
    def queued_bytes(self) -> int:
        """The bytes not yet acknowledged."""
        return self.outbox.queued_bytes

    def configure(self, settings: ExporterSettings) -> None:
        """Applies new settings; a new address also causes a new connection."""
        self.settle()
        old, self._settings = self._settings, settings
        self.outbox.max_records = settings.max_records
        self.outbox.max_bytes = settings.max_bytes
        self._pauses.configure(settings)
        self._encoder = RecordEncoder(settings, self.origin)
        if (old.address, old.acknowledged) != (settings.address, settings.acknowledged):
            self._changed.set()

    def decision_id(self) -> str:
        """Returns a name for the next decision, unique among all replicas and their restarts."""
        return next(self.names)

    def offer(self, record: dict[str, Any]) -> bool:
        """Queues a record if there is room; False, and counted, if not. Never waits.

        Takes ownership of the mapping and may change it. The record is masked and encoded at once,
        so that no confidential value is ever queued.
        """
        if self.noted.count:  # earlier decisions have lower numbers
            self.settle()
        encoder = self._encoder
        as_made = encoder.as_made and record.keys().isdisjoint(MASKED_ALWAYS)
        if not as_made and not self._is_kept(record):
            return False
        sequence = self._sequence + 1
        line = encoder.line(record, sequence)
        if line is None:
            body = self._encode_bounded(record)
            self._counters.offered += 1  # last, so that a bug above is counted once, by `lose`
            return body is not None and self._add(body)
        self._counters.offered += 1
        return self._queue(sequence, line)

    def open_rows(self, policies: RecordedPolicies) -> None:
        """Permits rows of decisions by these policies, if :attr:`in_rows` and not refused.

        At most :attr:`NotedRows.limit` rows before the next call. They are joined a few requests
        later, or when they are sent.
        """
        noted = self.noted
        if policies is not noted.policies or noted.count >= ROWS:
            self.settle()
            noted.begin(policies)
        # Without ample room each row is checked.
        ample = self.outbox.has_room(RECORD_BYTES_MIN, ROWS)
        noted.limit = noted.total + (ROWS - noted.count if ample else 1)
        if self._moment is None:
            self._wake_later()

    def settle(self) -> None:
        """Joins the waiting rows, and queues them."""
        noted = self.noted
        noted.limit = 0
        count = noted.count
        if count:
            with noted.take() as rows:
                self._queue_rows(rows, count, noted.longest)
            noted.begin(noted.policies)

    def refuse(self) -> bool:
        """Counts a record without room before it is made; False if it must be offered.

        With rules the record itself is needed to find the reason: then it must be offered.
        """
        waiting = self.noted.count + 1
        has_room = self.outbox.has_room(RECORD_BYTES_MIN, waiting) and not self._closing
        if has_room or not self._encoder.as_made:
            return False
        self._counters.offered += 1
        self._sequence += 1  # the sidecar sees the gap
        self._counters.drop("shutdown" if self._closing else "queue_full")
        return True

    def _has_room(self, size: int) -> bool:
        """Whether there is room for a record of this size beside the waiting rows."""
        return self.outbox.has_room(size, self.noted.count + 1)

    def lose(self, error: Exception) -> None:
        """Counts and logs a record that a bug kept from being made or queued."""
        self._counters.offered += 1
        self._counters.drop("bug")
        self._logger.fault("bug: a decision was not recorded", error)

    async def put(self, record: dict[str, Any]) -> bool:
        """Queues a record, waiting for room; False if rules or limits leave it out.

        For the audit, which can wait and must not displace admissions: it waits until the queue is
        half empty.
        """
        if not self._is_kept(record):
            return False
        self.settle()
        line = self._encode_bounded(record)
        self._counters.offered += 1
        if line is None:
            return False
        # Room is reserved for admissions: a sweep alone would keep the queue full.
        try:
            while not (self._may_add(len(line) + 20) or self._closing):
                self._room.clear()
                await self._room.wait()
        except asyncio.CancelledError:
            self.settle()
            self._sequence += 1  # the sidecar sees the gap
            self._counters.drop("audit_timeout")
            raise
        return self._add(line)

    def _may_add(self, size: int) -> bool:
        """Whether a record that can wait may be queued now, after earlier decisions."""
        self.settle()
        return (
            self.queued < self.outbox.max_records // 2 + 1
            and self.outbox.queued_bytes <= self.outbox.max_bytes // 2
            and self._has_room(size)
        )

    async def run(self) -> None:
        """Connect and send until :meth:`drain`; for ever otherwise."""
        self._loop = asyncio.get_running_loop()
        while not self._finished.is_set():
            try:
                await self._session()
            except Exception as error:  # noqa: BLE001  # the log's boundary: it starts again
                await _wait(self._finished, self._pauses.after_bug(error))

    async def _session(self) -> None:
        """Runs one connection, from the attempt to its end."""
        self._changed.clear()
        try:
            async with asyncio.timeout(self._settings.connect_seconds):
                connection = await transport.make(self._settings.address).connect()
        except (OSError, ProtocolError) as error:
            self._counters.connect_failures += 1
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

    @property
    def fault(self) -> str:
        """Returns why the sidecar takes no records and what to do, or an empty text.

        Any thread may ask.
        """
        error = self._pauses.error
        lost, full_at = self._counters.dropped.get("queue_full", 0), self._counters.full_at
        if error and not (self.connected and not self.queued):
            fault = f"takes no records of the decision log ({error}), and {self.queued} wait"
        elif lost and time.monotonic() - full_at < DROPPED_NEWS_SECONDS:
            fault = "takes records of the decision log too slowly"
        else:
            return ""
        address = self.settings.address
        dropped = f", {lost} were dropped since the start" if lost else ""
        return (
            f"the sidecar at {address.scheme}://{address.netloc}{address.path} {fault}{dropped}: it does "
            "not run, its disk is full, or its queue is full since a sink takes nothing; kubectl logs "
            "POD -c decisions says which"
        )

    async def drain(self, grace_seconds: float) -> None:
        """Waits for all acknowledgements, at most ``grace_seconds``, then ends :meth:`run`.

        To be called after the last answer. Remaining records are counted as dropped (``shutdown``).
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
            pass  # The remaining records are counted and logged.
        lost = self.outbox.clear()
        self._counters.drop("shutdown", lost)
        self._finished.set()
        self._wake.set()
        if lost:
            self._logger.warning(
                "the shutdown lost decisions: the sidecar did not acknowledge them",
                records=lost,
            )

    def _is_kept(self, record: dict[str, Any]) -> bool:
        """Applies rules and masks to a record; False if it is left out, which is counted."""
        reason = self._encoder.left_out(record)
        if reason:
            self._counters.offered += 1
            self._counters.drop(reason)
        return not reason

    def _encode_bounded(self, record: dict[str, Any]) -> bytes | None:
        """Returns a record's own part; None, and counted, beyond the limit of one record."""
        line = self._encoder.body(record)
        if line is None:
            self._sequence += 1  # the sidecar sees the gap
            self._counters.drop("too_large")
        return line

    def _add(self, body: bytes) -> bool:
        sequence = self._sequence + 1
        return self._queue(sequence, self._encoder.with_body(body, sequence))

    def _queue_rows(self, rows: bytes | memoryview, count: int, longest: int) -> None:
        """Queues rows, none longer than ``longest``, on one line if possible; else half by half."""
        try:
            if self._are_queued(rows, count, longest):
                return
        except Exception as bug:  # noqa: BLE001  # the log's boundary: the decisions are not affected
            if count == 1:  # it keeps no other from being recorded
                self._counters.drop("bug")
                self._logger.fault("bug: a decision was not recorded", bug)
                return
        each = separated(rows)
        for half in (each[: count // 2], each[count // 2 :]):
            self._queue_rows(b",".join(half), len(half), max(map(len, half)))

    def _are_queued(self, rows: bytes | memoryview, count: int, longest: int) -> bool:
        """Queues rows together, or counts a single one as dropped; False if they are too many."""
        noted = self.noted
        writer = self._encoder.rows
        line = writer.line(self._sequence + 1, noted, rows)
        size = len(line[0]) + len(rows) + len(line[2])
        each = writer.longest_record(noted, longest)
        fits = (
            each <= self._settings.max_record_bytes
            and size <= LINE_BYTES_MAX
            and size + count * (each - longest) <= EXPANDED_BYTES_MAX
        )
        if fits and self.outbox.has_room(size, count):
            self.outbox.add(self._sequence + count, *line, count=count)
            self._sequence += count
        elif count > 1:
            return False
        elif fits:
            self._queue(self._sequence + 1, b"".join(line))
        else:
            body = self._encode_bounded(writer.record(b"".join(line), noted.policies))
            if body is not None:
                self._add(body)
        return True

    def _queue(self, sequence: int, line: bytes) -> bool:
        """Queues the record of the next number if there is room."""
        self._sequence = sequence
        self.noted.limit = 0  # there may be less room than there was
        if self._closing or not self._has_room(len(line)):
            self._counters.drop("shutdown" if self._closing else "queue_full")
            return False
        self.outbox.add(sequence, line)
        if self._moment is None:
            self._wake_later()
        return True

    def _wake_later(self) -> None:
        """Schedules one wake-up for the records of a moment: one for each would cost more."""
        if self._loop is None:
            self._wake.set()  # nothing is sent before :meth:`run`
        else:
            self._moment = self._loop.call_later(self._settings.flush_seconds, self._wake.set)

    async def _converse(self, connection: SidecarConnection) -> None:
        """Uses one connection until it fails, the address changes, or all records are sent."""
        if self._settings.acknowledged:
            await self._greet(connection)
        self._counters.retried += self.outbox.rewind()
        if len(self.outbox):
            self._wake.set()  # the next offer may be far off, or refused for lack of room
        self.connected = True
        self._logger.info(
            "the decision log has a connection to its sidecar",
            address=self._settings.address.scheme,
        )
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
            raise ProtocolError("bad_frame", "the receiver's first frame is not a hello")
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
                    self._counters.sent += self.outbox.release()
                    self._room.set()
            if self._closing and not len(self.outbox):
                break
        if self._settings.acknowledged:  # plain ndjson is records and nothing else
            await connection.bye(Bye(self._sequence))

    async def _receive(self, connection: SidecarConnection) -> None:
        while True:
            match await connection.receive():
                case Ack(sequence):
                    self._answered_at = time.monotonic()
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
        self._counters.acknowledged += self.outbox.acknowledge(sequence)
        self._room.set()
        if self._closing:
            self._wake.set()

    async def _watch_silence(self) -> None:
        """Ends a connection whose receiver owes acknowledgements and has sent none for too long.

        It runs beside :meth:`_receive`: a timeout for each acknowledgement would cost more than
        reading it.
        """
        self._answered_at = time.monotonic()
        while True:
            silent = time.monotonic() - self._answered_at
            if silent < self._settings.acknowledge_seconds:
                await asyncio.sleep(self._settings.acknowledge_seconds - silent)
            elif self.outbox.in_flight:
                raise ConnectionAbortedError(f"no acknowledgement for {silent:.1f} seconds")
            else:
                self._answered_at = time.monotonic()

    async def _watch_address(self) -> None:
        await self._changed.wait()
        raise ConnectionAbortedError("the address changed")

    async def _watch_finish(self) -> None:
        """Limits the goodbye after the end to a second, even for a peer that does not read."""
        await self._finished.wait()
        await asyncio.sleep(GOODBYE_SECONDS)
        raise ConnectionAbortedError("the receiver did not take the goodbye")


def _names(prefix: str) -> Iterator[list[str]]:
    """Yields ids in batches: one at a time would take several times as long, between requests."""
    for first in itertools.count(1, NAMES):
        yield [f"{prefix}{number}" for number in range(first, first + NAMES)]


async def _wait(end: asyncio.Event, seconds: float) -> None:
    """Wait, but not beyond the end."""
    try:
        async with asyncio.timeout(seconds):
            await end.wait()
    except TimeoutError:
        return
