"""A thread with an event loop of its own, for work that must never delay an admission."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final

from webhook.app.priority import stand_behind
from webhook.cluster.event_loop import EventLoop

STOP_SECONDS: Final = 5.0
"""How long the process waits at its end for the work of such a thread."""


class LoopThread:
    """Runs one coroutine from :meth:`start` to :meth:`stop`."""

    def __init__(
        self,
        name: str,
        main: Callable[[], Coroutine[Any, Any, None]],
        begin: Callable[[], None] = stand_behind,
    ) -> None:
        """``main`` handles its own errors: an escaping error ends the thread with a traceback.

        ``begin`` sets the thread's priority among the others.
        """
        self._begin = begin
        self._main = main
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.loop: asyncio.AbstractEventLoop | None = None
        """Set once the coroutine runs; any thread may read it, and call its thread-safe methods."""

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Cancels the coroutine, and waits a moment for the thread."""
        loop, task = self.loop, self._task
        if loop is not None and task is not None and self._thread.is_alive():
            # The loop may be closed by now if the coroutine ended by itself.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(task.cancel)
            self._thread.join(timeout=STOP_SECONDS)

    def _run(self) -> None:
        self._begin()
        with asyncio.Runner(loop_factory=EventLoop) as runner:
            try:
                runner.run(self._enter())
            except asyncio.CancelledError:
                return

    async def _enter(self) -> None:
        self._task = asyncio.current_task()
        self.loop = asyncio.get_running_loop()
        await self._main()
