"""Staged roll-out: which action is in force, by annotation and record alone."""

import math
from dataclasses import replace
from typing import Any

import pytest

from webhook.api.timestamp import text_of
from webhook.constraint.rollout import (
    ABORT,
    ANNOTATION,
    PAUSE,
    Evidence,
    InvalidRollout,
    Rollout,
    RolloutRecord,
    RolloutStep,
    Stage,
    effective_action,
    next_record,
    read_record,
    read_rollout,
    seconds_to_next,
    stage_of,
    staged,
    violation_time,
)

HOUR = 3600.0
BEGAN = 1_790_000_000.0
EVERYWHERE = Evidence(enforced=True)


def constraint(action: str = "deny", **annotations: str) -> dict[str, Any]:
    """A constraint with annotations, the first letters of their names given."""
    names = {"rollout": ANNOTATION, "pause": PAUSE, "abort": ABORT}
    return {
        "metadata": {"annotations": {names[key]: value for key, value in annotations.items()}},
        "spec": {"enforcementAction": action},
    }


def rollout(text: str = "dryrun after=24h quiet=6h, warn quiet=1h", **more: str) -> Rollout:
    """The roll-out of a constraint that is to deny."""
    found = read_rollout(constraint(rollout=text, **more))
    assert found is not None
    return found


def begun(plan: Rollout, generation: int = 1) -> RolloutRecord:
    """The first record."""
    return next_record(plan, None, generation, EVERYWHERE, BEGAN)


def test_an_annotation_is_stages_with_what_ends_them() -> None:
    """Without it there is no roll-out."""
    assert rollout() == Rollout(
        (Stage("dryrun", 24 * HOUR, 6 * HOUR), Stage("warn", None, HOUR)), "deny"
    )
    assert rollout("warn").stages == (Stage("warn"),)
    assert read_rollout(constraint()) is None


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (constraint(rollout=""), "begins with dryrun or warn"),
        (constraint(rollout="deny"), "begins with dryrun or warn"),
        (constraint(rollout="dryrun after=soon"), "got 'after=soon'"),
        (constraint(rollout="dryrun after=1h after=2h"), "once each"),
        (constraint(rollout="dryrun never=1h"), "got 'never=1h'"),
        (constraint(rollout="warn, dryrun"), "stricter than the one before it"),
        (constraint("warn", rollout="warn after=1h"), "got warn, warn"),
        (constraint(rollout="warn", pause="yes"), f"{PAUSE}: expected true or false"),
    ],
)
def test_an_annotation_that_cannot_be_followed_is_refused(
    document: dict[str, Any], message: str
) -> None:
    """Naming what of it."""
    with pytest.raises(InvalidRollout, match=message):
        read_rollout(document)


def test_it_is_promoted_by_evidence_step_by_step() -> None:
    """By time and quiet, by quiet, and then it is complete."""
    plan = rollout()
    record = begun(plan)
    assert effective_action(plan, record, 1) == "dryrun"
    noisy = Evidence(enforced=True, last_violation=BEGAN + 20 * HOUR)
    assert next_record(plan, record, 1, noisy, BEGAN + 25 * HOUR) == record
    assert seconds_to_next(plan, record, noisy, BEGAN + 25 * HOUR) == HOUR
    record = next_record(plan, record, 1, noisy, BEGAN + 26 * HOUR)
    assert effective_action(plan, record, 1) == "warn"
    assert record.state == "Progressing"
    # Quiet time before this stage does not count.
    assert next_record(plan, record, 1, noisy, BEGAN + 26.5 * HOUR) == record
    record = next_record(plan, record, 1, noisy, BEGAN + 27 * HOUR)
    assert effective_action(plan, record, 1) == "deny"
    assert record.state == "Complete"
    assert next_record(plan, record, 1, noisy, BEGAN + 900 * HOUR) == record
    assert seconds_to_next(plan, record, noisy, BEGAN + 900 * HOUR) == math.inf


def test_what_the_audit_finds_more_of_is_new_and_what_it_found_first_is_not() -> None:
    """Objects that violated when the policy came are known; quiet is about what comes."""
    plan = rollout("dryrun quiet=2h")
    record = begun(plan)
    at_first = Evidence(enforced=True, total=7, audited=BEGAN + HOUR)
    record = next_record(plan, record, 1, at_first, BEGAN + HOUR)
    assert (record.total, record.increased) == (7, None)
    more = Evidence(enforced=True, total=8, audited=BEGAN + 1.5 * HOUR)
    record = next_record(plan, record, 1, more, BEGAN + 1.5 * HOUR)
    assert (record.total, record.increased) == (8, BEGAN + 1.5 * HOUR)
    less = Evidence(enforced=True, total=2, audited=BEGAN + 3 * HOUR)
    record = next_record(plan, record, 1, less, BEGAN + 3 * HOUR)
    assert effective_action(plan, record, 1) == "dryrun"
    assert read_record({"rollout": record.document()}) == record
    record = next_record(plan, record, 1, less, BEGAN + 3.5 * HOUR)
    assert effective_action(plan, record, 1) == "deny"
    # Complete, nothing more is recorded: each audit would be a write.
    assert next_record(plan, record, 1, more, BEGAN + 9 * HOUR) == record


def test_a_constraint_is_enforced_with_the_action_of_its_stage() -> None:
    """In place of its own, whatever else its spec says; without the annotation it is itself."""
    document = constraint(rollout="dryrun after=1h")
    document["metadata"]["generation"] = 1
    document["spec"]["parameters"] = {"a": 1}
    found = staged(document, None)
    assert found["spec"] == {"enforcementAction": "dryrun", "parameters": {"a": 1}}
    assert read_rollout(found) is None
    assert document["spec"]["enforcementAction"] == "deny"
    plan = rollout("dryrun after=1h")
    done = next_record(plan, begun(plan), 1, EVERYWHERE, BEGAN + HOUR).document()
    assert staged(document, {"rollout": done}) is document
    assert stage_of({**document, "status": {"rollout": done}}) == "deny"
    plain = constraint()
    assert staged(plain, None) is plain
    assert stage_of(plain) == ""


def test_no_step_is_taken_while_a_replica_is_behind() -> None:
    """A stage that is not in force everywhere has shown nothing."""
    plan = rollout("dryrun after=1h")
    record = begun(plan)
    behind = Evidence(enforced=False)
    assert next_record(plan, record, 1, behind, BEGAN + 50 * HOUR) == record
    assert seconds_to_next(plan, record, behind, BEGAN + 50 * HOUR) == math.inf


def test_a_stage_without_a_condition_is_left_only_by_its_annotation() -> None:
    """Someone decides; the step is kept when the annotation then changes."""
    plan = rollout("dryrun, warn after=1h")
    record = begun(plan)
    assert record.state == "Holding"
    assert next_record(plan, record, 1, EVERYWHERE, BEGAN + 900 * HOUR) == record
    plan = rollout("warn after=1h")
    record = next_record(plan, record, 1, EVERYWHERE, BEGAN + 900 * HOUR)
    assert effective_action(plan, record, 1) == "warn"
    assert record.steps[-1] == RolloutStep("warn", BEGAN + 900 * HOUR)


def test_paused_it_stays_where_it_is_and_goes_on_afterwards() -> None:
    """The time of the pause counts: the policy was in force, and watched."""
    plan = rollout("dryrun after=1h")
    paused = replace(plan, paused=True)
    record = next_record(paused, begun(plan), 1, EVERYWHERE, BEGAN + 2 * HOUR)
    assert (record.state, effective_action(paused, record, 1)) == ("Paused", "dryrun")
    assert seconds_to_next(paused, record, EVERYWHERE, BEGAN + 2 * HOUR) == math.inf
    record = next_record(plan, record, 1, EVERYWHERE, BEGAN + 2 * HOUR)
    assert effective_action(plan, record, 1) == "deny"


def test_aborted_it_is_back_at_its_first_stage_at_once_and_begins_there_again() -> None:
    """Before anyone has written a record of it, too."""
    plan = rollout("dryrun after=1h, warn after=1h")
    record = next_record(plan, begun(plan), 1, EVERYWHERE, BEGAN + HOUR)
    assert effective_action(plan, record, 1) == "warn"
    aborted = replace(plan, aborted=True)
    assert effective_action(aborted, record, 1) == "dryrun"
    record = next_record(aborted, record, 1, EVERYWHERE, BEGAN + 9 * HOUR)
    assert (record.state, record.steps) == ("Aborted", (RolloutStep("dryrun", BEGAN + 9 * HOUR),))
    assert next_record(aborted, record, 1, EVERYWHERE, BEGAN + 99 * HOUR) == record
    record = next_record(plan, record, 1, EVERYWHERE, BEGAN + 9.5 * HOUR)
    assert (record.state, effective_action(plan, record, 1)) == ("Progressing", "dryrun")


def test_a_new_generation_begins_at_the_first_stage() -> None:
    """It is another policy; its first stage is in force before it is recorded, too."""
    plan = rollout("dryrun after=1h")
    record = next_record(plan, begun(plan), 1, EVERYWHERE, BEGAN + HOUR)
    assert effective_action(plan, record, 1) == "deny"
    assert effective_action(plan, record, 2) == "dryrun"
    record = next_record(plan, record, 2, EVERYWHERE, BEGAN + 2 * HOUR)
    assert (record.generation, record.steps) == (2, (RolloutStep("dryrun", BEGAN + 2 * HOUR),))


def test_one_step_at_a_time_however_late_anyone_looks() -> None:
    """Each stage is enforced for its time at least."""
    plan = rollout("dryrun after=1h, warn after=1h")
    record = next_record(plan, begun(plan), 1, EVERYWHERE, BEGAN + 900 * HOUR)
    assert effective_action(plan, record, 1) == "warn"
    assert next_record(plan, record, 1, EVERYWHERE, BEGAN + 900 * HOUR) == record


def test_two_replicas_that_look_at_the_same_moment_write_the_same() -> None:
    """The second replica finds nothing left to write."""
    plan = rollout("dryrun after=1h")
    first = next_record(plan, begun(plan), 1, EVERYWHERE, BEGAN + HOUR + 0.2)
    assert next_record(plan, begun(plan), 1, EVERYWHERE, BEGAN + HOUR + 0.7) == first
    assert next_record(plan, first, 1, EVERYWHERE, BEGAN + HOUR + 0.7) == first


def test_a_record_is_read_back_as_it_was_written() -> None:
    """Through the status of the constraint."""
    plan = rollout()
    record = next_record(plan, begun(plan), 1, EVERYWHERE, BEGAN + 26 * HOUR)
    assert read_record({"rollout": record.document()}) == record


@pytest.mark.parametrize(
    "found",
    [
        None,
        {},
        {"steps": []},
        {"observedGeneration": 1, "state": "Complete", "steps": []},
        {"observedGeneration": 1, "state": "Complete", "steps": [{"action": "deny", "since": "x"}]},
        {
            "observedGeneration": 1,
            "state": "Complete",
            "steps": [{"action": "x", "since": "2026-01-01T00:00:00Z"}],
        },
        {
            "observedGeneration": "1",
            "state": "Complete",
            "steps": [{"action": "deny", "since": "2026-01-01T00:00:00Z"}],
        },
    ],
)
def test_a_record_that_makes_no_sense_is_none(found: Any) -> None:
    """Then the first stage is in force."""
    assert read_record({"rollout": found}) is None
    assert effective_action(rollout(), None, 1) == "dryrun"


def test_violations_are_reported_now_and_then_and_never_too_early() -> None:
    """A twentieth of the quiet that is wanted; nothing where no stage waits for quiet."""
    document = constraint(rollout="dryrun quiet=20m")
    violated_at = violation_time(document, None, BEGAN)
    assert violated_at == text_of(BEGAN + 60)
    assert violation_time(document, violated_at, BEGAN + 60) is None
    assert violation_time(document, violated_at, BEGAN + 61) == text_of(BEGAN + 121)
    assert violation_time(constraint(rollout="dryrun after=1h"), None, BEGAN) is None


def test_a_stage_that_somebody_says_begins_later_begins_now() -> None:
    """A user with the right to the status could keep a constraint at its first stage for ever."""
    plan = rollout("dryrun after=1h")
    forged = replace(begun(plan), increased=BEGAN + 10**9)
    forged = replace(forged, steps=(replace(forged.steps[0], since=BEGAN + 10**9),))
    record = next_record(plan, forged, 1, EVERYWHERE, BEGAN + HOUR)
    assert (record.steps[0].since, record.increased) == (BEGAN + HOUR, BEGAN + HOUR)
    record = next_record(plan, record, 1, EVERYWHERE, BEGAN + 2 * HOUR)
    assert record.steps[-1].action == "deny"
