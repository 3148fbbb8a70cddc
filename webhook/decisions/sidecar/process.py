"""The sidecar as a process: parts put together, started and stopped in order."""

from __future__ import annotations

import asyncio
import datetime as dt
import errno
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from webhook.backoff import Backoff
from webhook.decisions.sidecar.adoption import Adopter
from webhook.decisions.sidecar.disk import Disk, Lock, OSDisk
from webhook.decisions.sidecar.intake import Intake, load_owners
from webhook.decisions.sidecar.metrics import SidecarCollector, render
from webhook.decisions.sidecar.queue import Queue
from webhook.decisions.sidecar.streams import Streams
from webhook.decisions.sidecar.unix import UnixReceiver

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.decisions.sidecar.settings import ListenerSettings, SidecarSettings
    from webhook.log import Logger

T = TypeVar("T")

POLL_SECONDS: Final = 0.05
"""Between two looks whether the drains have ended, while shutting down."""

OPEN_SECONDS_MIN: Final = 0.2
OPEN_SECONDS_MAX: Final = 10.0
"""Between two attempts to open the queue on a disk that fails."""

PASSING: Final = frozenset({errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ESTALE})
"""The errors of a disk that may work again; any other is a matter of configuration."""

ADOPT_POLL_SECONDS: Final = 1.0
LOCK_POLL_SECONDS: Final = 0.5


HEAD_BYTES_MAX: Final = 8192
READ_SECONDS: Final = 5.0
CONNECTIONS_MAX: Final = 64
"""The most connections; beyond it the oldest is closed. Scrapes and probes are answered at once."""


async def serve(
    address: str, routes: Mapping[str, Callable[[], tuple[int, bytes]]]
) -> asyncio.Server:
    """Answers GET for each route with a status and a text; ``address`` is ``host:port``."""
    host, _, port = address.rpartition(":")
    open_: dict[asyncio.StreamWriter, None] = {}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(open_) >= CONNECTIONS_MAX:
            oldest = next(iter(open_))
            del open_[oldest]
            oldest.transport.abort()
        open_[writer] = None
        try:
            async with asyncio.timeout(READ_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(_respond(head, routes))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return  # the client has disconnected, or sent no request
        finally:
            open_.pop(writer, None)
            writer.close()

    return await asyncio.start_server(
        answer, host.strip("[]") or None, int(port), limit=HEAD_BYTES_MAX
    )


def _respond(head: bytes, routes: Mapping[str, Callable[[], tuple[int, bytes]]]) -> bytes:
    method, _, rest = head.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0].decode("latin-1")
    if method not in {b"GET", b"HEAD"}:
        status, body = 405, b"method not allowed\n"
    elif path not in routes:
        status, body = 404, b"not found\n"
    else:
        status, body = routes[path]()
    reason = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}
    lines = (
        f"HTTP/1.1 {status} {reason[status]}",
        "Content-Type: text/plain; version=0.0.4; charset=utf-8",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    text = "\r\n".join(lines).encode() + b"\r\n\r\n"
    return text if method == b"HEAD" else text + body


class Receiver(Protocol):
    """A transport's receiving end."""

    connections: set[object]
    rejected: int

    async def start(self) -> None:
        """Listen; raises :class:`OSError`."""

    def stop_listening(self) -> None:
        """Accepts no more records."""

    async def close(self) -> None:
        """Acknowledges durable records and closes every connection."""


class Sidecar:
    """One sidecar; :meth:`run` returns after a stop is requested and done."""

    queue: Queue
    intake: Intake
    streams: Streams

    def __init__(self, settings: SidecarSettings, logger: Logger, disk: Disk | None = None) -> None:
        self._settings = settings
        self._logger = logger
        self._disk: Disk = OSDisk() if disk is None else disk
        self._receivers: list[Receiver] = []
        self._adopter: Adopter | None = None
        self._adoption_failures = 0
        self._stop = asyncio.Event()
        self.ready = False

    @property
    def queues(self) -> dict[str, Queue]:
        """The queues being drained."""
        adopted = None if self._adopter is None else self._adopter.queue
        return {"own": self.queue} | ({} if adopted is None else {"adopted": adopted})

    @property
    def adopted_before(self) -> Mapping[tuple[str, str], int]:
        """The numbers of records of former adopted queues, by sink and counter."""
        return {} if self._adopter is None else self._adopter.before

    @property
    def connections(self) -> int:
        """Senders connected now."""
        return sum(len(receiver.connections) for receiver in self._receivers)

    @property
    def rejected(self) -> int:
        """Lines and connections that were no protocol of ours."""
        return sum(receiver.rejected for receiver in self._receivers)

    @property
    def adopted(self) -> int:
        """The number of other Pods' queues drained so far."""
        return 0 if self._adopter is None else self._adopter.adopted

    @property
    def adoption_failures(self) -> int:
        """Attempts at that which failed."""
        return self._adoption_failures + (0 if self._adopter is None else self._adopter.failures)

    def stop(self) -> None:
        """Begins to shut down; call on the event loop."""
        self._stop.set()

    async def run(self) -> None:
        """Receives and drains until stopped; raises :class:`OSError` if it cannot start."""
        settings = self._settings
        lock = await self._own_directory()
        if lock is None:
            return
        queue = await self._opened(
            lambda: Queue(
                self._disk, settings.directory, settings.limits, settings.sinks, self._logger
            )
        )
        if queue is None:
            lock.release()
            return
        owners = await self._opened(lambda: load_owners(self._disk, settings.directory))
        if owners is None:
            queue.log.close()
            lock.release()
            return
        self.queue = queue
        self.streams = Streams()
        self.streams.restore(self.queue.log.marks, owners)
        self.intake = Intake(self.queue.log, self.streams, self._logger)
        self.intake.start()
        self.queue.start()
        web = await self._serve_metrics()
        for listener in settings.listeners:
            receiver = self._receiver(listener)
            await receiver.start()
            self._receivers.append(receiver)
        self.ready = True
        self._logger.info("sidecar ready", records=self.queue.log.end - self.queue.log.first)
        await self._until_stopped()
        self.ready = False
        await self._shut_down()
        if web is not None:
            web.close()
        lock.release()

    async def _own_directory(self) -> Lock | None:
        """Locks the queue's directory; waits while another sidecar drains it."""
        directory = self._settings.directory
        waited = False
        while not self._stop.is_set():
            self._disk.make_directory(directory)
            lock = self._disk.lock(directory)
            if lock is not None:
                return lock
            if not waited:
                self._logger.warning(
                    "another sidecar uses the queue; waiting for it to end",
                    directory=str(directory),
                )
                waited = True
            await self._sleep(LOCK_POLL_SECONDS)
        return None

    async def _opened(self, opening: Callable[[], T]) -> T | None:
        """Opens a part of the queue; waits while the disk is full or fails.

        None if stopped meanwhile.

        Without the wait the process would end, and the kubelet would wait up to five minutes before
        each restart.
        """
        backoff = Backoff(OPEN_SECONDS_MIN, OPEN_SECONDS_MAX)
        while not self._stop.is_set():
            try:
                return opening()
            except OSError as error:
                if error.errno not in PASSING:
                    raise
                seconds = backoff.next_seconds()
                self._logger.warning(
                    "the queue cannot be opened; trying again",
                    directory=str(self._settings.directory),
                    error=str(error),
                    retry_seconds=round(seconds, 3),
                )
                await self._sleep(seconds)
        return None

    async def _serve_metrics(self) -> asyncio.Server | None:
        if not self._settings.metrics_address:
            return None
        collector = SidecarCollector(self, lambda: dt.datetime.now(dt.UTC))
        return await serve(
            self._settings.metrics_address,
            {
                "/metrics": lambda: (200, render(collector)),
                "/healthz": lambda: (200, b"ok\n"),
                "/readyz": lambda: (200, b"ok\n") if self.ready else (503, b"not ready\n"),
            },
        )

    def _receiver(self, listener: ListenerSettings) -> Receiver:
        if listener.scheme == "unix":
            return UnixReceiver(Path(listener.address), self.intake, self._logger)
        from webhook.decisions.sidecar.grpc import GRPCReceiver  # noqa: PLC0415  # costs 14 MiB

        return GRPCReceiver(listener, self.intake, self._logger)

    async def _until_stopped(self) -> None:
        if self._settings.adopt_after_seconds is None:
            await self._stop.wait()
            return
        self._adopter = Adopter(self._disk, self._settings, self._logger)
        while not self._stop.is_set():
            try:
                self._adopter.step()
            except OSError as error:
                self._adoption_failures += 1
                self._logger.warning(
                    "another sidecar's queue could not be taken over", error=str(error)
                )
            await self._sleep(ADOPT_POLL_SECONDS)

    async def _sleep(self, seconds: float) -> None:
        """Sleeps, until a stop at the latest."""
        try:
            async with asyncio.timeout(seconds):
                await self._stop.wait()
        except TimeoutError:
            return

    async def _shut_down(self) -> None:
        """Receives no more, commits and acknowledges pending records, drains until the deadline."""
        try:
            async with asyncio.timeout(self._settings.grace_seconds):
                for receiver in self._receivers:
                    receiver.stop_listening()
                await self.intake.close()
                for receiver in self._receivers:
                    await receiver.close()
                self.queue.finish()
                while not self.queue.finished:  # noqa: ASYNC110  # threads set no asyncio.Event
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            self._logger.warning(
                "the grace period is over: undelivered records stay in the queue",
                queued=[drain.lag for drain in self.queue.drains],
            )
        self.intake.abandon()
        if self._adopter is not None:
            self._adopter.stop()
        self.queue.stop()
        self._logger.info("sidecar stopped")


async def run_sidecar(settings: SidecarSettings, logger: Logger, disk: Disk | None = None) -> None:
    """Runs a sidecar until SIGTERM or SIGINT."""
    sidecar = Sidecar(settings, logger, disk)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, sidecar.stop)
    await sidecar.run()
