"""The audit's part of each constraint's status: ``auditTimestamp``, total and violations.

Written by compare-and-swap of the status subresource: after a conflict the object is read again and
the write repeated, and fields of others (``byPod``) stay. A constraint without a total in the sweep
keeps its former status, as does a constraint that changed since the sweep began.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

from webhook.api.fitting import first_of, status_room
from webhook.api.shapes import status_of
from webhook.audit.retries import is_passing
from webhook.backoff import Backoff
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.policy_kinds.known import constraints_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.audit.sink import SweepEnd
    from webhook.audit.tally import ConstraintKey, Count
    from webhook.cluster.client import ClusterClient
    from webhook.cluster.store import Object
    from webhook.constraint.constraint import Constraint
    from webhook.log import Logger

WRITES_AT_ONCE: Final = 4
"""Concurrent writes of statuses: a hundred take a second, a negligible load for an API server."""

WRITE_SECONDS: Final = 60.0
"""The time for one status, in seconds; the next sweep writes it again."""


UNAUDITED: Final = "unauditedObjects"
"""The field with the number of objects that a total excludes; absent for none."""


class ConstraintStatuses:
    """Writes totals into constraints. Used by one task."""

    def __init__(self, client: ClusterClient, log: Logger) -> None:
        self._client = client
        self._log = log
        self.writes = 0
        self.failures = 0

    async def publish(self, end: SweepEnd, totals: Mapping[ConstraintKey, Count]) -> None:
        """Writes every total; returns when each is written or given up."""
        constraints = {constraint.key: constraint for constraint in end.snapshot.constraints}
        turns = iter(totals.items())

        async def work() -> None:
            for key, count in turns:
                await self._write(constraints[key], end, count)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(WRITES_AT_ONCE):
                tasks.create_task(work())

    async def _write(self, constraint: Constraint, end: SweepEnd, count: Count) -> None:
        resource = constraints_of(constraint.kind)
        expected = constraint.document.get("metadata") or {}

        unaudited = end.unaudited.get(constraint.key, 0)

        def change(current: Object) -> Object | None:
            return with_results(current, expected, end.audit_id, count, unaudited)

        backoff = Backoff(initial_seconds=1.0, max_seconds=10.0)
        until = time.monotonic() + WRITE_SECONDS
        while True:
            try:
                if await self._client.update(
                    resource, constraint.name, "", change, subresource="status"
                ):
                    self.writes += 1
            except (ApiError, ApiUnreachable) as error:
                if isinstance(error, ApiError) and error.is_absent:
                    return  # it was deleted, with its results
                passes = not isinstance(error, ApiError) or error.is_conflict or is_passing(error)
                if not passes or time.monotonic() > until:
                    self.failures += 1
                    self._log.error(
                        "the audit results of a constraint were not written",
                        constraint_kind=constraint.kind,
                        constraint_name=constraint.name,
                        error=str(error),
                    )
                    return
            else:
                return
            await asyncio.sleep(backoff.next_seconds())


def with_results(
    current: Object,
    expected: Mapping[str, Any],
    audit_id: str,
    count: Count,
    unaudited: int = 0,
) -> Object | None:
    """Returns the constraint with the audit's results and no other change.

    ``unaudited`` are the objects that it can match and that could not be audited. None if it is not
    the object of ``expected``, or changed since: the results are then not its own.
    """
    metadata = current["metadata"]
    if any(metadata.get(name) != expected.get(name) for name in ("uid", "generation")):
        return None
    status = dict(status_of(current))
    status["auditTimestamp"] = audit_id
    status["totalViolations"] = count.total
    if unaudited:
        status[UNAUDITED] = unaudited
    else:
        status.pop(UNAUDITED, None)
    # Half of the room: replicas' statuses need the rest. The first violations are kept.
    shown = first_of(count.documents()[::-1], status_room(current) // 2)[::-1]
    if shown:
        status["violations"] = shown
    else:
        status.pop("violations", None)
    return {**current, "status": status}
