"""A constraint that is rolled out in stages, on three replicas at a real API server."""

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pytest

from tests.patience import until
from tests.system.replicas import CONSTRAINTS, Plane, Replica, config_map, constraint, template
from webhook.constraint.rollout import ABORT, ANNOTATION, PAUSE

KIND = "Staged"
PATH = f"{CONSTRAINTS}/staged/words"
QUIET_SECONDS = 6
EVENTS = "/api/v1/namespaces/default/events"


def staged(text: str, word: str = "staged") -> dict[str, Any]:
    """The constraint with a roll-out."""
    document = constraint("words", word, KIND)
    document["metadata"]["annotations"] = {ANNOTATION: text}
    return document


@pytest.fixture(scope="module", autouse=True)
def kind(plane: Plane) -> Iterator[None]:
    """The constraint's template."""
    plane.put_template(template(KIND))
    yield
    plane.delete_template(KIND.lower())


@pytest.fixture(autouse=True)
def without_constraint(plane: Plane, trio: list[Replica]) -> Iterator[None]:
    """Deletes the test's constraint after it."""
    yield
    plane.delete_constraint("words", KIND)
    until(lambda: not any(replica.denies("staged") for replica in trio), "none denies")


def annotate(plane: Plane, **annotations: str | None) -> None:
    """Change the constraint's annotations."""
    names = {"pause": PAUSE, "abort": ABORT, "rollout": ANNOTATION}
    body = {"metadata": {"annotations": {names[key]: text for key, text in annotations.items()}}}
    plane.api.request("PATCH", PATH, body, content_type="application/merge-patch+json")


def record(plane: Plane) -> dict[str, Any]:
    """``status.rollout`` of the constraint."""
    found: dict[str, Any] = plane.api.request("GET", PATH).get("status", {}).get("rollout", {})
    return found


def stages(plane: Plane) -> list[str]:
    """The stage that each replica says it enforces."""
    return [str(entry.get("enforcementAction")) for entry in plane.by_pod(PATH)]


def reach(plane: Plane, trio: list[Replica], action: str, state: str) -> None:
    """Wait until the record and every replica are at a stage."""
    until(
        lambda: (record(plane).get("action"), record(plane).get("state")) == (action, state),
        f"the record says {action}, {state}",
    )
    until(lambda: stages(plane) == [action] * len(trio), f"all enforce {action}")


def last_violation(plane: Plane) -> dt.datetime | None:
    """When the constraint was last violated, as replicas tell; None before one does."""
    times = [entry["lastViolation"] for entry in plane.by_pod(PATH) if "lastViolation" in entry]
    return max(map(dt.datetime.fromisoformat, times), default=None)


def reasons(plane: Plane, uid: str) -> set[str]:
    """The reasons of the Events about the constraint."""
    found = plane.api.request("GET", f"{EVENTS}?fieldSelector=involvedObject.uid={uid}")
    return {item["reason"] for item in found["items"]}


def test_a_constraint_becomes_stricter_by_evidence(plane: Plane, trio: list[Replica]) -> None:
    """A violation holds it back; quiet moves it on; the spec stays as its owner wrote it."""
    document = staged(f"dryrun quiet={QUIET_SECONDS}s, warn after=1s")
    # However long all of this takes, it is in the first stage: what counts is when things were.
    document["metadata"]["annotations"][PAUSE] = "true"
    made = plane.put_constraint(document)
    reach(plane, trio, "dryrun", "Paused")
    assert not trio[0].denies("staged")
    # The violation was met by one replica, and is told by its status.
    until(lambda: last_violation(plane) is not None, "the violation is told")
    last = last_violation(plane)
    assert last is not None
    assert record(plane)["action"] == "dryrun"
    annotate(plane, pause=None)
    reach(plane, trio, "deny", "Complete")
    assert all(replica.denies("staged") for replica in trio)
    steps = record(plane)["steps"]
    assert [step["action"] for step in steps] == ["dryrun", "warn", "deny"]
    quiet = dt.timedelta(seconds=QUIET_SECONDS)
    assert dt.datetime.fromisoformat(steps[1]["since"]) >= last + quiet  # not before it was quiet
    shown = plane.api.request("GET", PATH)
    assert shown["spec"]["enforcementAction"] == "deny"  # by its CRD's default, all the time
    assert shown["metadata"]["generation"] == made["metadata"]["generation"]
    until(
        lambda: reasons(plane, made["metadata"]["uid"]) >= {"RolloutToWarn", "RolloutToDeny"},
        "Events tell of the steps",
    )
    until(lambda: len({replica.digest for replica in trio}) == 1, "the digests are one")


def test_a_roll_out_is_paused_and_aborted(plane: Plane, trio: list[Replica]) -> None:
    """Paused it stays; aborted it is back at its first stage, on every replica."""
    document = staged("dryrun after=0s, warn")
    document["metadata"]["annotations"][PAUSE] = "true"
    made = plane.put_constraint(document)
    reach(plane, trio, "dryrun", "Paused")
    annotate(plane, pause=None)
    reach(plane, trio, "warn", "Holding")
    verdict = trio[1].admit(config_map("staged"))
    assert verdict["allowed"]
    assert verdict["warnings"] == ["[words] denied by staged"]
    annotate(plane, abort="true")
    reach(plane, trio, "dryrun", "Aborted")
    assert "warnings" not in trio[1].admit(config_map("staged"))
    until(lambda: "RolloutToDryrun" in reasons(plane, made["metadata"]["uid"]), "it is an Event")
    annotate(plane, rollout=None, abort=None)
    until(lambda: all(replica.denies("staged") for replica in trio), "the spec holds again")
    until(lambda: record(plane) == {}, "nothing is recorded any more")


def test_an_annotation_that_cannot_be_followed_is_an_error_of_its_constraint_alone(
    plane: Plane, trio: list[Replica]
) -> None:
    """Every replica says so, and the revision before it stays in force."""
    plane.put_constraint(constraint("words", "staged", KIND))
    until(lambda: all(replica.denies("staged") for replica in trio), "all deny")
    annotate(plane, rollout="never")
    until(
        lambda: (
            ["dryrun or warn" in str(entry.get("errors")) for entry in plane.by_pod(PATH)]
            == [True] * len(trio)
        ),
        "each says so",
    )
    assert all(replica.denies("staged") for replica in trio)
