"""Replays recorded reviews with another set of policies, and finds changed verdicts."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import field
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.api.admission import InvalidReview, read_request
from webhook.api.shapes import objects_of
from webhook.constraint import enforcement
from webhook.constraint.failure_policy import FAILURE_POLICIES
from webhook.constraint.limits import Limits
from webhook.constraint.placement import request_to_review
from webhook.constraint.review import AugmentedObject, AugmentedReview
from webhook.decisions.exporter.admission import verdict_of
from webhook.decisions.source import actions_of, first_deliveries
from webhook.external_data.exchange import ROUNDS_MAX, has_no_provider, without_providers
from webhook.policies.recorded_answers import answers_of
from webhook.printable import quantity
from webhook.review.loops import review
from webhook.review.subject import Subject
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from webhook.constraint.result import Responses
    from webhook.decisions.exporter.record import DecisionVerdict
    from webhook.external_data.exchange import Ask, ProviderAnswers, ProviderRequest
    from webhook.review.policy_set import PolicySet

ReplayedViolation = tuple[str, str, str]
"""Constraint kind, constraint name, message."""

Excusal = tuple[ReplayedViolation, str, str]
"""A violation, the kind and name of the exception that excuses it, and the exception's effect."""

ActionChange = tuple[ReplayedViolation, str, str]
"""A violation with its recorded actions and the present ones, separated by commas."""

_NOT_RECORDED: Final = "its answer was not recorded (includeAnswers)"
_FROM_REQUEST: Final = (enforcement.WEBHOOK, "")
_REVIEWING: Final = (*_FROM_REQUEST, *enforcement.POINTS)


@dataclass(frozen=True, slots=True)
class ChangedReview:
    """A review with a changed verdict; ``added`` and ``removed`` are violations.

    ``excused`` are violations that exceptions now excuse or weaken, recorded without an exception.
    ``actions`` are those with other actions for another reason, such as a constraint's own action.
    """

    record: Mapping[str, Any]
    before: str
    after: str
    added: tuple[ReplayedViolation, ...]
    removed: tuple[ReplayedViolation, ...]
    errors: tuple[str, ...] = ()
    excused: tuple[Excusal, ...] = ()
    actions: tuple[ActionChange, ...] = ()


class ReplayDifference(NamedTuple):
    """The violations added to, and missing from, the recorded ones."""

    added: int = 0
    removed: int = 0


@dataclass(slots=True)
class Replay:
    """The result of a replay, with counts of skipped records by reason."""

    replayed: int = 0
    differences: dict[tuple[str, str], ReplayDifference] = field(default_factory=dict)
    """Of each constraint and group, by kind and name, whether verdicts changed by it or not."""
    excused: Counter[str] = field(default_factory=Counter)
    """Violations by the exception that excuses or weakens them, recorded without it."""
    changes: list[ChangedReview] = field(default_factory=list)
    other_violations: int = 0
    masked: int = 0
    without_object: int = 0
    without_review: int = 0

    def count(
        self, added: Collection[ReplayedViolation], removed: Collection[ReplayedViolation]
    ) -> None:
        """Counts the added and missing violations of one decision."""
        for key in {violation[:2] for violation in (*added, *removed)}:
            known = self.differences.get(key, ReplayDifference())
            more = sum(violation[:2] == key for violation in added)
            less = sum(violation[:2] == key for violation in removed)
            self.differences[key] = ReplayDifference(known.added + more, known.removed + less)

    def totals(self) -> list[str]:
        """Returns a line for each policy and each exception, over all that was replayed."""
        lines = [
            f"{kind}/{name}: +{counts.added} -{counts.removed}"
            for (kind, name), counts in sorted(self.differences.items())
        ]
        return lines + [
            f"{title} excuses {quantity(number, 'violation')}"
            for title, number in sorted(self.excused.items())
        ]

    def document(self) -> dict[str, Any]:
        """Returns the replay as JSON."""
        return {
            "constraints": [
                {"kind": kind, "name": name, "added": counts.added, "removed": counts.removed}
                for (kind, name), counts in sorted(self.differences.items())
            ],
            **({"excused": dict(sorted(self.excused.items()))} if self.excused else {}),
        }


def excusal_line(item: Excusal) -> str:
    """For people."""
    (kind, name, message), title, effect = item
    return f"{effect} by {title}: {kind}/{name}: {message}"


def excusal_document(item: Excusal) -> dict[str, str]:
    """As JSON."""
    (kind, name, message), title, effect = item
    return {"kind": kind, "name": name, "message": message, "exception": title, "effect": effect}


def action_line(item: ActionChange) -> str:
    """For people."""
    (kind, name, message), before, after = item
    return f"{before} then {after}: {kind}/{name}: {message}"


def action_document(item: ActionChange) -> dict[str, str]:
    """As JSON."""
    (kind, name, message), before, after = item
    return {"kind": kind, "name": name, "message": message, "before": before, "after": after}


def replay(
    records: Iterable[Mapping[str, Any]],
    policies: PolicySet,
    ask: Ask | None = None,
    keys: Collection[tuple[str, str]] | None = None,
) -> Replay:
    """Reviews recorded objects again, and compares the verdicts.

    Providers give the recorded answers, if there are any; else ``ask`` answers. With ``keys``,
    kinds and names of constraints, only changes of these count. A decision that was delivered twice
    counts once.
    """
    replayed = Replay()
    for record in first_deliveries(records):
        if record.get("eventType") != "decision":
            continue
        reviewed = "constraintsEvaluated" in record and record.get("verdict") != "error"
        if not reviewed or record.get("enforcementPoint", "") not in _REVIEWING:
            # Exempted before the review, answered without a verdict, or from no review known here.
            replayed.without_review += 1
            continue
        subject = subject_of(record)
        if subject is None:
            replayed.without_object += 1
            continue
        replayed.replayed += 1
        replayed.masked += "masked" in record
        _compare(record, subject, policies, replayed, ask, keys)
    return replayed


def recorded_requests(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the requests of admissions that were recorded with their objects."""
    return [
        _request(record)
        for record in first_deliveries(records)
        if record.get("eventType") == "decision"
        and record.get("enforcementPoint", "") in _FROM_REQUEST
        and (type(record.get("object")) is dict or type(record.get("oldObject")) is dict)
    ]


def subject_of(record: Mapping[str, Any]) -> AugmentedReview | AugmentedObject | None:
    """Returns the reviewed object; None if it was not recorded."""
    obj = record.get("object")
    if type(obj) is not dict and type(record.get("oldObject")) is not dict:
        return None
    if record.get("enforcementPoint", "") not in _FROM_REQUEST:
        return AugmentedObject(obj) if type(obj) is dict else None
    try:
        return AugmentedReview(request_to_review(read_request(_request(record))))
    except InvalidReview:
        return None


def replayed_subject(
    value: AugmentedReview | AugmentedObject, point: str, limits: Limits, at: float | None = None
) -> Subject:
    """Returns a recorded subject to review again, without mutation: it was already mutated.

    ``at`` is the time of the decision: the exceptions of that time apply.
    """
    return Subject(
        value,
        point=point,
        limits=limits,
        process="audit" if point == enforcement.AUDIT else "webhook",
        mutates=False,
        on_expansion_error="skip",
        at=at,
    )


def policies_of_record(record: Mapping[str, Any], policies: PolicySet) -> PolicySet:
    """Returns the policies of the record's webhook entry: all, or those of a failure policy."""
    written = record.get("failurePolicy")
    entry = next((policy for policy in FAILURE_POLICIES if policy == written), None)
    return policies if entry is None else policies.part(entry)


def recorded_ask(record: Mapping[str, Any], ask: Ask | None = None) -> Ask:
    """Returns recorded answers of providers, if there are any; else ``ask`` answers.

    For one review. The last round has all recorded answers: the decision had some from the cache,
    without a round for them.
    """
    recorded, rounds = answers_of(record), count(1)

    def answered(requests: tuple[ProviderRequest, ...]) -> ProviderAnswers:
        missing = tuple(request for request in requests if request not in recorded)
        more = without_providers(missing, _NOT_RECORDED) if ask is None else ask(missing)
        if next(rounds) >= ROUNDS_MAX:
            return {**more, **recorded}
        known = {key: recorded[key] for key in requests if key in recorded}
        return {**more, **known}

    return answered


def decided_at(record: Mapping[str, Any]) -> float | None:
    """Returns the time of a record, in seconds since the epoch; None if it has none."""
    try:
        return dt.datetime.fromisoformat(str(record.get("timestamp"))).timestamp()
    except ValueError:
        return None


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
        "userInfo": record.get("userInfo")
        or {
            "username": record.get("requestUsername", ""),
            "groups": record.get("requestUserGroups") or [],
        },
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
    ask: Ask | None,
    keys: Collection[tuple[str, str]] | None,
) -> None:
    point = str(record.get("enforcementPoint") or enforcement.WEBHOOK)
    again = replayed_subject(subject, point, Limits(), decided_at(record))
    outcome = review(policies_of_record(record, policies), again, ask=recorded_ask(record, ask))
    responses = outcome.responses
    before = {
        violation: actions_of(result)
        for result in record.get("results", ())
        if (violation := _recorded(result)) and (keys is None or violation[:2] in keys)
    }
    after = {
        (result.constraint.kind, result.constraint.name, result.msg): result.actions
        for result in responses.results
        if keys is None or result.constraint.key in keys
    }
    added, removed = after.keys() - before.keys(), before.keys() - after.keys()
    replayed.count(added, removed)
    excused = _excusals(record, responses, keys)
    replayed.excused.update(title for _, title, _ in excused)
    weakened = {violation for violation, _, _ in excused}
    errors = tuple(str(fault) for fault in (*responses.faults, *responses.undecided))
    verdict = _verdict(responses)
    errors += outcome.faults
    # Violations of policies that are absent here are no effect of these policies.
    undecided = {item.constraint.key for item in responses.undecided}
    is_theirs = keys is None or before != after or bool(excused) or bool(undecided & set(keys))
    if verdict != record.get("verdict") and is_theirs:
        replayed.changes.append(
            ChangedReview(
                record,
                str(record.get("verdict")),
                verdict,
                tuple(sorted(added)),
                tuple(sorted(removed)),
                errors,
                excused,
                tuple(
                    (violation, ",".join(before[violation]), ",".join(after[violation]))
                    for violation in sorted(before.keys() & after.keys() - weakened)
                    if sorted(before[violation]) != sorted(after[violation])
                ),
            )
        )
    elif added or removed:
        replayed.other_violations += 1


def _recorded(result: Mapping[str, Any]) -> ReplayedViolation:
    constraint = result.get("constraint", {})
    return (
        str(constraint.get("kind", "")),
        str(constraint.get("name", "")),
        str(result.get("message", "")),
    )


def _excusals(
    record: Mapping[str, Any], responses: Responses, keys: Collection[tuple[str, str]] | None
) -> tuple[Excusal, ...]:
    """Return the violations that are excused now and were not then, by any exception."""
    known = {_recorded(excusal) for excusal in objects_of(record.get("excused"))}
    return tuple(
        (violation, excuse.title, excuse.effect)
        for result in (*responses.excused, *responses.results)
        if result.excuse is not None
        and (keys is None or result.constraint.key in keys)
        and (violation := (result.constraint.kind, result.constraint.name, result.msg)) not in known
        for excuse in result.excuse.needed
    )


def _verdict(responses: Responses) -> DecisionVerdict:
    """Returns the verdict that a server would record.

    An undecided policy takes the verdict away if it refuses the request, and not if it lets it in.
    It also does where a provider's answer is missing: a server would have it.
    """
    verdict = verdict_of(responses.results)
    if verdict == "deny":
        return verdict
    lacks_answers = any(map(has_no_provider, (responses.answers or {}).values()))
    if any(lacks_answers or item.answer == "reject" for item in responses.undecided):
        return "error"
    return "error" if responses.faults and not responses.results else verdict
