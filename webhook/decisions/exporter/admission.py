"""Records of reviews: the request, the findings and the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from webhook.api import names
from webhook.api.encoding import compact
from webhook.api.gvk import gvk_of, labels_of, name_of, namespace_of
from webhook.decisions.wire.rows import timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.api.admission import AdmissionRequest
    from webhook.constraint.constraint import Constraint
    from webhook.constraint.result import Excuse, Responses, Result, Undecided
    from webhook.constraint.snapshot import Snapshot
    from webhook.decisions.exporter.record import DecisionVerdict
    from webhook.external_data.exchange import ProviderAnswers, ProviderResponse

ENFORCEMENT_POINT: Final = names.WEBHOOK

_GRAVITY: Final[tuple[DecisionVerdict, ...]] = ("deny", "warn", "dryrun")


_NOBODY: Final[dict[str, Any]] = {}

MEMO: Final[dict[str, Any]] = {"memo": True}
"""The mark of a record for which some constraints' violations were known before."""


class RecordedPolicies:
    """The policies in force in the format of records, computed once for all records."""

    __slots__ = ("_constraints", "_generations", "_written", "common", "digest", "revision")

    def __init__(
        self, digest: str = "", revision: int = 0, generations: Mapping[str, int] | None = None
    ) -> None:
        """``generations`` are those of templates, by the kind of their constraints."""
        self.digest = digest
        self.revision = revision
        self.common = {
            "eventType": "decision",
            "enforcementPoint": ENFORCEMENT_POINT,
            "policyDigest": digest,
            "policyRevision": revision,
        }
        """The fields of the policies, the same in the records of all admissions."""
        self._generations = generations or {}
        self._constraints: dict[tuple[str, str], tuple[Constraint, dict[str, Any]]] = {}
        self._written: dict[tuple[str, str], tuple[Constraint, bytes]] = {}

    @classmethod
    def of(cls, snapshot: Snapshot) -> RecordedPolicies:
        """Describes the policies of a snapshot."""
        generations: dict[str, int] = {}
        for entry in snapshot.entries:
            generation = (entry.template.document.get("metadata") or {}).get("generation")
            if type(generation) is int:
                generations[entry.template.kind] = generation
        return cls(snapshot.digest, snapshot.revision, generations)

    def result(self, result: Result) -> dict[str, Any]:
        """Returns a result, with the fields common to all results of its constraint."""
        return {
            **self.described(result.constraint),
            "target": result.target,
            "enforcementAction": result.enforcement_action,
            "enforcementActions": result.scoped_actions,
            "message": result.msg,
            "details": {} if result.details is None else result.details,
            "cause": result.cause,
            **({"existing": True} if result.existing else {}),
        }

    def excused(self, responses: Responses) -> list[dict[str, Any]]:
        """Returns the violations that exceptions apply to, each with its exception.

        Those whose action an exception weakened are among the results, too.
        """
        about = [
            *responses.excused,
            *(result for result in responses.results if result.excuse is not None),
        ]
        return [
            {**self.result(result), "exception": exception_fields(result.excuse)}
            for result in about
            if result.excuse is not None
        ]

    def described(self, constraint: Constraint) -> dict[str, Any]:
        """Returns the fields of a constraint that all its results share."""
        key = constraint.kind, constraint.name
        known = self._constraints.get(key)
        if known is None or known[0] is not constraint:
            known = self._constraints[key] = constraint, self._describe(constraint)
        return known[1]

    def written(self, constraint: Constraint) -> bytes:
        """Encodes :meth:`described`; raises :class:`TypeError` if orjson cannot."""
        key = constraint.kind, constraint.name
        known = self._written.get(key)
        if known is None or known[0] is not constraint:
            known = self._written[key] = (
                constraint,
                compact(orjson.dumps(self.described(constraint))),
            )
        return known[1]

    def _describe(self, constraint: Constraint) -> dict[str, Any]:
        described: dict[str, Any] = {
            "constraint": _constraint(constraint),
            "template": constraint.kind.lower(),
        }
        generation = self._generations.get(constraint.kind)
        if generation is not None:
            described["templateGeneration"] = generation
        return described


NO_POLICIES: Final = RecordedPolicies()


class ReviewOutcome(NamedTuple):
    """The outcome of a review beside its results.

    ``allowed`` is None if failurePolicy decides. ``error`` is why there is no verdict, ``refusal``
    why a request was denied by no policy; both may be empty. ``queue_ns`` is the time a request
    waited before its review began.
    """

    allowed: bool | None = True
    code: int = 200
    error: str = ""
    refusal: str = ""
    policies: RecordedPolicies = NO_POLICIES
    duration_ns: int = 0
    queue_ns: int = 0


def admission_record(
    decision_id: str,
    request: AdmissionRequest,
    responses: Responses | None,
    outcome: ReviewOutcome,
    *,
    include_objects: bool = False,
    include_answers: bool = False,
) -> dict[str, Any]:
    """Returns the record of one admission; ``responses`` is None without a review."""
    document = request.document
    user = document.get("userInfo") or _NOBODY
    group, version, kind = request.kind
    # A DELETE carries the object as oldObject.
    subject = request.object if request.object is not None else request.old_object
    allowed, code, _, _, policies, duration_ns, queue_ns = outcome
    record: dict[str, Any] = {
        "eventType": "decision",
        "id": decision_id,
        "timestamp": timestamp(),
        "enforcementPoint": ENFORCEMENT_POINT,
        "requestUID": request.uid,
        "verdict": "allow",
        "operation": request.operation,
        "dryRun": request.dry_run,
        "resourceGroup": group,
        "resourceAPIVersion": version,
        "resourceKind": kind,
        "resourceNamespace": request.namespace,
        "resourceName": request.name or ("" if subject is None else name_of(subject)),
        "resourceLabels": _NOBODY if subject is None else labels_of(subject),
        "requestResource": document.get("resource"),
        "requestSubresource": request.sub_resource,
        "requestUsername": request.username,
        "requestUserUID": user.get("uid", ""),
        "requestUserGroups": user.get("groups") or (),
        "policyDigest": policies.digest,
        "policyRevision": policies.revision,
        "durationNs": duration_ns,
        "queueDurationNs": queue_ns,
        "code": code,
    }
    if allowed is not None:
        record["allowed"] = allowed
    if request.failure_policy:
        record["failurePolicy"] = request.failure_policy
    if responses is not None:
        record["constraintsEvaluated"] = responses.evaluated
        if responses.recalled:
            record.update(MEMO)
        if responses.answers:
            record["externalData"] = calls_of(responses.answers, include_answers=include_answers)
    judge(record, responses, outcome.allowed, outcome.error, outcome.refusal, outcome.policies)
    if include_objects:
        record["object"] = request.object
        record["oldObject"] = request.old_object
        record["userInfo"] = user
        record["requestOptions"] = document.get("options")
    return record


def calls_of(answers: ProviderAnswers, *, include_answers: bool) -> list[dict[str, Any]]:
    """Lists the calls to providers, and with ``include_answers`` their answers."""
    return [
        {
            "provider": request.provider,
            "keys": list(request.keys),
            "statusCode": response.status_code,
            "cached": response.is_cached,
            "millis": round(response.milliseconds, 3),
            **(_answered(response) if include_answers else {}),
        }
        for request, response in answers.items()
    ]


def _answered(response: ProviderResponse) -> dict[str, Any]:
    fields: dict[str, Any] = {"idempotent": response.is_idempotent}
    for name, pairs in (("responses", response.responses), ("errors", response.errors)):
        if pairs is not None:
            fields[name] = [list(pair) for pair in pairs]
    if response.system_error:
        fields["systemError"] = response.system_error
    return fields


def unread_record(decision_id: str, request_uid: str, error: str) -> dict[str, Any]:
    """The record of a request that was refused because it cannot be reviewed, or even be read."""
    return {
        "eventType": "decision",
        "id": decision_id,
        "timestamp": timestamp(),
        "enforcementPoint": ENFORCEMENT_POINT,
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
    include_answers: bool = False,
) -> dict[str, Any]:
    """Returns the record of one object reviewed by the audit run ``audit_id``, or between two."""
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
        "policyDigest": outcome.policies.digest,
        "policyRevision": outcome.policies.revision,
        "durationNs": outcome.duration_ns,
    }
    if audit_id:
        record["auditID"] = audit_id
    if responses is not None:
        record["constraintsEvaluated"] = responses.evaluated
        if responses.answers:
            record["externalData"] = calls_of(responses.answers, include_answers=include_answers)
    judge(record, responses, outcome.allowed, outcome.error, outcome.refusal, outcome.policies)
    if include_objects:
        record["object"] = obj
    return record


def excuses(responses: Responses) -> bool:
    """Whether an exception excuses something of it."""
    return bool(responses.excused) or any(result.excuse is not None for result in responses.results)


def exception_fields(excuse: Excuse) -> dict[str, str]:
    """Returns the fields of an exception in a record; empty ones are left out."""
    fields = {
        "kind": excuse.kind,
        "namespace": excuse.namespace,
        "name": excuse.name,
        "effect": excuse.effect,
        "reason": excuse.reason,
        "ticket": excuse.ticket,
        "owner": excuse.owner,
        "expires": excuse.expires,
    }
    return {name: value for name, value in fields.items() if value}


def verdict_of(results: Sequence[Result]) -> DecisionVerdict:
    """Returns the gravest action among results: deny, then warn, then dryrun; allow without any."""
    if results and results[0].enforcement_action == "deny":  # the gravest is always the first
        return "deny"
    actions = {result.enforcement_action for result in results}
    if "scoped" in actions:
        actions = {action for result in results for action in result.actions}
    for verdict in _GRAVITY:
        if verdict in actions:
            return verdict
    return "allow"


def why(allowed: bool, code: int, message: str) -> tuple[str, str]:
    """Returns why there is no verdict, and why a request was denied by no policy; empty if not so."""
    if allowed:
        return "", ""
    return ("", message) if code == 403 else (message, "")


def judge(
    record: dict[str, Any],
    responses: Responses | None,
    allowed: bool | None,
    error: str,
    refusal: str,
    policies: RecordedPolicies,
    *,
    written: Callable[[Result], Any] | None = None,
) -> None:
    """Adds the findings to a record, each result as encoded by ``written``, and the verdict.

    The other arguments are those of :class:`ReviewOutcome`.
    """
    faults: list[str] = []
    if responses is not None:
        if responses.results:
            record["results"] = list(map(written or policies.result, responses.results))
            record["verdict"] = verdict_of(responses.results)
        if excuses(responses):
            record["excused"] = policies.excused(responses)
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
    if allowed is False and refusal and record["verdict"] == "allow":
        record["verdict"] = "deny"
        faults.append(refusal)
    if faults:
        record["errors"] = faults


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
    group, _, version = str(constraint.document.get("apiVersion", "")).partition("/")
    described = {
        "group": group,
        "version": version,
        "kind": constraint.kind,
        "name": constraint.name,
    }
    if metadata.get("generation"):
        described["generation"] = metadata["generation"]
    if metadata.get("annotations"):
        described["annotations"] = metadata["annotations"]
    return described
