"""Records of reviews: what was asked, what was found, what was answered."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.api.gvk import gvk_of, labels_of, name_of, namespace_of
from webhook.decisions.exporter.record import timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.api.admission import AdmissionRequest
    from webhook.constraint.constraint import Constraint
    from webhook.constraint.result import Responses, Result, Undecided
    from webhook.decisions.exporter.record import Verdict

_GROUP: Final = "constraints.gatekeeper.sh"

_GRAVITY: Final[tuple[Verdict, ...]] = ("deny", "warn", "dryrun")


_NOBODY: Final[dict[str, Any]] = {}


class ReviewOutcome(NamedTuple):
    """What became of a review beside its results.

    ``allowed`` is None where failurePolicy decides. ``error`` says why there is no verdict, where
    there is none, ``refusal`` why a request was denied by no policy. ``queue_ns`` is the time a
    request waited before its review began.
    """

    allowed: bool | None = True
    code: int = 200
    error: str = ""
    refusal: str = ""
    policy_digest: str = ""
    policy_revision: int = 0
    duration_ns: int = 0
    queue_ns: int = 0
    template_generations: Mapping[str, int] = MappingProxyType({})


def admission_record(
    decision_id: str,
    request: AdmissionRequest,
    responses: Responses | None,
    outcome: ReviewOutcome,
    *,
    include_objects: bool = False,
) -> dict[str, Any]:
    """The record of one admission; ``responses`` is None where nothing was reviewed.

    Its ``timestamp`` is the caller's to fill in: it knows when the answer was made.
    """
    document = request.document
    user = document.get("userInfo") or _NOBODY
    group, version, kind = request.kind
    # A DELETE carries the object as oldObject.
    subject = request.object if request.object is not None else request.old_object
    name = request.name
    labels: dict[str, str] = {}
    if subject is not None:
        labels = labels_of(subject)
        if not name:
            name = name_of(subject)
    record: dict[str, Any] = {
        "eventType": "decision",
        "id": decision_id,
        "timestamp": "",
        "enforcementPoint": "validation.gatekeeper.sh",
        "requestUID": request.uid,
        "verdict": "allow",
        "operation": request.operation,
        "dryRun": request.dry_run,
        "resourceGroup": group,
        "resourceAPIVersion": version,
        "resourceKind": kind,
        "resourceNamespace": request.namespace,
        "resourceName": name,
        "resourceLabels": labels,
        "requestResource": document.get("resource"),
        "requestSubresource": request.sub_resource,
        "requestUsername": request.username,
        "requestUserUID": user.get("uid", ""),
        "requestUserGroups": user.get("groups") or (),
        "policyDigest": outcome.policy_digest,
        "policyRevision": outcome.policy_revision,
        "durationNs": outcome.duration_ns,
        "queueDurationNs": outcome.queue_ns,
        "code": outcome.code,
    }
    if outcome.allowed is not None:
        record["allowed"] = outcome.allowed
    _judge(record, responses, outcome)
    if include_objects:
        record["object"] = request.object
        record["oldObject"] = request.old_object
        record["userInfo"] = user
        record["requestOptions"] = document.get("options")
    return record


def unread_record(decision_id: str, request_uid: str, error: str) -> dict[str, Any]:
    """The record of a request that was refused because it cannot be reviewed, or even be read."""
    return {
        "eventType": "decision",
        "id": decision_id,
        "timestamp": timestamp(),
        "enforcementPoint": "validation.gatekeeper.sh",
        "requestUID": request_uid,
        "verdict": "error",
        "allowed": False,
        "errors": [error],
    }


def audit_record(
    decision_id: str,
    audit_id: str,
    obj: dict[str, Any],
    responses: Responses | None,
    outcome: ReviewOutcome,
    *,
    include_objects: bool = False,
) -> dict[str, Any]:
    """The record of one object reviewed by the audit run ``audit_id``, or between two of them."""
    kind = gvk_of(obj)
    record: dict[str, Any] = {
        "eventType": "decision",
        "id": decision_id,
        "timestamp": timestamp(),
        "enforcementPoint": "audit.gatekeeper.sh",
        "verdict": "allow",
        "resourceGroup": kind.group,
        "resourceAPIVersion": kind.version,
        "resourceKind": kind.kind,
        "resourceNamespace": namespace_of(obj),
        "resourceName": name_of(obj),
        "resourceLabels": labels_of(obj),
        "policyDigest": outcome.policy_digest,
        "policyRevision": outcome.policy_revision,
        "durationNs": outcome.duration_ns,
    }
    if audit_id:
        record["auditID"] = audit_id
    _judge(record, responses, outcome)
    if include_objects:
        record["object"] = obj
    return record


def verdict_of(results: Sequence[Result]) -> Verdict:
    """The gravest action among results: deny, then warn, then dryrun; allow without any."""
    actions = {action for result in results for action in result.actions}
    for verdict in _GRAVITY:
        if verdict in actions:
            return verdict
    return "allow"


def _judge(record: dict[str, Any], responses: Responses | None, outcome: ReviewOutcome) -> None:
    error = outcome.error
    generations = outcome.template_generations
    faults: list[str] = []
    if responses is not None:
        record["constraintsEvaluated"] = responses.evaluated
        if responses.results:
            record["results"] = [_result(result, generations) for result in responses.results]
            record["verdict"] = verdict_of(responses.results)
        if responses.undecided:
            record["undecided"] = [_undecided(item) for item in responses.undecided]
        if responses.faults:
            faults += map(str, responses.faults)
        if responses.deadline_exceeded:
            faults.append("the deadline passed before every constraint was evaluated")
    if error:
        faults.append(error)
    if faults and ("results" not in record or error):
        record["verdict"] = "error"
    if outcome.allowed is False and outcome.refusal and record["verdict"] == "allow":
        record["verdict"] = "deny"
        faults.append(outcome.refusal)
    if faults:
        record["errors"] = faults


def _result(result: Result, generations: Mapping[str, int]) -> dict[str, Any]:
    found = {
        "constraint": _constraint(result.constraint),
        "template": result.constraint.kind.lower(),
        "target": result.target,
        "enforcementAction": result.enforcement_action,
        "enforcementActions": list(result.scoped_actions),
        "message": result.msg,
        "details": result.details if result.details is not None else {},
        "cause": result.cause,
    }
    generation = generations.get(result.constraint.kind)
    if generation is not None:
        found["templateGeneration"] = generation
    return found


def _undecided(item: Undecided) -> dict[str, Any]:
    return {
        "constraint": _constraint(item.constraint),
        "template": item.constraint.kind.lower(),
        "target": item.target,
        "cause": item.cause,
        "answer": item.answer,
        "message": item.message,
    }


def _constraint(constraint: Constraint) -> dict[str, Any]:
    metadata = constraint.document.get("metadata") or {}
    _, _, version = str(constraint.document.get("apiVersion", "")).partition("/")
    found = {
        "group": _GROUP,
        "version": version,
        "kind": constraint.kind,
        "name": constraint.name,
    }
    if metadata.get("generation"):
        found["generation"] = metadata["generation"]
    if metadata.get("annotations"):
        found["annotations"] = metadata["annotations"]
    return found
