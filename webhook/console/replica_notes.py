"""What replicas report about themselves: read when a page shows it, and kept for a moment."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from typing import TYPE_CHECKING, Final

from webhook.api.gvk import name_of
from webhook.cluster.replica_reports import ReportForbidden, read_report
from webhook.replicas.pods import replica

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webhook.cluster.client import ClusterClient
    from webhook.cluster.store import Object

KEPT_SECONDS: Final = 10.0
"""How long a reading is kept, in seconds: many visitors cost replicas as much as one."""

PAGE_SECONDS: Final = 0.15
"""The longest wait of a page, in seconds: half of the goal for a whole page. A ready replica answers
in milliseconds; what comes later is shown by the next page."""

AWAITED: Final = "its own report has not come yet: load the page again in a moment"
"""The note of a replica that nobody has asked, or that has not answered yet."""


class ReplicaNotes:
    """The faults of each Pod's report, by its name. Used on one loop."""

    def __init__(
        self,
        namespace: str,
        find_pods: Callable[[], Iterable[Object]],
        notify: Callable[[], None],
    ) -> None:
        """``notify`` is called when a reading differs from the one before it."""
        self._namespace = namespace
        self._find_pods = find_pods
        self._notify = notify
        self.by_pod: Mapping[str, tuple[str, ...]] = {}
        self._read_at = -math.inf
        self._requested = asyncio.Event()
        self._ended = asyncio.Event()
        """Set at the end of a reading, and replaced."""

    async def refresh(self) -> None:
        """Waits briefly for a new reading if the last one is old, or lacks a Pod."""
        is_old = time.monotonic() - self._read_at >= KEPT_SECONDS
        if is_old or any(name_of(pod) not in self.by_pod for pod in self._pods()):
            self._requested.set()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PAGE_SECONDS):
                    await self._ended.wait()

    async def run(self, client: ClusterClient) -> None:
        """Reads when a page wants it, one reading at a time, until cancelled."""
        while True:
            await self._requested.wait()
            pods = self._pods()
            async with asyncio.TaskGroup() as tasks:
                answers = {
                    name_of(pod): tasks.create_task(self._note_of(client, pod)) for pod in pods
                }
            by_pod = {name: answer.result() for name, answer in answers.items()}
            is_new, self.by_pod = by_pod != self.by_pod, by_pod
            self._read_at = time.monotonic()
            self._requested.clear()
            if is_new:
                self._notify()
            self._ended.set()
            self._ended = asyncio.Event()

    def _pods(self) -> list[Object]:
        return [pod for pod in self._find_pods() if not replica(pod).finished]

    async def _note_of(self, client: ClusterClient, pod: Object) -> tuple[str, ...]:
        try:
            return tuple(await read_report(client, self._namespace, pod) or ())
        except ReportForbidden as error:
            return (str(error),)
