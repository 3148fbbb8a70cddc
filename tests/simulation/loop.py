"""The loop of a world: one thing at a time, by chance; time jumps to what is due next.

A world has processes. Each has one event loop, whose callbacks come in asyncio's own order, and
threads; which of them goes on next is the seed's choice, as the real one's is the system's. All
are asked of one asyncio loop, which knows a callback's process by its context.
"""

import asyncio
import contextvars
import hashlib
import heapq
import random
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from tests.simulation import doors
from tests.simulation.doors import Killed
from tests.simulation.process import PROCESS, Handle, Process, Task, TimerHandle
from tests.simulation.threads import Lane

STEPS_MAX = 400_000
"""More than any world needs: one that goes on beyond never rests."""


class ViolationError(Exception):
    """Something does not hold in a world."""


class Loop(asyncio.BaseEventLoop):
    """See the module."""

    def __init__(self, seed: int, *, follow: Callable[[str], object] | None = None) -> None:
        super().__init__()
        Task.begin()
        self.seed = seed
        self.random = random.Random(seed)
        self._chance = random.Random(seed + 1)  # of the order alone
        self.seconds = 0.0
        self._timers: list[tuple[float, int, asyncio.TimerHandle, Process]] = []
        self._timer_serial = 0
        self._ready_processes: list[Process] = []
        self._lanes: list[Lane] = []
        self._changed = False
        self._steps = 0
        self._follow = follow
        self.running: Lane | None = None
        self.has_threads = False
        """Whether what is run beside the loop takes a thread, and may wait there."""
        self.network: Any = None
        self._addresses: dict[Any, Any] = {}
        self.failures: list[str] = []
        self.errors: list[BaseException] = []
        self.story: deque[str] = deque(maxlen=400)
        self.callbacks = 0
        self._digest = hashlib.blake2b(digest_size=16)
        self.director = Process(self, "director")
        self.processes: list[Process] = [self.director]
        self._current = self.director
        self.set_task_factory(self._make_task)
        self.set_exception_handler(self._unhandled)

    # --- what a world says and finds -----------------------------------------------------------

    def notify(self, actor: str, text: str) -> None:
        """A line of the log that a person follows."""
        self.callbacks += 1
        line = f"{self.seconds:10.4f}  {actor:<16} {text}"
        self._digest.update(line.encode("utf-8", "replace"))
        self.story.append(line)
        if self._follow is not None:
            self._follow(line)

    def digest(self) -> str:
        """A number of everything that was told: the same each time."""
        return self._digest.hexdigest()[:16]

    def fail(self, problem: str, error: BaseException | None = None) -> None:
        """Something does not hold."""
        if problem not in self.failures:
            self.failures.append(problem)
            self.notify("!", problem)
        if error is not None:
            self.errors.append(error)

    def ended(self, code: int) -> None:
        """os._exit was called: by a bug, or by what is unwound after a kill."""
        process = self.running.process if self.running is not None else self._current
        if not process.dead:
            self.fail(f"{process.name} ended itself with {code}")
        raise Killed

    def _unhandled(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if self._current.dead or isinstance(error, Killed):
            return
        self.fail(f"{self._current.name}: {context.get('message')}: {error!r}", error)

    # --- time ----------------------------------------------------------------------------------

    def now(self) -> float:
        """Seconds since the world began."""
        return self.seconds

    def time(self) -> float:
        return doors.BOOTED + self.seconds

    def sleep(self, seconds: float) -> None:
        """Block the thread that runs; the loop's own thread is busy and goes on at once."""
        if self.running is not None:
            self.running.block(lambda: False, self.seconds + seconds)

    # --- what asyncio asks of a loop -----------------------------------------------------------

    def process_of(self, context: contextvars.Context | None = None) -> Process:
        """Returns the process of a context."""
        if context is None:
            return PROCESS.get(self.director)
        return context.get(PROCESS, self.director)

    def _make_task(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Any,
        context: contextvars.Context | None = None,
    ) -> Task:
        task = Task(coroutine, loop=loop, context=context)
        self.process_of(context).add_task(task)
        return task

    def call_soon(
        self,
        callback: Any,
        *arguments: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        if context is None:
            context = contextvars.copy_context()
        process = context.get(PROCESS, self.director)
        handle = Handle(callback, arguments, self, context)
        if process.dead:
            if process.unwinding is not None:
                process.unwinding.append(handle)
            return handle
        process.queue.append(handle)
        if not process.queued:
            process.queued = True
            self._ready_processes.append(process)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(
        self,
        delay: float,
        callback: Any,
        *arguments: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        when = doors.BOOTED + self.seconds + delay
        return self._call_at(when, callback, arguments, context)

    def call_at(
        self,
        when: float,
        callback: Any,
        *arguments: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        return self._call_at(when, callback, arguments, context)

    def _call_at(
        self,
        when: float,
        callback: Any,
        arguments: tuple[Any, ...],
        context: contextvars.Context | None,
    ) -> asyncio.TimerHandle:
        if context is None:
            context = contextvars.copy_context()
        handle = TimerHandle(callback, arguments, self, context)
        handle._when = when
        handle._scheduled = True
        self._timer_serial += 1
        process = context.get(PROCESS, self.director)
        heapq.heappush(self._timers, (when - doors.BOOTED, self._timer_serial, handle, process))
        return handle

    def run_in_executor(self, executor: Any, func: Any, *arguments: Any) -> Any:
        """A thread that nobody else waits for: runs at a later time, whole or in its own lane."""
        future = self.create_future()
        context = contextvars.copy_context()

        def settle(result: Any, error: Exception | None) -> None:
            if future.cancelled():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)

        def run() -> None:
            try:
                result = func(*arguments)
            except Exception as error:  # noqa: BLE001  # the caller's
                end(settle, None, error)
            else:
                end(settle, result, None)

        def end(settle: Callable[..., None], *how: Any) -> None:
            if self.has_threads:
                self.call_soon(settle, *how, context=context)
            else:
                settle(*how)

        def begin() -> None:
            if future.cancelled():
                return
            if self.has_threads:
                self.new_lane(Lane(self, self.process_of(context), run))
            else:
                run()

        self.call_later(self.random.expovariate(200.0), begin)
        return future

    async def create_unix_connection(
        self, protocol_factory: Any, path: Any = None, **options: Any
    ) -> Any:
        return await self.network.connect(str(path), protocol_factory)

    async def create_unix_server(
        self, protocol_factory: Any, path: Any = None, **options: Any
    ) -> Any:
        return self.network.listen(str(path), protocol_factory)

    async def sock_connect(self, sock: Any, address: Any) -> None:
        """Sends nothing: :meth:`create_connection` connects."""
        self._addresses[sock] = address[:2]

    async def create_connection(
        self, protocol_factory: Any, *arguments: Any, sock: Any = None, **options: Any
    ) -> Any:
        address = self._addresses.pop(sock)
        sock.close()
        return await self.network.connect(address, protocol_factory)

    def _asyncgen_firstiter_hook(self, agen: Any) -> None:
        """None is kept to be closed at the end: their tasks are unwound, and they with them."""

    def add_signal_handler(self, sig: int, callback: Any, *args: Any) -> None:
        raise NotImplementedError

    def _write_to_self(self) -> None:
        """Does nothing: no thread waits in a system call."""

    def _process_events(self, event_list: Any) -> None:
        """There is no selector."""

    # --- what happens next ---------------------------------------------------------------------

    def process(self, name: str) -> Process:
        """A new process."""
        found = Process(self, name)
        self.processes.append(found)
        return found

    def new_lane(self, lane: Lane) -> None:
        """A thread begins."""
        self._lanes.append(lane)
        self._changed = True

    def something_changed(self) -> None:
        """Threads that wait may have reason to go on."""
        self._changed = True

    def wait_until(self, ready: Callable[[], Any], timeout: float | None) -> None:
        """Block whoever runs; the loop's own thread lets the others go on meanwhile."""
        if ready():
            return
        if self.process_is_dead():
            raise Killed
        deadline = None if timeout is None else self.seconds + timeout
        if self.running is not None:
            self.running.block(ready, deadline)
            return
        while not ready() and (deadline is None or self.seconds < deadline):
            lane = self._choose_lane()
            if lane is not None:
                self._resume(lane)
                continue
            due = [other.deadline for other in self._lanes if other.deadline is not None]
            if deadline is not None:
                due.append(deadline)
            if not due:
                raise ViolationError("the loop's own thread waits for ever")
            self.seconds = max(self.seconds, min(due))
            self._changed = True

    def process_is_dead(self) -> bool:
        """Whether what runs now belongs to a process that has ended."""
        return (self.running.process if self.running is not None else self._current).dead

    def _choose_lane(self) -> Lane | None:
        if not self._lanes:
            return None
        now = self.seconds
        able = [
            lane
            for lane in self._lanes
            if lane.process.paused_until <= now
            and ((lane.deadline is not None and lane.deadline <= now) or lane.ready())
        ]
        if not able:
            self._changed = False
            return None
        return able[self._chance.randrange(len(able))] if len(able) > 1 else able[0]

    def _resume(self, lane: Lane) -> None:
        outer, self._current = self._current, lane.process
        lane.resume()
        self._current = outer
        if not lane.alive:
            self._lanes.remove(lane)

    def _run_once(self) -> None:
        timers, processes, chance = self._timers, self._ready_processes, self._chance.random
        while not self._stopping:
            self._steps += 1
            if self._steps > STEPS_MAX:
                raise ViolationError(
                    f"the world never rests: {STEPS_MAX} steps, {self.seconds:.0f} seconds"
                )
            if timers and timers[0][0] <= self.seconds:
                self._fire_timers()
            lane = self._choose_lane() if self._changed else None
            if processes and (lane is None or chance() < 0.5):
                index = int(chance() * len(processes))
                process = processes[index]
                if process.paused_until > self.seconds:
                    index = -1
                    for number, other in enumerate(processes):
                        if other.paused_until <= self.seconds:
                            index, process = number, other
                if index >= 0:
                    self._run_some(process, index)
                    continue
            if lane is not None:
                self._resume(lane)
                continue
            while timers and (timers[0][2]._cancelled or timers[0][3].dead):
                heapq.heappop(timers)
            if timers and not self._lanes and not processes:
                self.seconds = max(self.seconds, timers[0][0])
            else:
                self._advance()

    def _run_some(self, process: Process, index: int) -> None:
        """Runs a round of a process's callbacks, or a part of it."""
        queue = process.queue
        count = len(queue)
        if count > 1 and self._chance.random() < 0.3:
            count = 1
        self._current = process
        self.seconds += 1e-6  # everything takes a moment
        for _ in range(count):
            handle = queue.popleft()
            if not handle._cancelled:
                try:
                    handle._context.run(handle._callback, *handle._args)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:  # noqa: BLE001  # as a loop's: told, and it goes on
                    message = f"Exception in callback {handle._callback}"
                    self.call_exception_handler({"message": message, "exception": error})
            if process.dead:
                break
        self._current = self.director
        if not queue or process.dead:
            process.queued = False
            ready = self._ready_processes
            if index < len(ready) and ready[index] is process:
                del ready[index]
            elif process in ready:  # what ran has changed the list
                ready.remove(process)

    def _fire_timers(self) -> None:
        timers = self._timers
        while timers and timers[0][0] <= self.seconds:
            _, _, handle, process = heapq.heappop(timers)
            if not handle._cancelled and not process.dead:
                process.queue.append(handle)
                if not process.queued:
                    process.queued = True
                    self._ready_processes.append(process)

    def _advance(self) -> None:
        """Moves the time to the next deadline of threads, paused processes and timers."""
        due = [lane.deadline for lane in self._lanes if lane.deadline is not None]
        due += [max(lane.process.paused_until, 0.0) for lane in self._lanes]
        due += [process.paused_until for process in self._ready_processes]
        due = [when for when in due if when > self.seconds]
        if self._timers:
            due.append(self._timers[0][0])
        if not due:
            raise ViolationError("nothing will ever happen again")
        self.seconds = max(self.seconds, min(due))
        self._changed = True

    # --- ends ----------------------------------------------------------------------------------

    def kill(self, process: Process) -> None:
        """End a process at once, between two of its steps; call from a callback, not from a task.

        Nothing that it has under way reaches anybody any more; its coroutines and threads are
        unwound unseen.
        """
        if process.dead:
            return
        process.dead = True
        for item in list(process.open):
            item.cut()
        process.queue.clear()
        self._unwind(process)

    def _unwind(self, process: Process) -> None:
        outer, self._current = self._current, process
        for lane in [lane for lane in self._lanes if lane.process is process]:
            for _ in range(1000):
                if not lane.alive:
                    break
                lane.resume()
            self._lanes.remove(lane)
        queue = process.unwinding = deque()
        for _ in range(20):
            tasks = process.tasks()
            if not tasks:
                break
            for task in tasks:
                task.cancel()
            while queue:
                handle = queue.popleft()
                if not handle._cancelled:
                    handle._run()
        process.unwinding = None
        self._current = outer

    def end(self) -> None:
        """Unwind everything and close."""
        events._set_running_loop(self)
        for process in self.processes:
            if not process.dead and process is not self.director:
                self.kill(process)
        self.director.dead = True
        self._unwind(self.director)
        self._lanes.clear()
        self._timers.clear()
        events._set_running_loop(None)
        self.close()


def run(loop: Loop, main: Coroutine[Any, Any, Any]) -> None:
    """Run a world's director to its end; what does not hold is in ``loop.failures``."""
    doors.enter(loop)
    try:
        task = loop.director.spawn(main)
        task.add_done_callback(lambda _: loop.stop())
        loop.run_forever()
        task.result()
    except ViolationError as violation:
        loop.fail(str(violation))
    except asyncio.CancelledError as error:
        loop.fail("the director was cancelled", error)
    finally:
        loop.end()
        doors.enter(None)
