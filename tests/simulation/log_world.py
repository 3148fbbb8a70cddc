"""The decision log's world: replicas' exporters, a sidecar each, disks, links and sinks.

What holds: nothing that was acknowledged is lost; each sink gets a stream in order, without gaps;
what it gets twice, it gets after a crash, or where its own answer was lost; all that was offered is
accounted for; and once nothing fails any more, everything is delivered and all rests.
"""

import asyncio
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from tests.simulation.disk import Disk
from tests.simulation.ends import killed
from tests.simulation.loop import Loop
from tests.simulation.network import Network
from tests.simulation.process import Process
from tests.simulation.sinks import Receiver, WorldSink
from webhook import log as product_log
from webhook.decisions.exporter.admission import NO_POLICIES
from webhook.decisions.exporter.exporter import Exporter
from webhook.decisions.exporter.origin import Origin
from webhook.decisions.exporter.settings import ExporterSettings
from webhook.decisions.exporter.transport import Address
from webhook.decisions.sidecar.drain import DrainSettings
from webhook.decisions.sidecar.log import LogLimits
from webhook.decisions.sidecar.process import Sidecar
from webhook.decisions.sidecar.settings import ListenerSettings, SidecarSettings, SinkSettings
from webhook.decisions.wire.rows import NAMES

VOLUME = Path("/queues")
SOCKETS = Path("/tmp")  # UnixReceiver looks whether a socket lies there; none of ours ever does
MEND_SECONDS = 900.0
"""In which everything is delivered once nothing fails: beyond every back-off there is."""


@dataclasses.dataclass
class Pod:
    """A replica's server and its sidecar."""

    name: str
    disk: Disk
    queue: Path
    exporter: Exporter | None = None
    server: Process | None = None
    sidecar: Process | None = None
    running: Sidecar | None = None
    starts: int = 0
    sidecar_starts: int = 0
    gone: bool = False


class LogWorld:
    """One world; :meth:`main` is its director's."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.network = Network(loop)
        chance = loop.random
        self.network.latency = chance.choice([0.0002, 0.001, 0.02])
        self.shared = chance.random() < 0.3
        """One volume for all, where queues left behind are adopted."""
        capacity = 200_000 if self.shared else chance.choice([20_000, 200_000])
        first = Disk(loop, capacity)
        names = [f"pod-{number}" for number in range(chance.choice([1, 1, 2]) + self.shared)]
        self.pods = [
            Pod(name, first if self.shared else Disk(loop, capacity), VOLUME / name)
            for name in names
        ]
        self.receivers = [
            Receiver(self.loop, f"sink-{number}") for number in range(chance.choice([1, 1, 2]))
        ]
        self.segment_bytes = chance.choice([400, 1500, 6000])
        self.max_records = chance.choice([5, 50, 1000])
        self.records = chance.choice([10, 40, 120])
        self.queued: dict[str, set[int]] = {}
        """By process of an exporter: what it took."""
        self.acknowledged: dict[str, int] = {}
        self.exporters: list[Exporter] = []
        self.crashed: dict[str, list[str]] = {}
        """By queue: incarnations that ended by a crash, or whose disk failed."""
        self.healed = False

    # --- parts ---------------------------------------------------------------------------------

    def logger(self, process: Process) -> product_log.Logger:
        """The product's log, into the story."""

        def write(line: bytes) -> None:
            if not process.dead:
                event = orjson.loads(line)
                fields = {
                    key: value
                    for key, value in event.items()
                    if key not in {"ts", "level", "logger", "msg"}
                }
                self.loop.tell(process.name, f"{event['msg']} {fields or ''}")

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
            listeners=(ListenerSettings("unix", str(SOCKETS / f"{pod.name}.sock")),),
            directory=pod.queue,
            limits=LogLimits(
                segment_bytes=self.segment_bytes,
                max_bytes=max(4 * self.segment_bytes, 4096),
                min_free_bytes=chance.choice([1000, 2000]),  # a cursor must find room, always,
            ),
            sinks=sinks,
            grace_seconds=20.0,
            adopt_after_seconds=5.0 if self.shared else None,
        )

        async def run() -> None:
            pod.running = Sidecar(settings, self.logger(process), pod.disk.mount(process))
            await pod.running.run()
            self.loop.tell(process.name, "has ended")

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
        settings = ExporterSettings(
            Address("unix", "", str(SOCKETS / f"{pod.name}.sock")),
            max_records=self.max_records,
            flush_seconds=0.01,
            acknowledge_seconds=10.0,
            backoff_max_seconds=5.0,
        )

        async def run() -> None:
            exporter = pod.exporter = Exporter(
                settings,
                Origin(pod.name, pod.name, "waddle", "node", name),
                self.logger(process),
            )
            self.exporters.append(exporter)
            self._watch_acknowledgements(exporter)
            await exporter.run()

        process.spawn(run())

    def _watch_acknowledgements(self, exporter: Exporter) -> None:
        """Note what an exporter was told, before it looks at it itself."""
        name, outbox = exporter.origin.process, exporter.outbox
        acknowledge = outbox.acknowledge

        def noted(sequence: int) -> int:
            self.acknowledged[name] = max(self.acknowledged.get(name, 0), sequence)
            return acknowledge(sequence)

        add, queued = outbox.add, self.queued.setdefault(name, set())

        def added(sequence: int, *parts: bytes | memoryview, count: int = 1) -> None:
            queued.update(range(sequence - count + 1, sequence + 1))
            add(sequence, *parts, count=count)

        # An Outbox has slots: it is asked through a stand-in that notes and hands on.
        exporter.outbox = _Noting(outbox, noted, added)  # type: ignore[assignment]

    # --- what happens --------------------------------------------------------------------------

    async def main(self) -> None:
        """The whole story."""
        loop = self.loop
        for pod in self.pods:
            self.start_sidecar(pod)
            self.start_server(pod)
        offering = loop.director.spawn(self._offer())
        for _ in range(loop.random.choice([0, 2, 6, 12])):
            await asyncio.sleep(loop.random.expovariate(1.5))
            await self._misfortune()
        await offering
        await self._heal()
        await self._rest()
        self.check()

    async def _offer(self) -> None:
        chance = self.loop.random
        pace = chance.choice([2.0, 20.0, 500.0])
        for _ in range(self.records):
            await asyncio.sleep(chance.expovariate(pace))
            pod = chance.choice(self.pods)
            exporter = pod.exporter
            if exporter is None or pod.server is None or pod.server.dead:
                continue
            text = "x" * chance.choice([1, 60, 300])
            if chance.random() < 0.7:  # most are admissions, which come in rows
                # In the server's own context: what it wakes is its own.
                pod.server.context.run(self._decide, exporter, text)
            else:
                body = {"eventType": "decision", "id": exporter.decision_id(), "text": text}
                pod.server.context.run(exporter.offer, body)

    def _decide(self, exporter: Exporter, text: str) -> None:
        """What a recorder does with a decision."""
        noted = exporter.noted
        if noted.total >= noted.limit:
            if exporter.refuse():
                return
            exporter.open_rows(NO_POLICIES)
        noted.write(orjson.dumps((1.0, 1.25, 1.5, None, exporter.decision_id(), text, *NAMES[2:])))
        noted.write(b",")
        noted.total += 1

    async def _misfortune(self) -> None:
        chance, loop = self.loop.random, self.loop
        pod = chance.choice(self.pods)
        happening = chance.choice(
            [
                *("crash", "crash", "crash", "stop", "server", "reset", "silent", "hang"),
                *("full", "failing disk", "sink down", "sink forgets", "poison", "well", "pod"),
            ]
        )
        loop.tell("fate", f"{happening} {pod.name}")
        match happening:
            case "crash":
                await self._crash_sidecar(pod, power=chance.random() < 0.7)
                await asyncio.sleep(chance.expovariate(2.0))
                self._start_again(pod)
            case "stop":
                await self._stop_sidecar(pod)
                self._start_again(pod)
            case "server" if pod.server is not None and not pod.gone:
                await killed(self.loop, pod.server)
                self.start_server(pod)
            case "pod" if self.shared and sum(not other.gone for other in self.pods) > 1:
                pod.gone = True
                if pod.server is not None:
                    await killed(self.loop, pod.server)
                await self._crash_sidecar(pod, power=False)
            case _:
                self._spoil(happening, pod)

    def _spoil(self, what: str, pod: Pod) -> None:
        """Something gets worse, and stays so."""
        chance = self.loop.random
        receiver = chance.choice(self.receivers)
        match what:
            case "reset" | "silent":
                for link in list(self.network.links):
                    (self.network.reset if what == "reset" else self.network.go_silent)(link)
            case "hang":
                process = chance.choice([pod.server, pod.sidecar])
                if process is not None and not process.dead:
                    process.pause(chance.choice([0.5, 15.0]))
            case "full":
                pod.disk.foreign = max(0, pod.disk.capacity - chance.choice([0, 100, 1000]))
            case "failing disk":
                pod.disk.failing = chance.choice([0.05, 0.5])
            case "sink down":
                receiver.failing = chance.choice([0.3, 1.0])
            case "sink forgets":
                receiver.forgetful = 0.2
            case "poison":
                receiver.poison = 0.1
            case _:
                self._make_well()

    def _start_again(self, pod: Pod) -> None:
        if not pod.gone and (pod.sidecar is None or pod.sidecar.dead):
            self.start_sidecar(pod)

    async def _crash_sidecar(self, pod: Pod, *, power: bool) -> None:
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
                    self._start_again(other)

    def _note_crash(self, pod: Pod) -> None:
        incarnation = f"{pod.name}/{pod.sidecar_starts}"
        running = pod.running
        if running is not None and hasattr(running, "queue"):
            for queue in running.queues.values():
                name = queue.log.directory.name
                self.crashed.setdefault(name, []).append(f"{incarnation}:{name}")

    async def _stop_sidecar(self, pod: Pod) -> None:
        """Told to stop, and waited for as the kubelet does, 30 seconds."""
        process, running = pod.sidecar, pod.running
        if process is None or process.dead or running is None:
            return
        failures = pod.disk.failures
        process.context.run(running.stop)
        try:
            async with asyncio.timeout(30.0):
                while process.tasks():  # noqa: ASYNC110  # looks on, as a kubelet does
                    await asyncio.sleep(0.05)
        except TimeoutError:
            self._note_crash(pod)
        if pod.disk.failures != failures or self.loop.seconds < process.paused_until:
            self._note_crash(pod)  # its cursor may not have been written
        await killed(self.loop, process)

    def _make_well(self) -> None:
        for pod in self.pods:
            pod.disk.foreign = 0
            pod.disk.failing = 0.0
        for receiver in self.receivers:
            receiver.failing = receiver.forgetful = receiver.poison = 0.0

    async def _heal(self) -> None:
        self.loop.tell("fate", "all is well from now on")
        self._make_well()
        for pod in self.pods:
            self._start_again(pod)
            for process in (pod.server, pod.sidecar):
                if process is not None:
                    process.paused_until = min(process.paused_until, self.loop.now())

    async def _rest(self) -> None:
        """Wait until everything is delivered."""
        try:
            async with asyncio.timeout(MEND_SECONDS):
                while why := self._unsettled():  # noqa: ASYNC110  # looks on
                    await asyncio.sleep(0.5)
        except TimeoutError:
            self.loop.fail(f"nothing fails for {MEND_SECONDS:.0f} seconds, and still: {why}")
        await asyncio.sleep(2.0)

    def _unsettled(self) -> str:
        for pod in self.pods:
            if pod.gone:
                if pod.disk.mount(self.loop.director).is_queue(pod.queue):
                    return f"the queue of {pod.name} is not adopted"
                continue
            running, exporter = pod.running, pod.exporter
            if running is None or not running.ready:
                return f"the sidecar of {pod.name} is not ready"
            if exporter is None or exporter.queued:
                return f"the server of {pod.name} has records queued"
            for drain in running.queue.drains:
                if drain.lag:
                    return f"{drain.sink_name} of {pod.name} lags by {drain.lag}"
            if "adopted" in running.queues:
                return f"{pod.name} still adopts"
        return ""

    # --- what holds ----------------------------------------------------------------------------

    def check(self) -> None:
        """Everything that must hold at the end."""
        self._check_accounts()
        for receiver in self.receivers:
            self._check_losses(receiver)
            self._check_order(receiver)

    def _check_accounts(self) -> None:
        for exporter in self.exporters:
            counters = exporter.counters
            sums = counters.acknowledged + sum(counters.dropped.values()) + exporter.queued
            if counters.offered != sums:
                self.loop.fail(
                    f"{exporter.origin.process}: offered {counters.offered}, accounted for {sums}"
                )

    def _check_losses(self, receiver: Receiver) -> None:
        arrived = {key[1:] for key in receiver.taken} | receiver.refused
        for name, until in self.acknowledged.items():
            lost = [
                number
                for number in sorted(self.queued.get(name, ()))
                if number <= until and (name, number) not in arrived
            ]
            if lost:
                self.loop.fail(f"{receiver.name} never got {name} {lost}, acknowledged to {until}")
            invented = [
                number
                for _, process, number in receiver.taken
                if process == name and number not in self.queued.get(name, ())
            ]
            if invented:
                self.loop.fail(f"{receiver.name} got {invented}, which {name} never queued")

    def _check_order(self, receiver: Receiver) -> None:
        last: dict[tuple[str, str], int] = {}
        first_seen: dict[tuple[str, int], str] = {}
        for incarnation, name, number in receiver.taken:
            key = (name, number)
            before = last.get((incarnation, name), 0)
            if number <= before and key not in receiver.unanswered:
                self.loop.fail(f"{receiver.name} got {name} {number} after {before}")
            last[incarnation, name] = max(number, before)
            earlier = first_seen.setdefault(key, incarnation)
            queue = incarnation.partition(":")[2]
            if (
                earlier != incarnation
                and key not in receiver.unanswered
                and earlier not in self.crashed.get(queue, ())
            ):
                self.loop.fail(
                    f"{receiver.name} got {name} {number} twice, from {earlier} and"
                    f" {incarnation}, and nothing crashed"
                )


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
