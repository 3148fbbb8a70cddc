"""The records of staged roll-outs, kept in the constraints' statuses.

:mod:`webhook.constraint.rollout` decides the record. This module gives it the evidence: the
replicas that enforce the current stage, and the time of the last violation. The writer of the
status takes the step by compare-and-swap, so that each step is taken once. Each step causes an
Event and a record of the decision log.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from webhook.api import pod_status
from webhook.api.pod_status import SIGNATURE, Pod
from webhook.api.shapes import Json, status_of
from webhook.api.timestamp import seconds_of
from webhook.constraint.errors import InvalidConstraint
from webhook.constraint.rollout import (
    ABORTED,
    CLOCKS_SECONDS,
    DURATION_SECONDS_MAX,
    ENFORCE,
    PREVIEW,
    Evidence,
    Rollout,
    RolloutRecord,
    effective_action,
    next_record,
    read_record,
    read_rollout,
    seconds_to_next,
)
from webhook.controllers.revisions.rollout_records import FIELD, RolloutRecords
from webhook.controllers.status.conditions import replicas
from webhook.controllers.status.convergence import Standing, converge
from webhook.controllers.status.statuses import signed_bytes
from webhook.events.policies import EventWriter, event

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.controllers.status_kinds import LabelledSubject

_STAGED: Final = (pod_status.CONSTRAINT.kind, pod_status.MUTATOR.kind)
"""The status kinds of objects that can be rolled out in stages."""


AHEAD_SECONDS: Final = DURATION_SECONDS_MAX / 20 + CLOCKS_SECONDS
"""How far the time of a violation may be ahead, in seconds: it is rounded up by a twentieth of the
wait."""

RECORD: Final = "rollout_step"
"""The event's name in the decision log."""


class RecordEvent(Protocol):
    """Takes an event for the decision log; never waits."""

    def __call__(self, event: str, **details: str | int) -> None:
        """Records an event, if there is a decision log."""


class RolloutKeeper:
    """Keeps the records, for the writers of statuses."""

    def __init__(
        self, events: EventWriter, pod: Pod, record: RecordEvent, records: RolloutRecords
    ) -> None:
        """``record`` writes to the decision log; ``records`` decide which records count."""
        self._records = records
        self._events = events
        self._pod = pod
        self._record = record
        self._due: dict[LabelledSubject, float] = {}
        self._violated: dict[LabelledSubject, float] = {}
        self._totals: dict[LabelledSubject, int] = {}

    # --- evidence ------------------------------------------------------------------------------
    # A reported violation counts for good: a user with rights on the status may remove it there.

    def status_changed(self, subject: LabelledSubject, status: Mapping[str, Any]) -> None:
        """Takes the last violation from a replica's current status."""
        violated = _time(status_of(status).get("lastViolation"))
        if violated is not None:
            violated = min(violated, time.time() + AHEAD_SECONDS)
            self._violated[subject] = max(violated, self._violated.get(subject, 0.0))

    def seen(self, subject: LabelledSubject, document: Mapping[str, Any] | None) -> None:
        """Takes an object with its audit results; None if it was deleted."""
        if document is None:
            self._violated.pop(subject, None)
            self._totals.pop(subject, None)
        elif (total := _count(status_of(document).get("totalViolations"))) is not None:
            self._totals[subject] = max(total, self._totals.get(subject, 0))

    def _total(
        self,
        subject: LabelledSubject,
        document: Mapping[str, Any],
        record: RolloutRecord | None,
    ) -> int | None:
        """Returns the highest audit total since the record was written.

        The current total replaces it once the record has counted it.
        """
        now = _count(status_of(document).get("totalViolations"))
        most = self._totals.get(subject)
        if now is not None and (most is None or (record and (record.total or 0) >= most)):
            most = self._totals[subject] = now
        return most

    # --- the record ----------------------------------------------------------------------------

    def merged(
        self,
        subject: LabelledSubject,
        document: Mapping[str, Any],
        status: Json | None,
        statuses: Sequence[Mapping[str, Any]],
        pods: Iterable[Mapping[str, Any]],
    ) -> Json | None:
        """Returns the whole status with its record; None if the object has it.

        ``status`` is the status without the record, None if nothing else differs.
        """
        self._due.pop(subject, None)
        if subject.kind not in _STAGED or not self._records.is_settled:
            return status
        before: Json = dict(status_of(document))
        document = self._records.verified(document)
        try:
            rollout = read_rollout(document)
        except InvalidConstraint:
            return status  # The replicas report the error; the record stays.
        if rollout is None:
            if FIELD not in before:
                return status
            kept = before if status is None else status
            return {name: value for name, value in kept.items() if name != FIELD}
        record = self._next(subject, document, rollout, statuses, pods)
        if record is None:
            return status
        written = self._records.signed(document["metadata"].get("uid", ""), record)
        if written == before.get(FIELD):
            return status
        return (before if status is None else status) | {FIELD: written}

    def _next(
        self,
        subject: LabelledSubject,
        document: Mapping[str, Any],
        rollout: Rollout,
        statuses: Sequence[Mapping[str, Any]],
        pods: Iterable[Mapping[str, Any]],
    ) -> RolloutRecord | None:
        generation = document["metadata"].get("generation", 0)
        record = read_record(document.get("status"))
        action = effective_action(rollout, record, generation)
        genuine = [
            item
            for item in statuses
            if self._records.is_genuine(status_of(item).get(SIGNATURE), signed_bytes(item))
        ]
        # A roll-out waits for a replica without a genuine status.
        standings = converge(document, genuine, replicas(pods, statuses)).standings
        states = [_is_at(item, action) for item in standings]
        begun = record is not None and record.generation == generation
        if not begun and not any(states):
            # The previous generation stays in force, so its record must stay if no replica can
            # enforce the new one.
            return None
        now = time.time()
        evidence = Evidence(
            enforced=bool(states) and all(states),
            last_violation=self._violated.get(subject),
            total=self._total(subject, document, record),
            audited=now,  # The audit time in the status is not used: a user with rights on it may set it back.
        )
        following = next_record(rollout, record, generation, evidence, now)
        if following != record:
            uid = document["metadata"].get("uid", "")
            sequence = self._records.following(uid, generation)
            following = replace(following, sequence=sequence)
        seconds = seconds_to_next(rollout, following, evidence, now)
        if seconds < math.inf:
            self._due[subject] = time.monotonic() + seconds
        return following

    def due(self, subject: LabelledSubject) -> float | None:
        """Returns when to look again, on the monotonic clock: when a stage may end."""
        return self._due.get(subject)

    async def written(
        self, subject: LabelledSubject, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> None:
        """Records the roll-out step of a status write, if it was one."""
        if subject.kind not in _STAGED:
            return
        self._records.verified(after)
        old, new = read_record(before.get("status")), read_record(after.get("status"))
        if new is None or (old is not None and (old.steps, old.state) == (new.steps, new.state)):
            return
        before_ = old if old is not None and old.generation == new.generation else None
        message = step_text(before_, new)
        self._record(
            RECORD,
            kind=after["kind"],
            name=subject.name,
            generation=new.generation,
            action=new.steps[-1].action,
            state=new.state,
            message=message,
        )
        is_warning = new.state == ABORTED
        action = new.steps[-1].action.capitalize()
        reason = f"Rollout{new.state}" if _same_action(before_, new) else f"RolloutTo{action}"
        instance = self._pod.name
        await self._events.write(
            event(after, reason, message, instance=instance, is_warning=is_warning)
        )


def _is_at(item: Standing, action: str) -> bool:
    """Whether a replica is at a stage's enforcement action."""
    if action in (PREVIEW, ENFORCE):
        return item.state == ("previewed" if action == PREVIEW else "enforced")
    return item.state == "enforced" and item.action == action


def step_text(old: RolloutRecord | None, new: RolloutRecord) -> str:
    """Describes the step between two records of a generation; ``old`` is None at its beginning."""
    action, state = new.steps[-1].action, new.state.lower()
    if old is None:
        return f"roll-out begins: enforced as {action} ({state})"
    if _same_action(old, new):
        return f"roll-out {state}; enforced as {action}"
    return f"enforced as {action} from now on, {old.steps[-1].action} before ({state})"


def _same_action(old: RolloutRecord | None, new: RolloutRecord) -> bool:
    return old is not None and old.steps[-1].action == new.steps[-1].action


def _time(text: object) -> float | None:
    try:
        return seconds_of(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _count(value: object) -> int | None:
    return value if type(value) is int else None
