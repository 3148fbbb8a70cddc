"""Staged roll-out of a constraint: dryrun, then warn, then what its spec asks for.

An annotation lists the stages before the spec's own action, and what moves the
constraint on: time, quiet (no new violation for a time), or both. What happened
so far is a record in the constraint's status; the action in force is a pure
function of annotation, record and generation, so every replica comes to the same
without a leader, and the spec stays as its owner wrote it. ::

    waddle.dev/rollout: "dryrun after=24h quiet=6h, warn quiet=1h"

A stage without a condition is left only by a change of the annotation. A new
generation of the constraint begins at the first stage again: it is another
policy, and nothing is known of it.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from webhook.constraint import enforcement
from webhook.settings.flags import duration_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.api.pod_status import Json

ANNOTATION: Final = "waddle.dev/rollout"
PAUSE: Final = "waddle.dev/rollout-pause"
ABORT: Final = "waddle.dev/rollout-abort"

_STRENGTH: Final = {"dryrun": 0, "warn": 1, "deny": 2, "scoped": 2}
"""A roll-out only ever becomes stricter. What is scoped may deny somewhere."""

_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"

PROGRESSING: Final = "Progressing"
HOLDING: Final = "Holding"
PAUSED: Final = "Paused"
ABORTED: Final = "Aborted"
COMPLETE: Final = "Complete"


class InvalidRollout(ValueError):  # noqa: N818  # named as the field's other refusals are
    """An annotation that cannot be followed; the message says what of it, and what is expected."""


@dataclass(frozen=True, slots=True)
class Stage:
    """An action before the last one, and what ends it; with neither condition nothing does."""

    action: str
    after_seconds: float | None = None
    """How long it lasts at least."""
    quiet_seconds: float | None = None
    """How long there must have been no new violation."""

    @property
    def ends(self) -> bool:
        """Whether the stage is ever left without anyone's doing."""
        return self.after_seconds is not None or self.quiet_seconds is not None


@dataclass(frozen=True, slots=True)
class Rollout:
    """What the annotations and the spec ask for."""

    stages: tuple[Stage, ...]
    final: str
    paused: bool = False
    aborted: bool = False

    @property
    def actions(self) -> tuple[str, ...]:
        """All actions in their order."""
        return (*(stage.action for stage in self.stages), self.final)


@dataclass(frozen=True, slots=True)
class Step:
    """A stage that was begun."""

    action: str
    since: float
    """Seconds since the epoch, whole: it is kept as text."""


@dataclass(frozen=True, slots=True)
class Record:
    """What happened: the steps of one generation so far, the last one being in force."""

    generation: int
    steps: tuple[Step, ...]
    state: str

    def document(self) -> Json:
        """As it stands in ``status.rollout``."""
        return {
            "observedGeneration": self.generation,
            "state": self.state,
            "action": self.steps[-1].action,
            "steps": [{"action": step.action, "since": _text(step.since)} for step in self.steps],
        }


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known when a step is considered."""

    enforced: bool
    """Whether every replica enforces this generation at the present stage."""
    last_violation: float | None = None
    """When a replica or an audit last saw a new violation, seconds since the epoch."""


def read_rollout(document: Mapping[str, Any]) -> Rollout | None:
    """The roll-out of a constraint; None without the annotation.

    Raises :class:`InvalidRollout`, and
    :class:`~webhook.constraint.errors.InvalidConstraint` for the spec's action.
    """
    annotations = document.get("metadata", {}).get("annotations") or {}
    text = annotations.get(ANNOTATION)
    if text is None:
        return None
    final = enforcement.action_of(document)
    stages = tuple(_stage(part.split()) for part in text.split(","))
    ranks = [_STRENGTH[stage.action] for stage in stages] + [_STRENGTH.get(final, 2)]
    if any(first >= second for first, second in pairwise(ranks)):
        shown = ", ".join([stage.action for stage in stages] + [final])
        raise InvalidRollout(
            f"{ANNOTATION}: each stage must be stricter than the one before it, got {shown}"
        )
    return Rollout(stages, final, _flag(annotations, PAUSE), _flag(annotations, ABORT))


def _stage(words: Sequence[str]) -> Stage:
    if not words or words[0] not in {"dryrun", "warn"}:
        raise InvalidRollout(
            f"{ANNOTATION}: a stage begins with dryrun or warn, got {' '.join(words)!r}"
        )
    found: dict[str, float] = {}
    for word in words[1:]:
        name, _, value = word.partition("=")
        seconds = duration_seconds(value)
        if name not in {"after", "quiet"} or name in found or seconds is None or seconds < 0:
            raise InvalidRollout(
                f"{ANNOTATION}: expected after=DURATION or quiet=DURATION (as 24h), once each, "
                f"got {word!r}"
            )
        found[name] = seconds
    return Stage(words[0], found.get("after"), found.get("quiet"))


def _flag(annotations: Mapping[str, Any], name: str) -> bool:
    value = annotations.get(name, "false")
    if value not in {"true", "false"}:
        raise InvalidRollout(f"{name}: expected true or false, got {value!r}")
    return bool(value == "true")


def read_record(status: Mapping[str, Any] | None) -> Record | None:
    """The record in a constraint's status; None where there is none that can be read.

    Anyone who may write the status may have written it: what makes no sense is
    as if it were not there, and the roll-out begins anew.
    """
    found: Any = (status or {}).get("rollout")
    try:
        steps = tuple(Step(item["action"], _seconds(item["since"])) for item in found["steps"])
        record = Record(found["observedGeneration"], steps, found["state"])
    except (KeyError, TypeError, ValueError):
        return None
    sound = type(record.generation) is int and type(record.state) is str
    sound = sound and all(step.action in _STRENGTH for step in steps)
    return record if steps and sound else None


def effective_action(rollout: Rollout, record: Record | None, generation: int) -> str:
    """The action in force: the last step's, and the first stage's where nothing is recorded.

    A step that the annotation no longer has is as strict as the strictest stage
    that is not stricter: a changed annotation never jumps ahead.
    """
    if rollout.aborted or record is None or record.generation != generation:
        return rollout.actions[0]
    return rollout.actions[_position(rollout, record.steps[-1].action)]


def _position(rollout: Rollout, action: str) -> int:
    """Where among the actions this one is, or else the last stage that is not stricter."""
    if action in rollout.actions:
        return rollout.actions.index(action)
    strength = _STRENGTH[action]
    weaker = [i for i, stage in enumerate(rollout.stages) if _STRENGTH[stage.action] <= strength]
    return max(weaker, default=0)


def next_record(
    rollout: Rollout, record: Record | None, generation: int, evidence: Evidence, now: float
) -> Record:
    """The record that there should be; the same one where nothing is to be said.

    At most one step is taken: the next is considered once this one is in force
    everywhere. ``now`` is in seconds since the epoch.
    """
    began = math.floor(now)
    if record is None or record.generation != generation:
        record = Record(generation, (Step(rollout.actions[0], began),), "")
    elif rollout.aborted and record.state != ABORTED:
        record = replace(record, steps=(Step(rollout.actions[0], began),))
    position = _position(rollout, record.steps[-1].action)
    if rollout.actions[position] != record.steps[-1].action:
        record = replace(record, steps=(*record.steps, Step(rollout.actions[position], began)))
    if not rollout.aborted and not rollout.paused and _wait(rollout, record, evidence, now) == 0:
        position += 1
        record = replace(record, steps=(*record.steps, Step(rollout.actions[position], began)))
    return replace(record, state=_state(rollout, position))


def _state(rollout: Rollout, position: int) -> str:
    if rollout.aborted:
        return ABORTED
    if position == len(rollout.stages):
        return COMPLETE
    if rollout.paused:
        return PAUSED
    return PROGRESSING if rollout.stages[position].ends else HOLDING


def seconds_to_next(rollout: Rollout, record: Record, evidence: Evidence, now: float) -> float:
    """When to look again if nothing happens meanwhile; infinity where time alone changes nothing."""
    if rollout.aborted or rollout.paused:
        return math.inf
    return _wait(rollout, record, evidence, now)


def _wait(rollout: Rollout, record: Record, evidence: Evidence, now: float) -> float:
    """Seconds until the present stage may be left; 0 when it may."""
    position = _position(rollout, record.steps[-1].action)
    if position == len(rollout.stages) or not evidence.enforced:
        return math.inf
    stage, since = rollout.stages[position], record.steps[-1].since
    if not stage.ends:
        return math.inf
    due = since + (stage.after_seconds or 0)
    if stage.quiet_seconds is not None:
        due = max(due, max(since, evidence.last_violation or since) + stage.quiet_seconds)
    return max(0.0, due - now)


def _text(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds, tz=dt.UTC).strftime(_TIME)


def _seconds(text: str) -> float:
    return dt.datetime.strptime(text, _TIME).replace(tzinfo=dt.UTC).timestamp()
