"""Recorded reviews against another set of policies: which verdicts would have changed."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from webhook.api.admission import InvalidReview, read_request
from webhook.constraint import enforcement
from webhook.constraint.limits import Limits
from webhook.constraint.placement import placed
from webhook.constraint.review import AugmentedObject, AugmentedReview
from webhook.decisions.exporter.admission import verdict_of
from webhook.review.loops import review
from webhook.review.subject import Subject
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.review.policy_set import PolicySet

ReplayedViolation = tuple[str, str, str]
"""Constraint kind, constraint name, message."""

_FROM_REQUEST: Final = (enforcement.WEBHOOK, "")


@dataclass(frozen=True, slots=True)
class ChangedReview:
    """A review whose verdict changed; ``added`` and ``removed`` are violations."""

    record: Mapping[str, Any]
    before: str
    after: str
    added: tuple[ReplayedViolation, ...]
    removed: tuple[ReplayedViolation, ...]
    errors: tuple[str, ...] = ()


@dataclass(slots=True)
class Replay:
    """What a replay found; the counts of what was passed over say why."""

    replayed: int = 0
    changes: list[ChangedReview] = field(default_factory=list)
    other_violations: int = 0
    masked: int = 0
    without_object: int = 0
    without_review: int = 0


def replay(records: Iterable[Mapping[str, Any]], policies: PolicySet) -> Replay:
    """Review again what was recorded with its object, and compare verdicts."""
    replayed = Replay()
    for record in records:
        if record.get("eventType") != "decision":
            continue
        if "constraintsEvaluated" not in record or record.get("verdict") == "error":
            # Exempted before any policy was asked, or answered without a verdict.
            replayed.without_review += 1
            continue
        subject = subject_of(record)
        if subject is None:
            replayed.without_object += 1
            continue
        replayed.replayed += 1
        replayed.masked += "masked" in record
        _compare(record, subject, policies, replayed)
    return replayed


def recorded_requests(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The requests of admissions that were recorded with their objects."""
    return [
        _request(record)
        for record in records
        if record.get("eventType") == "decision"
        and record.get("enforcementPoint", "") in _FROM_REQUEST
        and (type(record.get("object")) is dict or type(record.get("oldObject")) is dict)
    ]


def subject_of(record: Mapping[str, Any]) -> AugmentedReview | AugmentedObject | None:
    """What was reviewed; None where it was not recorded with its object."""
    obj = record.get("object")
    if type(obj) is not dict and type(record.get("oldObject")) is not dict:
        return None
    if record.get("enforcementPoint", "") not in _FROM_REQUEST:
        return AugmentedObject(obj) if type(obj) is dict else None
    try:
        return AugmentedReview(placed(read_request(_request(record))))
    except InvalidReview:
        return None


def replayed_subject(
    value: AugmentedReview | AugmentedObject, point: str, limits: Limits
) -> Subject:
    """What was recorded, to be reviewed again: mutators had changed it before."""
    return Subject(
        value,
        point=point,
        limits=limits,
        process="audit" if point == enforcement.AUDIT else "webhook",
        mutates=False,
        on_expansion_error="skip",
    )


def _request(record: Mapping[str, Any]) -> dict[str, Any]:
    resource = record.get("requestResource")
    return {
        "uid": record.get("requestUID", ""),
        "kind": {
            "group": record.get("resourceGroup", ""),
            "version": record.get("resourceAPIVersion", ""),
            "kind": record.get("resourceKind", ""),
        },
        "resource": resource if type(resource) is dict else {},
        "subResource": record.get("requestSubresource", ""),
        "name": record.get("resourceName", ""),
        "namespace": record.get("resourceNamespace", ""),
        "operation": record.get("operation", ""),
        "userInfo": record.get("userInfo") or {"username": record.get("requestUsername", "")},
        "object": record.get("object"),
        "oldObject": record.get("oldObject"),
        "options": record.get("requestOptions"),
        "dryRun": record.get("dryRun", False),
    }


def _compare(
    record: Mapping[str, Any],
    subject: AugmentedReview | AugmentedObject,
    policies: PolicySet,
    replayed: Replay,
) -> None:
    point = str(record.get("enforcementPoint") or enforcement.WEBHOOK)
    outcome = review(policies, replayed_subject(subject, point, Limits()))
    responses = outcome.responses
    before = {
        (
            str(result.get("constraint", {}).get("kind", "")),
            str(result.get("constraint", {}).get("name", "")),
            str(result.get("message", "")),
        )
        for result in record.get("results", ())
    }
    after = {(one.constraint.kind, one.constraint.name, one.msg) for one in responses.results}
    errors = tuple(str(fault) for fault in (*responses.faults, *responses.undecided))
    verdict = "error" if errors and not responses.results else verdict_of(responses.results)
    errors += outcome.faults
    if verdict != record.get("verdict"):
        replayed.changes.append(
            ChangedReview(
                record,
                str(record.get("verdict")),
                verdict,
                tuple(sorted(after - before)),
                tuple(sorted(before - after)),
                errors,
            )
        )
    elif before != after:
        replayed.other_violations += 1
