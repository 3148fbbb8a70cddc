"""Limits the number of reports that policies can create in etcd.

The API server counts them, at most once in :data:`COUNT_SECONDS`, and only before a new report.
Reports of other products in the same API count, too: they use the same etcd.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.api.resource import Resource
    from webhook.cluster.client import ClusterClient
    from webhook.log import Logger
    from webhook.reports.report_api import ReportApi

COUNT_SECONDS: Final = 10.0
"""As long as an admission waits before its report: several writers overshoot by that much."""


REACHED_SECONDS: Final = 600.0
"""How long after a refusal the bound counts as reached: every sweep refuses again while it is."""


class Capacity:
    """Room for reports; used on one event loop."""

    def __init__(
        self,
        client: ClusterClient,
        api: ReportApi,
        reports_max: int,
        log: Logger,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._api = api
        self._max = reports_max
        self._log = log
        self._clock = clock
        self._counted_at: float | None = None
        self._counting = asyncio.Lock()
        self.count = 0
        self._pending = 0
        """The creations under way, which a count by the API server may not have yet."""
        self._created = 0
        """The creations that ended since the last count began, which it may not have either."""
        self.counts = 0
        """How often the API server has counted."""
        self._refused_at: float | None = None

    async def has_room(self) -> bool:
        """Returns whether one more report may be created; raises the errors of requests.

        If it may, call :meth:`settle` after the attempt.
        """
        async with self._counting:
            if self._counted_at is None or self._clock() - self._counted_at >= COUNT_SECONDS:
                await self._look()
            room = self.count < self._max
            if room:
                self.count += 1  # the caller's own
                self._pending += 1
        if not room:
            self.refuse()
        return room

    def settle(self, *, is_created: bool) -> None:
        """Notes the end of a creation."""
        self._pending -= 1
        if is_created:
            self._created += 1
        else:
            self.count = max(self.count - 1, 0)

    async def room(self) -> int:
        """Returns how many more reports may be created, counted now.

        Raises the errors of requests.
        """
        async with self._counting:
            await self._look()
        return max(self._max - self.count, 0)

    def refuse(self) -> None:
        """Records a report that was not created for lack of room."""
        is_new = not self.is_reached
        self._refused_at = self._clock()
        if is_new:
            self._log.error(
                "no more resources get a report: --report-max-resources is reached; reports "
                "that exist are kept up to date",
                reports=self.count,
                max=self._max,
            )

    @property
    def is_reached(self) -> bool:
        """Returns whether a report was refused recently: the condition in metrics."""
        at = self._refused_at
        return at is not None and self._clock() - at < REACHED_SECONDS

    async def _look(self) -> None:
        """Has the API server count.

        A report that is created meanwhile may count twice, until the next count: rather too few
        are made than too many.
        """
        self._created = 0
        counted = sum([await self._number(item) for item in self._api.resources])
        self.count = counted + self._pending + self._created
        self._counted_at = self._clock()
        self.counts += 1

    def deleted(self, counts: int) -> None:
        """Notes the end of a deletion; ``counts`` is :attr:`counts` at its beginning.

        A count meanwhile may be without the deleted report already.
        """
        if counts == self.counts:
            self.count = max(self.count - 1, 0)

    async def _number(self, resource: Resource) -> int:
        """Returns the number of objects of a kind.

        The API server counts them without reading them.
        """
        page = await self._client.request("GET", resource.collection(), query={"limit": "1"})
        return len(page["items"]) + int(page["metadata"].get("remainingItemCount") or 0)
