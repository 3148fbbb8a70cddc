"""The current state of an exception: its status, and the time of its next change."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from webhook.api.shapes import status_of
from webhook.api.timestamp import seconds_of, text_of
from webhook.exceptions import reading
from webhook.exceptions.exception import ANY
from webhook.exceptions.permission import closed_by
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.api.shapes import Json
    from webhook.constraint.constraint import Constraint
    from webhook.exceptions.exception import PolicyException
    from webhook.exceptions.stage import Excusing

ExceptionState: TypeAlias = Literal["Pending", "Active", "Unused", "Expired", "Invalid"]

UNUSED_SECONDS: Final = 30 * 24 * 3600.0
"""The time after which an unused exception counts as unused, in seconds: monthly jobs and roll-outs
run within it."""

USE_SECONDS: Final = 60.0
"""The shortest time between two writes of an exception's last use, in seconds."""

NOTICE_SECONDS: Final = 7 * 24 * 3600.0
"""The time before its end at which an Event announces it, in seconds."""


_ENDS: Final = "it ends at"

_BECAUSE: Final = "its conditions could not be evaluated: "

UNKNOWN: Final = f"an object was not excused, because {_BECAUSE}"
"""The words before an error of an exception's conditions."""

_BETWEEN: Final = "; "
"""The separator of notes in a message."""


class ExceptionVerdict(NamedTuple):
    """The state of an exception and why it is so."""

    state: ExceptionState
    message: str = ""


class ExceptionEvent(NamedTuple):
    """The text of an Event about an exception."""

    reason: str
    message: str
    is_warning: bool


@dataclass(frozen=True, slots=True)
class ExceptionFacts:
    """The facts about an exception beside its text.

    ``item`` is None for an unreadable one, with the reason in ``error``. ``used_at`` is the time of
    its last use, 0 for never. ``condition_fault`` is the last error of its conditions.
    """

    item: PolicyException | None
    constraints: Mapping[tuple[str, str], Constraint]
    error: str = ""
    used_at: float = 0.0
    condition_fault: str = ""

    @property
    def is_unread(self) -> bool:
        """Returns whether nothing is known yet, not even a fault."""
        return self.item is None and not self.error


def judge(document: Mapping[str, Any], facts: ExceptionFacts, now: float) -> ExceptionVerdict:
    """Returns the state of an exception at a time, in seconds since the epoch."""
    item = facts.item
    if item is None:
        return ExceptionVerdict("Invalid", facts.error)
    if item.ends <= now:
        return ExceptionVerdict("Expired", f"it ended at {item.excuse.expires}")
    if (why := _nothing_to_excuse(item, facts.constraints)) is not None:
        return ExceptionVerdict("Invalid", why)
    notes = [
        *reading.warnings_of_exception(document),
        *_notes(item, facts.constraints, _fault(document, item, facts.condition_fault)),
    ]
    if item.begins > now:
        return ExceptionVerdict(
            "Pending", _BETWEEN.join([f"it begins at {text_of(item.begins)}", *notes])
        )
    if item.ends - now <= NOTICE_SECONDS:
        notes.insert(0, f"{_ENDS} {item.excuse.expires}")
    last = max(facts.used_at, _seconds(status_of(document).get("lastUsed")))
    since = max(last, item.begins, _seconds(document["metadata"].get("creationTimestamp")))
    if now - since >= UNUSED_SECONDS:
        days = int((now - since) // 86400)
        notes.insert(0, f"it has excused nothing for {days} days: it may not be needed any more")
        return ExceptionVerdict("Unused", _BETWEEN.join(notes))
    return ExceptionVerdict("Active", _BETWEEN.join(notes))


def _notes(
    item: PolicyException, constraints: Mapping[tuple[str, str], Constraint], condition_fault: str
) -> Iterator[str]:
    """Yields reasons why it may excuse less than intended."""
    if missing := missing_constraints(item, constraints):
        yield f"there is no constraint {', '.join(missing)}"
    for key in item.constraints:
        if key in constraints and (fault := closed_by(item, [constraints[key]])) is not None:
            yield fault.message
    if condition_fault:
        yield f"{UNKNOWN}{condition_fault}"


def _fault(document: Mapping[str, Any], item: PolicyException, fault: str) -> str:
    """Returns the fault of conditions in the status; else ``fault``, which reviews of this process had.

    A fault stays in the status until the spec changes: only the replica with the review knows it,
    and all replicas must write the same status.
    """
    generation, status = document["metadata"].get("generation", 0), status_of(document)
    if status.get("observedGeneration") == generation:
        reported = str(status.get("message", "")).partition(_BECAUSE)[2]
        if reported:
            return reported
    return fault if item.generation == generation else ""


def warnings_after_reviews(
    excusing: Excusing, constraints: Mapping[tuple[str, str], Constraint]
) -> Iterator[tuple[PolicyException, str]]:
    """Yields each exception that excuses less than it states, with the reason."""
    for item in excusing.exceptions:
        for note in _notes(item, constraints, excusing.condition_faults.get(item.excuse.title, "")):
            yield item, note


def missing_constraints(
    item: PolicyException, constraints: Mapping[tuple[str, str], Constraint]
) -> list[str]:
    """Returns the named constraints that do not exist."""
    kinds = {kind for kind, _ in constraints}
    return [
        f"{kind}/{name}"
        for kind, name in item.constraints
        if (kind not in kinds if name == ANY else (kind, name) not in constraints)
    ]


def _nothing_to_excuse(
    item: PolicyException, constraints: Mapping[tuple[str, str], Constraint]
) -> str | None:
    """Returns why none of its constraints allows an exception; None if one does."""
    missing = missing_constraints(item, constraints)
    if len(missing) == len(item.constraints):
        return f"there is no constraint {', '.join(missing)}"
    faults = []
    for key in item.constraints:
        if key not in constraints:
            if key[1] == ANY:
                return None
            continue
        fault = closed_by(item, [constraints[key]])
        if fault is None:
            return None
        faults.append(fault.message)
    return "; ".join(faults)


def next_status(document: Mapping[str, Any], facts: ExceptionFacts, now: float) -> Json | None:
    """Returns the new status of an exception; None if it is unchanged.

    The time of the last use is written after a minute, or with another change.
    """
    before = status_of(document)
    verdict = judge(document, facts, now)
    desired: Json = {
        "state": verdict.state,
        "observedGeneration": document["metadata"].get("generation", 0),
    }
    if verdict.message:
        desired["message"] = verdict.message
    last_used = before.get("lastUsed")
    if last_used:
        desired["lastUsed"] = last_used
    is_due = facts.used_at - _seconds(last_used) >= USE_SECONDS
    if facts.used_at and (is_due or desired != before) and facts.used_at > _seconds(last_used):
        desired["lastUsed"] = text_of(facts.used_at)
    return None if desired == before else desired


def state_of(status: Mapping[str, Any]) -> str:
    """Returns the state in a status; empty for none."""
    state = status.get("state")
    return state if type(state) is str else ""


def ended_at(document: Mapping[str, Any]) -> float:
    """Returns the end in an exception's text; infinite without a valid time."""
    try:
        return reading.seconds_of(document["spec"]["expires"])
    except (KeyError, TypeError, ValueError):
        return math.inf


def event_of(before: Mapping[str, Any], after: Mapping[str, Any]) -> ExceptionEvent | None:
    """Returns the news for an Event, from one status to the next."""
    state, message = state_of(after), str(after.get("message", ""))
    if _announces_end(after) and not _announces_end(before):
        return ExceptionEvent("Expiring", message, is_warning=True)
    if state != state_of(before) and state in ("Expired", "Invalid", "Unused"):
        return ExceptionEvent(state, message, is_warning=state != "Unused")
    return None


def _announces_end(status: Mapping[str, Any]) -> bool:
    """Returns whether a status announces the end of the exception."""
    notes = str(status.get("message", "")).split(_BETWEEN)
    return any(note.startswith(_ENDS) for note in notes)


def seconds_to_change(item: PolicyException | None, keep_seconds: float, now: float) -> float:
    """Returns the time until the next change by the clock alone, in seconds."""
    if item is None:
        return math.inf
    moments = [item.begins, item.ends - NOTICE_SECONDS, item.ends]
    if keep_seconds:
        moments.append(item.ends + keep_seconds)
    return min((moment - now for moment in moments if moment > now), default=math.inf)


def _seconds(text: Any) -> float:
    try:
        return seconds_of(text)
    except (TypeError, ValueError):
        return 0.0
