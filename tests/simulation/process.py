"""Processes of a world, with their tasks and callbacks."""

import asyncio
import contextvars
from collections import deque
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.simulation.loop import Loop

PROCESS: "contextvars.ContextVar[Process]" = contextvars.ContextVar("process")
"""The process of the current context."""


class Process:
    """A simulated process: its callbacks, tasks, threads, and open connections."""

    def __init__(self, loop: "Loop", name: str) -> None:
        self.loop = loop
        self.name = name
        self.dead = False
        self.paused_until = 0.0
        self.queue: deque[asyncio.Handle] = deque()
        self.queued = False
        self.unwinding: deque[asyncio.Handle] | None = None
        """The callbacks of one that is dead, while it is unwound: run there, and nowhere else."""
        self._tasks: list[Task] = []
        self._tasks_max = 32
        self.open: dict[Any, None] = {}
        """Connections that are cut when the process ends; each has ``cut()``."""
        self.context = contextvars.Context()
        self.context.run(PROCESS.set, self)

    def add_task(self, task: "Task") -> None:
        """A task begins; those that are done are forgotten now and then, and cost no callback."""
        self._tasks.append(task)
        if len(self._tasks) > self._tasks_max:
            self._tasks = self.tasks()
            self._tasks_max = 2 * len(self._tasks) + 32

    def tasks(self) -> "list[Task]":
        """Returns the unfinished tasks, in the order in which they began."""
        return [task for task in self._tasks if not task.done()]

    def spawn(self, make: Coroutine[Any, Any, Any]) -> "Task":
        """Begin a coroutine in this process."""
        task = self.loop.create_task(make, context=self.context.copy())
        assert isinstance(task, Task)
        return task

    def pause(self, seconds: float) -> None:
        """Stops all callbacks of the process for a while, as on a node that swaps."""
        self.paused_until = max(self.paused_until, self.loop.now() + seconds)
        self.loop.call_at(self.loop.time() + seconds, lambda: None, context=self.context)


class Task(asyncio.Task[Any]):
    """A task with the same place in a set each time; equal to itself alone, as any object."""

    __serial = 0

    def __init__(self, *arguments: Any, **options: Any) -> None:
        Task.__serial += 1
        self._place = Task.__serial
        super().__init__(*arguments, **options)

    def __hash__(self) -> int:
        return self._place

    @classmethod
    def begin(cls) -> None:
        """Count from the beginning: a world is the same whatever ran before it."""
        cls.__serial = 0


class Handle(asyncio.Handle):
    """asyncio's, made with less: most of a world's time is callbacks."""

    __slots__ = ()
    _repr = None
    _source_traceback = None

    def __init__(
        self,
        callback: Any,
        arguments: tuple[Any, ...],
        loop: "Loop",
        context: contextvars.Context,
    ) -> None:
        self._context = context
        self._loop = loop
        self._callback = callback
        self._args = arguments
        self._cancelled = False

    def cancel(self) -> None:
        self._cancelled = True
        self._callback = self._args = None


class TimerHandle(Handle, asyncio.TimerHandle):
    """The same of one that is due at a time; cancelled ones are passed over when they are due."""

    __slots__ = ()
