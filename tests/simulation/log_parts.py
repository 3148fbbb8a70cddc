"""The parts of the decision log's world, and how they begin and end."""

import asyncio
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from tests.simulation.disk import Disk
from tests.simulation.ends import killed
from tests.simulation.log_checks import Ledger
from tests.simulation.log_offers import Books, Server, settings_by_chance
from tests.simulation.loop import Loop
from tests.simulation.network import Network
from tests.simulation.process import Process
from tests.simulation.sinks import Receiver, WorldSink
from webhook import log as product_log
from webhook.decisions.exporter.encoding import Origin
from webhook.decisions.exporter.exporter import Exporter
from webhook.decisions.exporter.transport import Address
from webhook.decisions.sidecar.drain import DrainSettings
from webhook.decisions.sidecar.log import LogLimits
from webhook.decisions.sidecar.process import Sidecar
from webhook.decisions.sidecar.settings import ListenerSettings, SidecarSettings, SinkSettings

VOLUME = Path("/queues")
SOCKETS = Path("/tmp")  # UnixReceiver looks whether a socket lies there; none of ours ever does
RECORD_BYTES_MAX = 3000
"""No record of a world is longer."""

SERVER_GRACE_SECONDS = 5.0

SERVER_END_SECONDS = 12.0
"""The grace, a connection that is being tried (5 s), and the goodbye (1 s)."""


@dataclasses.dataclass
class Pod:
    """A replica's server and its sidecar."""

    name: str
    disk: Disk
    queue: Path
    deciding: Server | None = None
    server: Process | None = None
    sidecar: Process | None = None
    running: Sidecar | None = None
    starts: int = 0
    sidecar_starts: int = 0
    gone: bool = False


class LogParts:
    """Pods and what is behind them, by chance."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.network = Network(loop)
        chance = loop.random
        self.network.latency = chance.choice([0.0002, 0.001, 0.02])
        self.shared = chance.random() < 0.3
        """Whether all share a volume, where queues left behind are adopted."""
        capacity = 200_000 if self.shared else chance.choice([20_000, 200_000])
        first = Disk(loop, capacity)
        names = [f"pod-{number}" for number in range(chance.choice([1, 1, 2]) + self.shared)]
        self.pods = [
            Pod(name, first if self.shared else Disk(loop, capacity), VOLUME / name)
            for name in names
        ]
        self.disks = list(dict.fromkeys(pod.disk for pod in self.pods))
        self.ledger = Ledger(loop, Books())
        self.receivers = [
            Receiver(self.loop, f"sink-{number}", self.ledger.books)
            for number in range(chance.choice([1, 1, 2]))
        ]
        self.drop_oldest = not self.shared and chance.random() < 0.1
        self.segment_bytes = chance.choice([400, 1500, 6000])
        self.max_records = chance.choice([5, 50, 1000])
        self.records = chance.choice([10, 40, 120])

    def logger(self, process: Process) -> product_log.Logger:
        """The product's log, into the story."""

        def write(line: bytes) -> None:
            if not process.dead:
                event = orjson.loads(line)
                fields = {
                    key: value
                    for key, value in event.items()
                    if key not in {"ts", "level", "logger", "msg", "stacktrace"}
                }
                self.loop.notify(process.name, f"{event['msg']} {fields or ''}")
                if "stacktrace" in event and not event["error"].startswith("OSError"):
                    self.loop.fail(f"{process.name}: {event['msg']} {fields}")
                if event["msg"] == "records were lost":
                    if not self.drop_oldest:
                        self.loop.fail(f"{process.name}: {event['msg']} {fields}")
                    lost_count = event["dropped"] + event["corrupt"]
                    self.ledger.dropped[event["sink"], process.name] = lost_count

        return product_log.Log(write).logger("log")

    def start_sidecar(self, pod: Pod) -> None:
        """A sidecar's process begins."""
        pod.sidecar_starts += 1
        incarnation = f"{pod.name}/{pod.sidecar_starts}"
        process = pod.sidecar = self.loop.process(f"sidecar {incarnation}")
        chance = self.loop.random
        sinks = tuple(
            SinkSettings(
                DrainSettings(
                    receiver.name,
                    max_records=chance.choice([1, 4, 64]),
                    backoff_max_seconds=5.0,
                ),
                self._make_sink(receiver, process, incarnation),
            )
            for receiver in self.receivers
        )
        settings = SidecarSettings(
            listeners=(ListenerSettings("unix", self.address(pod)),),
            directory=pod.queue,
            limits=LogLimits(
                segment_bytes=self.segment_bytes,
                max_bytes=4 * max(self.segment_bytes, RECORD_BYTES_MAX),
                min_free_bytes=chance.choice([1000, 2000]),  # a cursor must find room, always,
                drop_oldest=self.drop_oldest,
            ),
            sinks=sinks,
            grace_seconds=20.0,
            adopt_after_seconds=5.0 if self.shared else None,
        )

        mount = pod.disk.mount(process)

        async def run() -> None:
            pod.running = Sidecar(settings, self.logger(process), mount)
            await pod.running.run()
            self.loop.notify(process.name, "has ended")

        process.spawn(run())

    def _make_sink(
        self, receiver: Receiver, process: Process, incarnation: str
    ) -> Callable[..., WorldSink]:
        # An adopted queue's drain is another's than the sidecar's own.
        return lambda origin, _logger: WorldSink(
            receiver, process, f"{incarnation}:{origin.partition('@')[2]}"
        )

    def start_server(self, pod: Pod) -> None:
        """A server's process begins: an exporter that is offered records."""
        pod.starts += 1
        process = pod.server = self.loop.process(f"server {pod.name}/{pod.starts}")
        name = f"{pod.name}-{pod.starts}"
        settings = settings_by_chance(
            self.loop,
            address=Address("unix", "", self.address(pod)),
            max_records=self.max_records,
            flush_seconds=0.01,
            acknowledge_seconds=10.0,
            backoff_max_seconds=5.0,
        )

        async def run() -> None:
            exporter = Exporter(
                settings,
                Origin(pod.name, pod.name, "waddle", "node", name),
                self.logger(process),
            )
            self.ledger.exporters.append(exporter)
            self._watch_acknowledgements(exporter)
            pod.deciding = Server(self.loop, exporter, self.ledger.books)
            await exporter.run()
            self.loop.notify(process.name, "has ended")

        process.spawn(run())

    def _watch_acknowledgements(self, exporter: Exporter) -> None:
        """Note what an exporter was told, before it looks at it itself."""
        name, outbox = exporter.origin.process, exporter.outbox
        acknowledge = outbox.acknowledge

        def noted(sequence: int) -> int:
            acknowledged = self.ledger.acknowledged
            acknowledged[name] = max(acknowledged.get(name, 0), sequence)
            return acknowledge(sequence)

        add, queued = outbox.add, self.ledger.queued.setdefault(name, set())

        def added(sequence: int, *parts: bytes | memoryview, count: int = 1) -> None:
            queued.update(range(sequence - count + 1, sequence + 1))
            add(sequence, *parts, count=count)

        # An Outbox has slots: it is asked through a stand-in that notes and hands on.
        exporter.outbox = _Noting(outbox, noted, added)  # type: ignore[assignment]

    async def crash_sidecar(self, pod: Pod, *, power: bool) -> None:
        process = pod.sidecar
        if process is None or process.dead:
            return
        self._note_crash(pod)
        await killed(self.loop, process)
        if power and not self.shared:
            pod.disk.lose_power()
        elif power:
            for other in self.pods:
                if other is not pod and other.sidecar is not None and not other.sidecar.dead:
                    self._note_crash(other)
                    await killed(self.loop, other.sidecar)
            pod.disk.lose_power()
            for other in self.pods:
                if other is not pod:
                    self.start_again(other)

    def _note_crash(self, pod: Pod) -> None:
        incarnation = f"{pod.name}/{pod.sidecar_starts}"
        running = pod.running
        if running is not None and hasattr(running, "queue"):
            for queue in running.queues.values():
                name = queue.log.directory.name
                crashed = self.ledger.crashed.setdefault(name, {})
                crashed.setdefault(f"{incarnation}:{name}", self.loop.seconds)

    async def stop_sidecar(self, pod: Pod) -> None:
        """Told to stop, and waited for as the kubelet does, 30 seconds."""
        process, running = pod.sidecar, pod.running
        if process is None or process.dead or running is None:
            return
        failures = len(pod.disk.failures)
        process.context.run(running.stop)
        try:
            async with asyncio.timeout(30.0):
                while process.tasks():  # noqa: ASYNC110  # looks on, as a kubelet does
                    await asyncio.sleep(0.05)
        except TimeoutError:
            self._note_crash(pod)
        if len(pod.disk.failures) != failures or self.loop.seconds < process.paused_until:
            self._note_crash(pod)  # its cursor may not have been written
        await killed(self.loop, process)

    async def end_server(self, pod: Pod) -> None:
        """Told to end, as the application ends it: behind its last answer."""
        process, deciding = pod.server, pod.deciding
        if process is None or process.dead or deciding is None:
            return
        paused = max(process.paused_until - self.loop.seconds, 0.0)
        process.spawn(deciding.exporter.drain(SERVER_GRACE_SECONDS))
        try:
            async with asyncio.timeout(SERVER_END_SECONDS + paused):
                while process.tasks():  # noqa: ASYNC110  # looks on, as a kubelet does
                    await asyncio.sleep(0.05)
        except TimeoutError:
            self.loop.fail(f"{process.name} did not end in {SERVER_END_SECONDS:.0f} seconds")
        await killed(self.loop, process)

    def start_again(self, pod: Pod) -> None:
        if not pod.gone and (pod.sidecar is None or pod.sidecar.dead):
            self.start_sidecar(pod)

    def address(self, pod: Pod) -> str:
        return str(SOCKETS / f"{pod.name}.sock")


class _Noting:
    """An outbox whose acknowledgements are noted."""

    def __init__(
        self,
        outbox: Any,
        acknowledge: Callable[[int], int],
        add: Callable[..., None],
    ) -> None:
        self.__dict__["_outbox"] = outbox
        self.__dict__["acknowledge"] = acknowledge
        self.__dict__["add"] = add

    def __getattr__(self, name: str) -> Any:
        return getattr(self._outbox, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._outbox, name, value)

    def __len__(self) -> int:
        return len(self._outbox)
