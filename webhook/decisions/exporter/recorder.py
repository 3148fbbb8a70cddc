"""The side exit of the admission route: an answer in, a record offered, the answer out."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from webhook.api.admission import AdmissionResponse
from webhook.api.gvk import labels_of, name_of
from webhook.decisions.exporter.admission import (
    NO_POLICIES,
    RecordedPolicies,
    ReviewOutcome,
    admission_record,
    unread_record,
)
from webhook.decisions.exporter.mutation import mutation_record
from webhook.decisions.exporter.record import lifecycle
from webhook.decisions.exporter.rows import Reasons

if TYPE_CHECKING:
    from webhook.constraint.snapshot import Snapshot
    from webhook.decisions.exporter.exporter import Exporter
    from webhook.serving.recorder import MutationReviewed, Reviewed

_NOBODY: Final[dict[str, Any]] = {}

ANNOTATION: Final = "decision-id"
"""Key of the audit annotation; the API server puts the webhook's name and a slash before it."""


class AdmissionRecorder:
    """Records admissions and mutations, each as it is answered.

    Called on the exporter's event loop, and never waits.

    Nothing of a request is kept but the values that its record says: what the next one is decoded
    into is the memory that this one leaves, and that is still in the processor's caches.
    """

    __slots__ = ("_exporter", "_policies", "_snapshot")

    def __init__(self, exporter: Exporter) -> None:
        self._exporter = exporter
        self._snapshot: Snapshot | None = None
        self._policies = NO_POLICIES

    def event(self, event: str, **details: str | int) -> None:
        """Record an event of the process itself, behind what was decided before it."""
        self._exporter.settle()
        self._exporter.offer(lifecycle(self._exporter.decision_id(), event, **details))

    def answered(self, reviewed: Reviewed, response: AdmissionResponse) -> AdmissionResponse:
        """Record a decision; the answer to give, which carries the decision's id."""
        uid, allowed, code, reason, message, warnings, annotations, patch = response
        refused = code == 403 and not allowed
        decision_id = self._record(
            reviewed,
            allowed,
            code,
            "" if allowed or refused else message,
            message if refused else "",
        )
        named = {ANNOTATION: decision_id}
        if annotations:
            named = {**annotations, **named}
        # As _replace would, at a fifth of its cost.
        fields = (uid, allowed, code, reason, message, warnings, named, patch)
        return tuple.__new__(AdmissionResponse, fields)

    def mutated(self, reviewed: MutationReviewed, response: AdmissionResponse) -> AdmissionResponse:
        """Record what mutators did about a request; the answer, which carries the decision's id."""
        exporter = self._exporter
        decision_id = exporter.decision_id()
        try:
            error = "" if response.allowed and reviewed.mutated is not None else response.message
            if reviewed.mutated is None and response.allowed:
                error = "; ".join(response.warnings)
            duration_ns, queue_ns = _nanoseconds(reviewed.times)
            outcome = ReviewOutcome(
                response.allowed,
                response.code,
                error,
                duration_ns=duration_ns,
                queue_ns=queue_ns,
            )
            include = exporter.settings.include_objects
            exporter.offer(mutation_record(decision_id, reviewed, outcome, include_objects=include))
        except Exception as bug:  # noqa: BLE001  # the log's boundary: the decision stands
            exporter.lose(bug)
        annotations = {**(response.audit_annotations or {}), ANNOTATION: decision_id}
        return response._replace(audit_annotations=annotations)

    def unanswered(self, reviewed: Reviewed, code: int, error: str) -> None:
        """Record a request that failurePolicy decides, with the reason."""
        self._record(reviewed, None, code, error)

    def unread(self, request_uid: str, error: str) -> None:
        """Record a request that was refused because it cannot be reviewed."""
        self._exporter.offer(unread_record(self._exporter.decision_id(), request_uid, error))

    def _record(
        self, reviewed: Reviewed, allowed: bool | None, code: int, error: str, refusal: str = ""
    ) -> str:
        """The id of the decision that was recorded."""
        request, responses, snapshot, times = reviewed
        exporter = self._exporter
        policies = self._policies
        if snapshot is not self._snapshot:
            policies = NO_POLICIES if snapshot is None else self._look_at(snapshot)
        decision_id = exporter.decision_id()
        try:
            if exporter.refuse():
                return decision_id
            if responses is not None and allowed is not None and exporter.in_rows:
                row = _row(decision_id, reviewed, allowed, code, error, refusal)
                exporter.decide(policies, row)
                return decision_id
            duration_ns, queue_ns = _nanoseconds(times)
            outcome = ReviewOutcome(allowed, code, error, refusal, policies, duration_ns, queue_ns)
            include = exporter.settings.include_objects
            exporter.offer(
                admission_record(decision_id, request, responses, outcome, include_objects=include)
            )
        except Exception as bug:  # noqa: BLE001  # the log's boundary: the decision stands
            exporter.lose(bug)
        return decision_id

    def _look_at(self, snapshot: Snapshot) -> RecordedPolicies:
        """Other policies than before are an event."""
        self._snapshot = snapshot
        other = snapshot.digest != self._policies.digest
        self._policies = RecordedPolicies.of(snapshot)
        if other:
            self.event(
                "policies",
                digest=snapshot.digest,
                templates=len(snapshot.entries),
                constraints=len(snapshot.constraints),
            )
        return self._policies


def _row(
    decision_id: str, reviewed: Reviewed, allowed: bool, code: int, error: str, refusal: str
) -> tuple[Any, ...]:
    """A decision as :meth:`Exporter.decide` takes it: what its record says, and no more is kept."""
    request, responses, _, times = reviewed
    (
        document,
        uid,
        kind,
        _,
        sub_resource,
        name,
        namespace,
        operation,
        username,
        dry_run,
        obj,
        old,
        *_,
    ) = request
    assert responses is not None
    group, version, kind_name = kind
    # A DELETE carries the object as oldObject.
    subject = old if obj is None else obj
    user = document.get("userInfo") or _NOBODY
    plain = allowed and not (
        error
        or refusal
        or responses.results
        or responses.faults
        or responses.undecided
        or responses.deadline_exceeded
    )
    return (
        time.time(),
        None if plain else Reasons(responses, allowed, error, refusal),
        decision_id,
        uid,
        operation,
        dry_run,
        group,
        version,
        kind_name,
        namespace,
        name or ("" if subject is None else name_of(subject)),
        _NOBODY if subject is None else labels_of(subject),
        document.get("resource"),
        sub_resource,
        username,
        user.get("uid", ""),
        user.get("groups") or (),
        code,
        allowed,
        responses.evaluated,
        *_nanoseconds(times),
    )


def _nanoseconds(times: tuple[float, float]) -> tuple[int, int]:
    """How long the review took until now, and how long the request waited for it."""
    received, began = times
    return int((time.monotonic() - began) * 1e9), int((began - received) * 1e9)
