"""The side exit of the admission route: an answer in, a record offered, the answer out."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from orjson import dumps

from webhook.api.gvk import name_of
from webhook.decisions.exporter.admission import (
    MEMO,
    NO_POLICIES,
    RecordedPolicies,
    ReviewOutcome,
    admission_record,
    calls_of,
    unread_record,
    why,
)
from webhook.decisions.exporter.record import lifecycle
from webhook.decisions.exporter.rows import ROW_BYTES_AMPLE
from webhook.serving.recorder import MutationReviewed, Reviewed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.api.admission import AdmissionRequest, AdmissionResponse
    from webhook.constraint.result import Responses
    from webhook.constraint.snapshot import Snapshot
    from webhook.decisions.exporter.exporter import Exporter
    from webhook.decisions.exporter.masking import Masking

_NOBODY: Final[dict[str, Any]] = {}


POINT: Final = "mutation.gatekeeper.sh"
"""The name of the webhook in the mutating webhook configuration."""


def mutation_record(
    decision_id: str,
    reviewed: MutationReviewed,
    outcome: ReviewOutcome,
    *,
    include_objects: bool = False,
    include_answers: bool = False,
) -> dict[str, Any]:
    """Returns the record of the mutation of one request.

    ``mutation.patch`` leads from the received object to the one that is reviewed next, without the
    annotations about the mutation.
    """
    record = admission_record(
        decision_id, reviewed.request, None, outcome, include_objects=include_objects
    )
    record["enforcementPoint"] = POINT
    for name in ("policyDigest", "policyRevision"):
        del record[name]
    mutated, preview = reviewed.mutated, reviewed.preview
    document: dict[str, Any] = {}
    if mutated is not None:
        if reviewed.patch:
            document["iterations"] = mutated.iterations
            document["passes"] = [list(map(str, pass_)) for pass_ in mutated.passes]
            document["patch"] = list(reviewed.patch.operations)
        if mutated.skipped:
            document["skipped"] = _skipped(mutated.skipped)
    if preview is not None:
        document["preview"] = list(map(str, preview.mutators))
        document["previewPatch"] = list(preview.patch)
        if preview.skipped:
            document["previewSkipped"] = _skipped(preview.skipped)
        if preview.fault:
            document["previewFault"] = preview.fault
    record["mutation"] = document
    if reviewed.answers:
        record["externalData"] = calls_of(reviewed.answers, include_answers=include_answers)
    return record


def _mask_calls(masking: Masking, record: dict[str, Any], request: AdmissionRequest) -> None:
    """Masks providers' calls by the fields of a request, which the record may leave out."""
    if "externalData" in record:  # seldom
        masking.mask_calls(
            record,
            object=request.object,
            oldObject=request.old_object,
            userInfo=request.document.get("userInfo"),
        )


def _skipped(faults: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"mutator": name, "message": fault} for name, fault in faults.items()]


class AdmissionRecorder:
    """Records admissions and mutations, each as it is answered.

    Called on the exporter's event loop, and never waits.

    Nothing of a request is kept, so that the next request is decoded into the same memory, which is
    still in the processor's caches. The values of a record are also encoded while the request is
    answered: that costs a third of encoding them some requests later.
    """

    __slots__ = ("_exporter", "_noted", "_policies", "_snapshot", "names")

    def __init__(self, exporter: Exporter) -> None:
        self._exporter = exporter
        # Attributes that each answer needs, to save look-ups.
        self._noted = exporter.noted
        self.names: Iterator[str] = exporter.names
        self._snapshot: Snapshot | None = None
        self._policies = NO_POLICIES

    def event(self, event: str, **details: str | int) -> None:
        """Records an event of the process itself, after earlier decisions."""
        self._exporter.settle()
        self._exporter.offer(lifecycle(self._exporter.decision_id(), event, **details))

    def answered(
        self,
        request: AdmissionRequest,
        responses: Responses | None,
        snapshot: Snapshot | None,
        received: float,
        began: float,
        response: AdmissionResponse,
    ) -> AdmissionResponse:
        """Records a decision; returns the answer with the decision's id.

        The row is encoded inline: a call costs several times as much as in a loop.
        """
        _, allowed, code, _, message, _, decision_id, _ = response
        if not decision_id:  # nothing was reviewed
            decision_id = next(self.names)
            response = response._replace(decision_id=decision_id)
        noted = self._noted
        try:
            is_open = noted.total < noted.limit and snapshot is noted.snapshot
            if not is_open and self._exporter.refuse():
                return response
            if (is_open and responses is not None and not responses.answers) or self._is_noted(
                Reviewed(request, responses, snapshot, (received, began)), response
            ):
                assert responses is not None
                results, faults, late, evaluated, undecided, excused, _, _, _, recalled = responses
                # fmt: off
                (document, uid, (group, version, kind), _, sub_resource, name, namespace, operation,
                 username, dry_run, subject, old, _, _, _, failure_policy) = request
                subject = old if subject is None else subject  # a DELETE has oldObject
                metadata = None if subject is None else subject.get("metadata")
                user = document["userInfo"] or _NOBODY
                more = MEMO if recalled else None
                if failure_policy:
                    more = {"failurePolicy": failure_policy, **(more or {})}
                if (code != 200 or not allowed or results or faults
                        or undecided or excused or late):
                    more = {**(more or _NOBODY), **noted.more(responses, allowed, code, message)}
                row = (
                    received, began, monotonic(), more, decision_id,
                    uid, operation, dry_run, group, version, kind, namespace,
                    name or ("" if subject is None else name_of(subject)),
                    metadata.get("labels") if type(metadata) is dict else None,
                    document["resource"], sub_resource,
                    username, user.get("uid", ""), user.get("groups"), evaluated,
                )
                # fmt: on
                size = noted.write(dumps(row))
                noted.write(b",")
                noted.total += 1
                if size > ROW_BYTES_AMPLE:
                    noted.longest = size
                    self._exporter.settle()
        except TypeError:  # a number or a text that orjson cannot encode
            reviewed = Reviewed(request, responses, snapshot, (received, began))
            self._offer_alone(reviewed, response)
        except Exception as bug:  # noqa: BLE001  # the log's boundary: the decision is not affected
            self._exporter.lose(bug)
        return response

    def mutated(self, reviewed: MutationReviewed, response: AdmissionResponse) -> AdmissionResponse:
        """Records the mutation of a request; returns the answer with the decision's id."""
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
            settings = exporter.settings
            record = mutation_record(
                decision_id,
                reviewed,
                outcome,
                include_objects=settings.include_objects,
                include_answers=settings.include_answers,
            )
            _mask_calls(settings.masking, record, reviewed.request)
            exporter.offer(record)
        except Exception as bug:  # noqa: BLE001  # the log's boundary: the decision is not affected
            exporter.lose(bug)
        return response._replace(decision_id=decision_id)

    def unanswered(self, reviewed: Reviewed, code: int, error: str) -> None:
        """Records a request that failurePolicy decides, with the reason."""
        exporter = self._exporter
        decision_id = exporter.decision_id()
        try:
            policies = self._policies_of(reviewed.snapshot)
            if not exporter.refuse():
                times = _nanoseconds(reviewed.times)
                outcome = ReviewOutcome(None, code, error, "", policies, *times)
                self._offer(decision_id, reviewed, outcome)
        except Exception as bug:  # noqa: BLE001  # the log's boundary: the decision is not affected
            exporter.lose(bug)

    def unread(self, request_uid: str, error: str) -> None:
        """Records a request that was refused because it cannot be reviewed."""
        self._exporter.offer(unread_record(self._exporter.decision_id(), request_uid, error))

    def _is_noted(self, reviewed: Reviewed, response: AdmissionResponse) -> bool:
        """Whether a decision must be added as a row; otherwise it was refused, or got a record."""
        exporter, snapshot = self._exporter, reviewed.snapshot
        policies = self._policies if snapshot is self._snapshot else self._policies_of(snapshot)
        if reviewed.responses is not None and reviewed.responses.answers:
            exporter.settle()  # a row has no field for providers' answers
        elif exporter.in_rows and reviewed.responses is not None:
            exporter.open_rows(policies)
            self._noted.snapshot = snapshot
            return True
        self._offer_answered(reviewed, response)
        return False

    def _offer_alone(self, reviewed: Reviewed, response: AdmissionResponse) -> None:
        """Queues a separate record, behind earlier rows."""
        try:
            self._exporter.settle()
            self._offer_answered(reviewed, response)
        except Exception as bug:  # noqa: BLE001  # the log's boundary: the decision is not affected
            self._exporter.lose(bug)

    def _offer_answered(self, reviewed: Reviewed, response: AdmissionResponse) -> None:
        policies, allowed, code = self._policies_of(reviewed.snapshot), *response[1:3]
        reasons = why(allowed, code, response.message)
        outcome = ReviewOutcome(allowed, code, *reasons, policies, *_nanoseconds(reviewed.times))
        self._offer(response.decision_id, reviewed, outcome)

    def _offer(self, decision_id: str, reviewed: Reviewed, outcome: ReviewOutcome) -> None:
        """Queues a separate record."""
        settings, request = self._exporter.settings, reviewed.request
        record = admission_record(
            decision_id,
            request,
            reviewed.responses,
            outcome,
            include_objects=settings.include_objects,
            include_answers=settings.include_answers,
        )
        _mask_calls(settings.masking, record, request)
        self._exporter.offer(record)

    def _policies_of(self, snapshot: Snapshot | None) -> RecordedPolicies:
        if snapshot is None:
            return NO_POLICIES
        return self._policies if snapshot is self._snapshot else self._look_at(snapshot)

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


def _nanoseconds(times: tuple[float, float]) -> tuple[int, int]:
    """Returns the time of the review until now, and the request's wait before it, in nanoseconds."""
    received, began = times
    return int((monotonic() - began) * 1e9), int((began - received) * 1e9)
