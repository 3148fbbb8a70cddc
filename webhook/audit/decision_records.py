"""The audit in the decision log: every violation, whole, between a begin and an end.

Records wait for room in the exporter's queue, so that a sweep is slowed down by
a slow sidecar and never crowds out an admission's record; but not for ever: after
:data:`PATIENCE_SECONDS` for one record the rest of the sweep does not wait any
more, and what finds no room is dropped and counted. Records are made on the
exporter's own event loop, some at a time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from webhook.decisions.exporter.admission import (
    NO_POLICIES,
    RecordedPolicies,
    ReviewOutcome,
    audit_record,
)
from webhook.decisions.exporter.record import audit_finished, audit_started

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from webhook.audit.sink import Audited, Identity, SweepEnd, SweepStart
    from webhook.constraint.snapshot import Snapshot
    from webhook.decisions.exporter.exporter import Exporter

TOGETHER: Final = 32
"""Objects whose records are made at a time: the other thread's loop is troubled once for them."""


PATIENCE_SECONDS: Final = 30.0
"""How long a record waits for room: a sidecar that is restarted is back by then, and totals are
more urgent than records that cannot be delivered."""


class DecisionRecords:
    """A sink that writes to an exporter on another event loop. Used by one task."""

    def __init__(
        self,
        exporter: Exporter,
        loop: asyncio.AbstractEventLoop,
        *,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        """``loop`` is the exporter's."""
        self._patience_seconds = patience_seconds
        self._exporter = exporter
        self._loop = loop
        self._waiting: list[Audited] = []
        self._patient = True
        self._run = ""
        self._snapshot: Snapshot | None = None
        self._policies = NO_POLICIES

    async def start(self, start: SweepStart) -> None:
        """``audit_started``."""
        self._patient = True
        await self._there(self._start(start.audit_id))

    async def _start(self, audit_id: str) -> None:
        # Several audits, and two sweeps of one, may begin within the second that the id tells.
        decision_id = self._exporter.decision_id()
        self._run = f"{audit_id}-{decision_id}"
        await self._put(lambda: audit_started(decision_id, self._run))

    async def audited(self, audited: Audited) -> None:
        """A record of each object with a violation, without a verdict, or allowed if that is asked."""
        responses = audited.responses
        allows = self._exporter.settings.audit_allows and not audited.excluded
        if (
            allows
            or responses.results
            or responses.excused
            or responses.faults
            or responses.undecided
        ):
            self._waiting.append(audited)
            if len(self._waiting) >= TOGETHER or not audited.audit_id:
                await self._flush()

    async def gone(self, identity: Identity) -> None:
        """Nothing: that an object was deleted is no decision."""

    async def end(self, end: SweepEnd) -> None:
        """Send the rest, then ``audit_finished``."""
        await self._flush()
        await self._there(
            self._put(
                lambda: audit_finished(
                    self._exporter.decision_id(),
                    self._run,
                    reviewed=end.reviewed,
                    violations=end.violations,
                    duration_ns=end.duration_ns,
                )
            )
        )

    async def _flush(self) -> None:
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        if waiting[0].snapshot is not self._snapshot:
            self._snapshot = waiting[0].snapshot
            self._policies = RecordedPolicies.of(self._snapshot)
        await self._there(self._put_all(waiting))

    async def _there(self, work: Coroutine[Any, Any, None]) -> None:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def _put_all(self, waiting: list[Audited]) -> None:
        for audited in waiting:
            await self._put(lambda audited=audited: self._record(audited))  # type: ignore[misc]

    async def _put(self, make: Callable[[], dict[str, Any]]) -> None:
        """Make a record and queue it; a bug costs the record, is counted, and not the sweep."""
        try:
            record = make()
            if self._patient:
                async with asyncio.timeout(self._patience_seconds):
                    await self._exporter.put(record)
            else:
                self._exporter.offer(record)
        except TimeoutError:
            self._patient = False
        except Exception as error:  # noqa: BLE001  # the log's boundary: the audit stands
            self._exporter.lose(error)

    def _record(self, audited: Audited) -> dict[str, Any]:
        outcome = ReviewOutcome(policies=self._policies, duration_ns=audited.duration_ns)
        return audit_record(
            self._exporter.decision_id(),
            self._run if audited.audit_id else "",
            audited.object,
            audited.responses,
            outcome,
            include_objects=self._exporter.settings.include_objects,
            include_answers=self._exporter.settings.include_answers,
        )
