"""The side exit of the admission route: an answer in, a record offered, the answer out."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.api.admission import AdmissionResponse
from webhook.decisions.exporter.admission import ReviewOutcome, admission_record, unread_record
from webhook.decisions.exporter.mutation import mutation_record
from webhook.decisions.exporter.record import lifecycle, timestamp

if TYPE_CHECKING:
    import asyncio

    from webhook.api.admission import AdmissionRequest
    from webhook.constraint.result import Responses
    from webhook.constraint.snapshot import Snapshot
    from webhook.decisions.exporter.exporter import Exporter
    from webhook.serving.recorder import MutationReviewed, Reviewed

ANNOTATION: Final = "decision-id"
"""Key of the audit annotation; the API server puts the webhook's name and a slash before it."""


TOGETHER: Final = 16
"""Records made at a time. Between two requests the processor's caches hold the request's code, and
a record made there cost 25 to 38 µs; in a row they cost 9 to 14."""

TOGETHER_MAX: Final = 256
"""Made at once, whatever the event loop has to do: a bound on the requests held in memory."""


class _Answered(NamedTuple):
    """An answer whose record is still to be made."""

    decision_id: str
    moment: float
    request: AdmissionRequest
    responses: Responses | None
    outcome: ReviewOutcome


class _Mutated(NamedTuple):
    """What mutators did, whose record is still to be made."""

    decision_id: str
    moment: float
    reviewed: MutationReviewed
    outcome: ReviewOutcome


class AdmissionRecorder:
    """Records admissions and mutations; called on the exporter's event loop, never waits.

    Once :meth:`start` was called with that loop, records are made some at a
    time, after their answers; before, each at once.
    """

    __slots__ = ("_digest", "_exporter", "_generations", "_loop", "_waiting")

    def __init__(self, exporter: Exporter) -> None:
        self._exporter = exporter
        self._digest = ""
        self._generations: dict[str, int] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[_Answered | _Mutated] = []

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Make records on this loop from now on."""
        self._loop = loop

    def event(self, event: str, **details: str | int) -> None:
        """Record an event of the process itself."""
        self.flush()
        self._exporter.offer(lifecycle(self._exporter.decision_id(), event, **details))

    def answered(self, reviewed: Reviewed, response: AdmissionResponse) -> AdmissionResponse:
        """Record a decision; the answer to give, which carries the decision's id."""
        request, responses, snapshot, times = reviewed
        generations = self._look_at(snapshot)
        decision_id = self._exporter.decision_id()
        denied = response.code == 403 and not response.allowed
        error = "" if response.allowed or denied else response.message
        outcome = _outcome(snapshot, generations, times, response.allowed, response.code, error)
        if denied:
            outcome = outcome._replace(refusal=response.message)
        self._add(_Answered(decision_id, time.time(), request, responses, outcome))
        # As dataclasses.replace would, at a third of its cost.
        return AdmissionResponse(
            response.uid,
            response.allowed,
            response.code,
            response.reason,
            response.message,
            response.warnings,
            {**(response.audit_annotations or {}), ANNOTATION: decision_id},
            response.patch,
        )

    def mutated(self, reviewed: MutationReviewed, response: AdmissionResponse) -> AdmissionResponse:
        """Record what mutators did about a request; the answer, which carries the decision's id."""
        decision_id = self._exporter.decision_id()
        error = "" if response.allowed and reviewed.mutated is not None else response.message
        if reviewed.mutated is None and response.allowed:
            error = "; ".join(response.warnings)
        outcome = _outcome(None, {}, reviewed.times, response.allowed, response.code, error)
        self._add(_Mutated(decision_id, time.time(), reviewed, outcome))
        annotations = {**(response.audit_annotations or {}), ANNOTATION: decision_id}
        return response._replace(audit_annotations=annotations)

    def unanswered(self, reviewed: Reviewed, code: int, error: str) -> None:
        """Record a request that failurePolicy decides, with the reason."""
        request, responses, snapshot, times = reviewed
        outcome = _outcome(snapshot, self._look_at(snapshot), times, None, code, error)
        decision_id = self._exporter.decision_id()
        self._add(_Answered(decision_id, time.time(), request, responses, outcome))

    def unread(self, request_uid: str, error: str) -> None:
        """Record a request that was refused because it cannot be reviewed."""
        self.flush()
        self._exporter.offer(unread_record(self._exporter.decision_id(), request_uid, error))

    def flush(self) -> None:
        """Make the records of every answer so far."""
        waiting, self._waiting = self._waiting, []
        exporter = self._exporter
        include_objects = exporter.settings.include_objects
        for item in waiting:
            try:
                record = (
                    mutation_record(
                        item.decision_id,
                        item.reviewed,
                        item.outcome,
                        include_objects=include_objects,
                    )
                    if isinstance(item, _Mutated)
                    else admission_record(
                        item.decision_id,
                        item.request,
                        item.responses,
                        item.outcome,
                        include_objects=include_objects,
                    )
                )
                record["timestamp"] = timestamp(item.moment)
                exporter.offer(record)
            except Exception as error:  # noqa: BLE001  # the log's boundary: the decision stands
                exporter.lose(error)

    def _add(self, answered: _Answered | _Mutated) -> None:
        waiting = self._waiting
        waiting.append(answered)
        count = len(waiting)
        loop = self._loop
        if loop is None or count >= TOGETHER_MAX:
            self.flush()
        elif count == TOGETHER:
            loop.call_soon(self.flush)
        elif count == 1:
            loop.call_later(self._exporter.settings.flush_seconds, self.flush)

    def _look_at(self, snapshot: Snapshot | None) -> dict[str, int]:
        """Generations of the templates; other policies than before are an event."""
        if snapshot is not None and snapshot.digest != self._digest:
            self._digest = snapshot.digest
            self._generations = generations_of(snapshot)
            self.event(
                "policies",
                digest=snapshot.digest,
                templates=len(snapshot.entries),
                constraints=len(snapshot.constraints),
            )
        return self._generations


def generations_of(snapshot: Snapshot) -> dict[str, int]:
    """The generation of each template that has one, by the kind of its constraints."""
    found: dict[str, int] = {}
    for entry in snapshot.entries:
        generation = (entry.template.document.get("metadata") or {}).get("generation")
        if type(generation) is int:
            found[entry.template.kind] = generation
    return found


def _outcome(
    snapshot: Snapshot | None,
    generations: dict[str, int],
    times: tuple[float, float],
    allowed: bool | None,
    code: int,
    error: str,
) -> ReviewOutcome:
    received, began = times
    return ReviewOutcome(
        allowed,
        code,
        error,
        "",
        "" if snapshot is None else snapshot.digest,
        0 if snapshot is None else snapshot.revision,
        int((time.monotonic() - began) * 1e9),
        int((began - received) * 1e9),
        generations,
    )
