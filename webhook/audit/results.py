"""Where a sweep's totals go: into the constraints, or, of one share among several, to its owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.api.audit_shard import shard

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from webhook.api.shapes import Json
    from webhook.audit.members import Members
    from webhook.audit.sink import SweepEnd
    from webhook.audit.statuses import ConstraintStatuses
    from webhook.audit.tally import ConstraintKey, Count


class Results:
    """A receiver of totals. Used by one task."""

    def __init__(
        self,
        statuses: ConstraintStatuses,
        tell: Callable[[Mapping[ConstraintKey, Json | None]], None],
        is_current: Callable[[], Awaitable[bool]],
        limit: int,
    ) -> None:
        """``tell`` takes a share's results, for this replica's own statuses; None for none.

        ``is_current`` says whether the members are those among whom shares were made:
        if not, what was found is no share any more, and the old total stays.
        """
        self._is_current = is_current
        self._statuses = statuses
        self._tell = tell
        self._limit = limit
        self._told: set[ConstraintKey] = set()
        self.members: Members | None = None
        """Among whom shares were made for this sweep; None where there never are others."""

    async def publish(self, end: SweepEnd, totals: Mapping[ConstraintKey, Count]) -> None:
        """Write the totals, or tell this share's."""
        if not await self._is_current():
            return
        if self.members is None or self.members.is_alone:
            if self._told:
                self._tell(dict.fromkeys(self._told))
                self._told.clear()
            await self._statuses.publish(end, totals)
            return
        digest = self.members.digest
        self._told |= totals.keys()
        self._tell(
            {
                key: shard(end.audit_id, digest, count.total, count.documents(), limit=self._limit)
                for key, count in totals.items()
            }
        )
