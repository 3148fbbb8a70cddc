"""A server of the tests on an event loop of its own, in a thread."""

import asyncio
import threading

from webhook.cluster import event_loop


class LoopThread:
    """Runs :meth:`serve` in a thread from its making until :meth:`close`."""

    def __init__(self) -> None:
        """The fields that :meth:`serve` reads are set before."""
        self._stop = asyncio.Event()
        self._started = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=lambda: event_loop.run(self._run()), daemon=True)
        self._thread.start()
        self._started.wait()

    async def serve(self, started: threading.Event, stop: asyncio.Event) -> None:
        """Listen, set ``started``, and close once ``stop`` is set."""
        raise NotImplementedError

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self.serve(self._started, self._stop)

    def call(self, act: asyncio.Event) -> None:
        """Set an event of the loop from another thread."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(act.set)

    def close(self) -> None:
        """End every connection."""
        self.call(self._stop)
        self._thread.join()
