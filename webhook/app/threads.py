"""The two threads beside admission's: probes with metrics, and reloading."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from webhook.app.priority import stand_behind
from webhook.cluster.event_loop import new_event_loop
from webhook.file_changes import Watched, watch
from webhook.metrics.registry import Registry
from webhook.server.http.hub import Hub
from webhook.server.http.limits import ConnectionLimits
from webhook.server.http.listener import Listener

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from starlette.applications import Starlette

    from webhook.log import Logger

PROBE_LIMITS = ConnectionLimits(
    connections_max=100,
    newest_first=True,
    header_bytes_max=16 * 1024,
    body_bytes_max=1024,
    waiting_bytes_max=64 * 1024,
    in_flight_max=50,
    handshake_timeout_seconds=5,
    header_timeout_seconds=5,
    body_timeout_seconds=5,
    # Prometheus and the kubelet return within a minute, or connect again.
    idle_timeout_seconds=90,
)
"""Probes and scrapes are few and small; other clients of the port cannot make them costly."""


class ProbeThread:
    """Serves applications, each on its socket, on an event loop of its own until stopped."""

    def __init__(
        self, applications: Sequence[tuple[socket.socket, Starlette]], log: Logger
    ) -> None:
        self._applications = applications
        self._log = log
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listeners: list[Listener] = []
        self._thread = threading.Thread(target=self._run, name="probes", daemon=True)
        self._started = threading.Event()

    def start(self) -> None:
        """Begins to serve; returns when the ports answer."""
        self._thread.start()
        self._started.wait()

    def stop(self) -> None:
        """Stops serving and waits for the thread."""
        loop = self._loop
        if loop is not None and self._thread.is_alive():
            for listener in self._listeners:
                loop.call_soon_threadsafe(listener.stop)
        self._thread.join(timeout=5)

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                runner.run(self._serve())
        except Exception as error:  # noqa: BLE001  # the thread's boundary: its end is not silent
            self._log.fault("bug: probes get no answers any more", error)
        finally:
            self._started.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        # A registry of its own: numbers of these ports would be mistaken for admission's.
        registry = Registry()
        async with asyncio.TaskGroup() as group:
            for socket, application in self._applications:
                hub = Hub(PROBE_LIMITS, registry, self._log)
                listener = Listener(hub, application, socket)
                self._listeners.append(listener)
                group.create_task(listener.serve())
            for listener in self._listeners:
                await listener.listening.wait()
            self._started.set()


class ReloadThread:
    """Loads each subject once, then whenever it changes, until stopped."""

    def __init__(self, subjects: Sequence[Watched], log: Logger, interval_seconds: float) -> None:
        self._subjects = subjects
        self._log = log
        self._interval_seconds = interval_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reload", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Stops the thread, and waits a moment for the current load."""
        self._stop.set()
        self._thread.join(timeout=1)

    def _run(self) -> None:
        try:
            for subject in self._subjects:
                subject.look()
            # Only now: readiness waits for the first policies.
            stand_behind()
            watch(self._subjects, self._stop, interval_seconds=self._interval_seconds)
        except Exception as error:  # noqa: BLE001  # the thread's boundary: its end is not silent
            self._log.fault("bug: changes of files are no longer detected", error)
