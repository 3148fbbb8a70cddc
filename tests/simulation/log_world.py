"""The decision log's world: replicas' exporters, a sidecar each, disks, links and sinks.

What holds: nothing that was acknowledged is lost; each sink gets a stream in order, without gaps;
what it gets twice, it gets after a crash, or where its own answer was lost; all that was offered is
accounted for; and once nothing fails any more, everything is delivered and all rests.
"""

import asyncio

from tests.simulation.ends import killed
from tests.simulation.log_checks import arrived, check
from tests.simulation.log_parts import LogParts, Pod
from webhook.decisions.sidecar.dead_letter import SUFFIX

PROMPT_SECONDS = 3.0
"""In which a record comes where nothing fails: 10 ms until it is sent, 20 ms and back on the way, a
few syncs of 2 ms, and for each of a few records and batches some 15 ms at the sink."""

MEND_SECONDS = 900.0
"""In which everything is delivered once nothing fails: beyond every back-off there is."""


class LogWorld(LogParts):
    """A world of the decision log; :meth:`main` is its director's."""

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
        if loop.random.random() < 0.3:
            await self._be_prompt()
        if loop.random.random() < 0.3:
            await self._end_in_order()
        if loop.random.random() < 0.5:
            await self._lose_power()
        check(self.ledger, self.receivers, self.disks)

    async def _offer(self) -> None:
        chance = self.loop.random
        pace = chance.choice([2.0, 20.0, 500.0])
        for _ in range(self.records):
            await asyncio.sleep(chance.expovariate(pace))
            self._decide(chance.choice(self.pods))

    def _decide(self, pod: Pod) -> None:
        """A server decides, if there is one: in its own context, as what it wakes is its own."""
        if pod.deciding is not None and pod.server is not None and not pod.server.dead:
            pod.server.context.run(pod.deciding.decide)

    async def _misfortune(self) -> None:
        chance, loop = self.loop.random, self.loop
        pod = chance.choice(self.pods)
        happening = chance.choice(
            [
                *("crash", "crash", "crash", "stop", "server", "reset", "silent", "hang"),
                *(
                    "partition",
                    "full",
                    "failing disk",
                    "sink down",
                    "sink forgets",
                    "poison",
                    "well",
                    "pod",
                ),
            ]
        )
        loop.notify("fate", f"{happening} {pod.name}")
        match happening:
            case "crash":
                await self.crash_sidecar(pod, power=chance.random() < 0.7)
                await asyncio.sleep(chance.expovariate(2.0))
                self.start_again(pod)
            case "stop":
                await self.stop_sidecar(pod)
                self.start_again(pod)
            case "server" if pod.server is not None and not pod.gone:
                if chance.random() < 0.4:
                    await self.end_server(pod)
                await killed(self.loop, pod.server)
                self.start_server(pod)
            case "pod" if self.shared and sum(not other.gone for other in self.pods) > 1:
                pod.gone = True
                if pod.server is not None:
                    await killed(self.loop, pod.server)
                await self.crash_sidecar(pod, power=False)
            case _:
                self._worsen(happening, pod)

    def _worsen(self, fault: str, pod: Pod) -> None:
        """Something gets worse, and stays so."""
        loop = self.loop
        chance = loop.random
        receiver = chance.choice(self.receivers)
        match fault:
            case "reset" | "silent" | "partition":
                self._break_links(fault, pod)
            case "hang":
                process = chance.choice([pod.server, pod.sidecar])
                if process is not None and not process.dead:
                    seconds = chance.choice([0.5, 15.0])
                    process.pause(seconds)
                    self.ledger.disturbances.append((loop.seconds, loop.seconds + seconds))
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

    def _break_links(self, fault: str, pod: Pod) -> None:
        one_way = fault == "silent" and self.loop.random.random() < 0.5
        if fault == "partition":
            self.network.unreachable.add(self.address(pod))
        for link, ends in list(self.network.links.items()):
            if fault == "reset":
                self.network.reset(link)
            elif fault == "silent" or any(end.process is pod.server for end in ends):
                self.network.go_silent(link, one_way=one_way)

    def _make_well(self) -> None:
        self.network.unreachable.clear()
        for pod in self.pods:
            pod.disk.foreign = 0
            pod.disk.failing = 0.0
        for receiver in self.receivers:
            receiver.failing = receiver.forgetful = receiver.poison = 0.0

    def _give_room(self) -> None:
        """Adds the room that dead letters take: they stay until somebody has read them."""
        for disk in self.disks:
            kept = [file for path, file in disk.names.items() if SUFFIX in path.name]
            disk.capacity += sum(len(file.data) for file in kept)

    async def _heal(self) -> None:
        self.loop.notify("fate", "all is well from now on")
        self._make_well()
        self._give_room()
        for pod in self.pods:
            self.start_again(pod)
            for process in (pod.server, pod.sidecar):
                if process is not None:
                    process.paused_until = min(process.paused_until, self.loop.now())

    # --- how it ends ---------------------------------------------------------------------------

    @property
    def _here(self) -> list[Pod]:
        return [pod for pod in self.pods if not pod.gone]

    async def _be_prompt(self) -> None:
        """Checks that records come at once after a minute without a fault, on open connections."""
        for pod in self._here:
            assert pod.deciding is not None
            while not pod.deciding.exporter.queued:  # rules leave some out
                self._decide(pod)
        await self._rest()
        await asyncio.sleep(60.0)
        for _ in range(self.loop.random.choice([1, 6])):
            self._decide(self.loop.random.choice(self._here))
            await asyncio.sleep(self.loop.random.expovariate(5.0))
        await asyncio.sleep(PROMPT_SECONDS)
        self._check_all_arrived("late")

    async def _end_in_order(self) -> None:
        """Servers that were well all their lives end, and then their sidecars."""
        for pod in self._here:
            await self.end_server(pod)
            self.start_server(pod)
        await self._rest()
        gaps = {pod.name: self._gaps(pod) for pod in self._here}
        for _ in range(self.loop.random.choice([1, 10, 100])):
            self._decide(self.loop.random.choice(self._here))
        for pod in self._here:
            assert pod.deciding is not None
            exporter = pod.deciding.exporter
            await self.end_server(pod)
            left = exporter.counters.dropped.get("shutdown", 0) + exporter.queued
            if left:
                self.loop.fail(f"{exporter.origin.process} ended with {left} records unsent")
            await asyncio.sleep(1.0)  # the goodbye is under way
            missed = exporter._sequence - len(self.ledger.queued[exporter.origin.process])
            if self._gaps(pod) - gaps[pod.name] != missed:
                self.loop.fail(
                    f"{missed} numbers of {exporter.origin.process} never came, the sidecar counts"
                    f" {self._gaps(pod) - gaps[pod.name]}"
                )
        for pod in self._here:
            await self.stop_sidecar(pod)
        self._check_all_arrived("left behind")

    def _gaps(self, pod: Pod) -> int:
        assert pod.running is not None
        return pod.running.streams.gaps

    def _check_all_arrived(self, how: str) -> None:
        """Checks that each sink has the records of servers that live or ended in order."""
        for receiver in self.receivers:
            there = arrived(receiver, self.disks)
            for pod in self._here:
                assert pod.deciding is not None
                name = pod.deciding.exporter.origin.process
                late = [n for n in sorted(self.ledger.queued[name]) if (name, n) not in there]
                if late and not self.ledger.dropped:
                    self.loop.fail(f"{receiver.name}: {name} {late} is {how}")

    async def _lose_power(self) -> None:
        """At rest everything is durable: nothing is sent again, whatever ends."""
        for pod in self._here:
            await self.crash_sidecar(pod, power=False)
        for disk in self.disks:
            disk.lose_power()
        before = [len(receiver.taken) for receiver in self.receivers]
        for pod in self._here:
            self.start_again(pod)
        await asyncio.sleep(2.0)
        if [len(receiver.taken) for receiver in self.receivers] != before:
            self.loop.fail("what was delivered, at rest, is sent again after the power's end")

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
                if pod.disk.has_queue(pod.queue):
                    return f"the queue of {pod.name} is not adopted"
                continue
            running = pod.running
            exporter = None if pod.deciding is None else pod.deciding.exporter
            if running is None or not running.ready:
                return f"the sidecar of {pod.name} is not ready"
            if exporter is None or exporter.queued:
                return f"the server of {pod.name} has records queued"
            for drain in running.queue.drains:
                if drain.lag:
                    return f"{drain.sink_name} of {pod.name} lags by {drain.lag}"
                if drain.counters.durable_offset != running.queue.log.end:
                    return f"the cursor of {drain.sink_name} of {pod.name} is not saved"
            if "adopted" in running.queues:
                return f"{pod.name} still adopts"
        return ""
