"""The audit in the decision log: every complete violation, between a begin and an end.

Records wait for room in the exporter's queue: a slow sidecar slows a sweep down, and a sweep never
displaces an admission's record. After a wait of :data:`PATIENCE_SECONDS` for one record, the rest
of the sweep does not wait any more; records without room are dropped and counted. Records are made
on the exporter's own event loop, in batches.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from webhook.audit.sink import Audited, AuditSink, SweepEnd, SweepStart
from webhook.decisions.exporter.admission import (
    NO_POLICIES,
    RecordedPolicies,
    ReviewOutcome,
    audit_record,
)
from webhook.decisions.exporter.record import audit_finished, audit_started

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from webhook.constraint.snapshot import Snapshot
    from webhook.decisions.exporter.exporter import Exporter

TOGETHER: Final = 32
"""Objects in a batch of records: the other thread's loop is woken once for each batch."""


PATIENCE_SECONDS: Final = 30.0
"""The longest wait of a record for room, in seconds: a restarted sidecar is back by then, and
totals are more urgent than undeliverable records."""


class DecisionRecords(AuditSink):
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
        # Several audits, or two sweeps of one, may begin within the same second of the id.
        decision_id = self._exporter.decision_id()
        self._run = f"{audit_id}-{decision_id}"
        await self._put(lambda: audit_started(decision_id, self._run))

    async def audited(self, audited: Audited) -> None:
        """Records each object with a violation or without a verdict, and allowed ones by option."""
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

    async def end(self, end: SweepEnd) -> None:
        """Sends the rest, then ``audit_finished``."""
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
        """Makes a record and queues it; a bug loses this record only, and is counted."""
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
        settings = self._exporter.settings
        record = audit_record(
            self._exporter.decision_id(),
            self._run if audited.audit_id else "",
            audited.object,
            audited.responses,
            outcome,
            include_objects=settings.include_objects,
            include_answers=settings.include_answers,
        )
        settings.masking.mask_calls(record, object=audited.object)
        return record
