"""Staged roll-out of a constraint: dryrun, then warn, then its own action.

An annotation lists the stages before the spec's action, and the condition that ends each: a time,
quiet (no new violation for a time), or both. The steps so far are recorded in the constraint's
status. The action in force is a pure function of annotation, record and generation, so that all
replicas agree without a leader and the spec stays as its owner wrote it. ::

    waddle.dev/rollout: "dryrun after=24h quiet=6h, warn quiet=1h"

A mutator has one stage, ``preview``, which only time ends: ``preview after=24h``.

A stage without a condition ends only by a change of the annotation. A new generation of the
constraint starts at the first stage again, since nothing is known about it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from webhook.api.gvk import gvk_of
from webhook.api.shapes import Json, object_of
from webhook.api.timestamp import seconds_of, text_of
from webhook.constraint import enforcement
from webhook.constraint.errors import InvalidConstraint
from webhook.duration import duration_seconds
from webhook.printable import type_of
from webhook.values import dataclass

ANNOTATION: Final = "waddle.dev/rollout"
PAUSE: Final = "waddle.dev/rollout-pause"
ABORT: Final = "waddle.dev/rollout-abort"

PREVIEW: Final = "preview"
ENFORCE: Final = "enforce"
"""The actions of a mutator before and after its roll-out."""

MUTATORS: Final = "mutations.gatekeeper.sh"
"""The API group of mutators."""

_STRENGTH: Final = {"dryrun": 0, "warn": 1, "deny": 2, "scoped": 2, PREVIEW: 0, ENFORCE: 2}
"""The order of actions; a roll-out only becomes stricter. A scoped constraint may deny somewhere.
"""

DURATION_SECONDS_MAX: Final = 366 * 86_400.0
"""The longest duration of a stage: a year. Times must not exceed the year 9999."""

TEXT_CHARACTERS_MAX: Final = 1_000
"""The longest annotation: two stages with two conditions each."""

CLOCKS_SECONDS: Final = 300.0
"""The most by which clocks of replicas may differ. A time further ahead was not written by a
replica.
"""

STEPS_MAX: Final = 100
"""The most steps in a record; older ones are dropped. A generation takes three, and one more for
each change of its annotation.
"""

SHOWN_CHARACTERS: Final = 80
"""The most characters of an invalid annotation in a message."""

PROGRESSING: Final = "Progressing"
HOLDING: Final = "Holding"
PAUSED: Final = "Paused"
ABORTED: Final = "Aborted"
COMPLETE: Final = "Complete"


class InvalidRollout(InvalidConstraint):
    """An annotation is invalid; the message names the part, and the expected form."""


@dataclass(frozen=True, slots=True)
class Stage:
    """An action before the last one, with the conditions that end it; without any it does not end."""

    action: str
    after_seconds: float | None = None
    """The least duration of the stage."""
    quiet_seconds: float | None = None
    """How long there must have been no new violation."""

    @property
    def ends(self) -> bool:
        """Whether the stage ends by itself."""
        return self.after_seconds is not None or self.quiet_seconds is not None


@dataclass(frozen=True, slots=True)
class Rollout:
    """The roll-out by the annotations and the spec."""

    stages: tuple[Stage, ...]
    final: str
    paused: bool = False
    aborted: bool = False

    @property
    def actions(self) -> tuple[str, ...]:
        """Returns all actions in order."""
        return (*(stage.action for stage in self.stages), self.final)


@dataclass(frozen=True, slots=True)
class RolloutStep:
    """A stage that has begun."""

    action: str
    since: float
    """Seconds since the epoch, whole because it is stored as text."""


@dataclass(frozen=True, slots=True)
class RolloutRecord:
    """The steps of one generation so far; the last one is in force."""

    generation: int
    steps: tuple[RolloutStep, ...]
    state: str
    total: int | None = None
    """The number of violations in the last audit, while steps are left."""
    increased: float | None = None
    """When an audit last found more violations than before, in seconds since the epoch."""
    sequence: int = 0
    """A counter of changes: of two records of a generation the one with the higher number counts.
    """

    def document(self) -> Json:
        """Returns the record as ``status.rollout``."""
        record: Json = {
            "observedGeneration": self.generation,
            "sequence": self.sequence,
            "state": self.state,
            "action": self.steps[-1].action,
            "steps": [{"action": step.action, "since": text_of(step.since)} for step in self.steps],
        }
        if self.total is not None:
            record["auditedViolations"] = self.total
        if self.increased is not None:
            record["increasedAt"] = text_of(self.increased)
        return record


@dataclass(frozen=True, slots=True)
class Evidence:
    """The facts on which the next step depends."""

    enforced: bool
    """Whether every replica enforces this generation at the present stage."""
    last_violation: float | None = None
    """When a replica last saw a violation, in seconds since the epoch."""
    total: int | None = None
    """The number of violations in the last audit."""
    audited: float | None = None
    """The time of the last audit."""


def read_rollout(document: Mapping[str, Any]) -> Rollout | None:
    """Returns the roll-out of a constraint; None without the annotation.

    Raises :class:`~webhook.constraint.errors.InvalidConstraint`.
    """
    annotations = object_of(object_of(document.get("metadata")).get("annotations"))
    text = annotations.get(ANNOTATION)
    if text is None:
        return None
    if type(text) is not str:
        raise InvalidRollout(f"{ANNOTATION}: expected a string, got {type_of(text)}")
    if len(text) > TEXT_CHARACTERS_MAX:
        raise InvalidRollout(f"{ANNOTATION}: longer than {TEXT_CHARACTERS_MAX} characters")
    if gvk_of(document).group == MUTATORS:
        final = ENFORCE
        stages = tuple(_stage(part.split(), (PREVIEW,)) for part in text.split(","))
        if any(stage.quiet_seconds is not None for stage in stages):
            raise InvalidRollout(
                f"{ANNOTATION}: the stage of a mutator ends by time (after=) alone"
            )
    else:
        final = enforcement.action_of(document)
        stages = tuple(_stage(part.split(), ("dryrun", "warn")) for part in text.split(","))
    ranks = [_STRENGTH[stage.action] for stage in stages] + [_STRENGTH.get(final, 2)]
    if any(first >= second for first, second in pairwise(ranks)):
        shown = ", ".join([stage.action for stage in stages] + [final])
        raise InvalidRollout(
            f"{ANNOTATION}: each stage must be stricter than the one before it, got {shown}"
        )
    return Rollout(stages, final, _flag(annotations, PAUSE), _flag(annotations, ABORT))


def _stage(words: Sequence[str], actions: Sequence[str]) -> Stage:
    if not words or words[0] not in actions:
        raise InvalidRollout(
            f"{ANNOTATION}: a stage begins with {' or '.join(actions)}, "
            f"got {' '.join(words)[:SHOWN_CHARACTERS]!r}"
        )
    conditions: dict[str, float] = {}
    for word in words[1:]:
        name, _, value = word.partition("=")
        seconds = duration_seconds(value, too_long=math.inf)
        if name not in {"after", "quiet"} or name in conditions or seconds is None or seconds < 0:
            raise InvalidRollout(
                f"{ANNOTATION}: expected after=DURATION or quiet=DURATION (as 24h), once each, "
                f"got {word[:SHOWN_CHARACTERS]!r}"
            )
        if seconds > DURATION_SECONDS_MAX:
            raise InvalidRollout(
                f"{ANNOTATION}: {word[:SHOWN_CHARACTERS]!r} is longer than "
                f"{DURATION_SECONDS_MAX / 3600:.0f}h"
            )
        conditions[name] = seconds
    return Stage(words[0], conditions.get("after"), conditions.get("quiet"))


def _flag(annotations: Mapping[str, Any], name: str) -> bool:
    value = annotations.get(name, "false")
    if value not in {"true", "false"}:
        raise InvalidRollout(f"{name}: expected true or false, got {value!r}")
    return bool(value == "true")


def read_record(status: object) -> RolloutRecord | None:
    """Returns the record in a constraint's status; None if it is missing or malformed.

    The caller checks its signature. Without a valid record the roll-out starts again.
    """
    written: Any = object_of(status).get("rollout")
    try:
        steps = tuple(
            RolloutStep(item["action"], seconds_of(item["since"])) for item in written["steps"]
        )
        increased = seconds_of(written["increasedAt"]) if "increasedAt" in written else None
        total = written.get("auditedViolations")
        record = RolloutRecord(
            *(written["observedGeneration"], steps, written["state"], total, increased),
            sequence=written.get("sequence", 0),
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    if not all(type(step.action) is str for step in steps):
        return None
    kinds = (type(record.generation), type(record.sequence), type(record.state))
    sound = kinds == (int, int, str) and type(record.total) in (int, type(None))
    return record if steps and sound and all(step.action in _STRENGTH for step in steps) else None


def violation_time(document: Mapping[str, Any], known: str | None, now: float) -> str | None:
    """Returns the time to report for a violation found now; None if a time is reported already.

    Times are rounded up, so that frequent violations are reported only now and then; this makes a
    quiet period up to a twentieth longer, never shorter. None also if no stage waits for quiet.
    """
    rollout = read_rollout(document)
    quiet = [stage.quiet_seconds for stage in rollout.stages] if rollout is not None else []
    shortest = min((seconds for seconds in quiet if seconds is not None), default=None)
    if shortest is None or (known is not None and seconds_of(known) >= now):
        return None
    return text_of(math.ceil(now + shortest / 20))


def stage_of(document: Mapping[str, Any]) -> str:
    """Returns the action in force by a constraint's annotation and status.

    Empty without a roll-out.

    Also empty for an invalid annotation: such a constraint is refused.
    """
    try:
        rollout = read_rollout(document)
    except InvalidConstraint:
        return ""
    if rollout is None:
        return ""
    generation = document["metadata"].get("generation", 0)
    return effective_action(rollout, read_record(document.get("status")), generation)


def staged(document: Mapping[str, Any], status: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Returns the constraint to enforce, with the action in force instead of its own.

    The result has no roll-out annotation. ``status`` is the current one of the cluster, for any
    revision of the document.
    """
    action = stage_of({**document, "status": status})
    if not action or action == enforcement.action_of(document):
        return document
    metadata = document["metadata"]
    kept = {name: value for name, value in metadata["annotations"].items() if name != ANNOTATION}
    return {
        **document,
        "metadata": {**metadata, "annotations": kept},
        "spec": {**(document.get("spec") or {}), "enforcementAction": action},
    }


def effective_action(rollout: Rollout, record: RolloutRecord | None, generation: int) -> str:
    """Returns the action in force: that of the last step, or of the first stage without a record.

    If the annotation no longer has that step, the strictest stage that is not stricter counts, so
    that a change of the annotation never jumps ahead.
    """
    if rollout.aborted or record is None or record.generation != generation:
        return rollout.actions[0]
    return rollout.actions[_position(rollout, record.steps[-1].action)]


def _position(rollout: Rollout, action: str) -> int:
    """Returns the index of an action, or else of the last stage that is not stricter."""
    if action in rollout.actions:
        return rollout.actions.index(action)
    strength = _STRENGTH[action]
    weaker = [i for i, stage in enumerate(rollout.stages) if _STRENGTH[stage.action] <= strength]
    return max(weaker, default=0)


def next_record(
    rollout: Rollout, record: RolloutRecord | None, generation: int, evidence: Evidence, now: float
) -> RolloutRecord:
    """Returns the next record; the same one if nothing changes.

    At most one step is taken: the next one is considered once this one is in force on every
    replica. ``now`` is in seconds since the epoch.
    """
    began = math.floor(now)
    if record is None or record.generation != generation:
        record = RolloutRecord(
            generation, (RolloutStep(rollout.actions[0], began),), "", evidence.total
        )
    elif rollout.aborted and record.state != ABORTED:
        record = replace(record, steps=(RolloutStep(rollout.actions[0], began),))
    record = _begun(record, now)
    position = _position(rollout, record.steps[-1].action)
    if rollout.actions[position] != record.steps[-1].action:
        record = replace(
            record, steps=(*record.steps, RolloutStep(rollout.actions[position], began))
        )
    if position < len(rollout.stages):
        record = _audited(record, evidence)
    if not rollout.aborted and not rollout.paused and _wait(rollout, record, evidence, now) == 0:
        position += 1
        record = replace(
            record, steps=(*record.steps, RolloutStep(rollout.actions[position], began))
        )
    return replace(record, steps=record.steps[-STEPS_MAX:], state=_state(rollout, position))


def _begun(record: RolloutRecord, now: float) -> RolloutRecord:
    """Returns the record with future times replaced by now, because they would never end."""
    last, until = record.steps[-1], now + CLOCKS_SECONDS
    if last.since > until:
        last = RolloutStep(last.action, math.floor(now))
        record = replace(record, steps=(*record.steps[:-1], last))
    if record.increased is not None and record.increased > until:
        record = replace(record, increased=math.floor(now))
    return record


def _audited(record: RolloutRecord, evidence: Evidence) -> RolloutRecord:
    """Returns the record with the audit's count; the first count is no increase."""
    if evidence.total is None or evidence.total == record.total:
        return record
    if record.total is None or evidence.total < record.total:
        return replace(record, total=evidence.total)
    return replace(record, total=evidence.total, increased=evidence.audited)


def _state(rollout: Rollout, position: int) -> str:
    if rollout.aborted:
        return ABORTED
    if position == len(rollout.stages):
        return COMPLETE
    if rollout.paused:
        return PAUSED
    return PROGRESSING if rollout.stages[position].ends else HOLDING


def seconds_to_next(
    rollout: Rollout, record: RolloutRecord, evidence: Evidence, now: float
) -> float:
    """Returns the seconds until the next check; infinity if time alone changes nothing."""
    if rollout.aborted or rollout.paused:
        return math.inf
    return _wait(rollout, record, evidence, now)


def _wait(rollout: Rollout, record: RolloutRecord, evidence: Evidence, now: float) -> float:
    """Returns the seconds until the present stage may end; 0 if it may."""
    position = _position(rollout, record.steps[-1].action)
    if position == len(rollout.stages) or not evidence.enforced:
        return math.inf
    stage, since = rollout.stages[position], record.steps[-1].since
    if not stage.ends:
        return math.inf
    due = since + (stage.after_seconds or 0)
    if stage.quiet_seconds is not None:
        last = max(since, evidence.last_violation or since, record.increased or since)
        due = max(due, last + stage.quiet_seconds)
    return max(0.0, due - now)
