"""A user with the right to PolicyRevisions alone decides nothing by it, at any replica."""

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.patience import until
from tests.system.conftest import ALL_OPERATIONS, StartReplica
from tests.system.forging import at, forge, harmless, outcome, saying
from tests.system.replicas import (
    KEYS,
    TEMPLATES,
    Plane,
    Replica,
    constraint,
    template,
)
from tests.system.revisions import (
    BROKEN,
    MERGE,
    REVISIONS,
    first_verdict,
    kept,
    kill,
    states,
)
from webhook.api.revision import ROLLBACK, digest_of, name_of, revision_object

IGNORED = "waddle_policy_revisions_ignored"


@pytest.fixture
def plane(empty_plane: Plane) -> Iterator[Plane]:
    """Here every replica ends: no other may be there.

    Nor a revision that another test left: one signed by a key that is gone counts as unknown.
    """
    empty_plane.delete_templates()
    empty_plane.api.request("DELETE", REVISIONS)
    yield empty_plane
    empty_plane.delete_templates()


def begun(
    plane: Plane, start: StartReplica, kind: str, count: int = 1
) -> tuple[list[Replica], dict[str, Any]]:
    """Replicas that deny by a template, whose revision is kept; the template."""
    name = kind.lower()
    plane.put_template(template(kind))
    started = [start(f"{name}-{number}", *ALL_OPERATIONS) for number in range(count)]
    for replica in started:
        replica.wait_ready()
    plane.put_constraint(constraint("words", name, kind))
    for replica in started:
        until(lambda replica=replica: replica.denies(name), "each denies")
    until(lambda: kept(plane, "ConstraintTemplate", name) == [1], "it is kept")
    until(lambda: kept(plane, kind, "words") == [1], "the constraint, too")
    return started, plane.api.request("GET", f"{TEMPLATES}/{name}")


def test_a_fresh_replica_enforces_no_forged_revision_of_a_policy_that_did_not_break(
    plane: Plane, start: StartReplica
) -> None:
    """The forged revision has no owner and a newer generation, beside an ended genuine one."""
    replicas, current = begun(plane, start, "Fresh")
    genuine = name_of(current, digest_of(current))
    kill(replicas)
    forged = forge(
        plane, at(current, 2, harmless("Fresh")), "fresh-2-0000000000000000", owned=False
    )
    patch = {"status": {"outcome": saying("ended").document()}}
    plane.api.request("PATCH", f"{REVISIONS}/{genuine}", patch, content_type=MERGE)

    (fresh,) = [start("fresh-again", *ALL_OPERATIONS)]
    assert first_verdict(fresh, "fresh")["allowed"] is False
    fresh.wait_ready()
    until(lambda: "Active" in states(plane, f"{TEMPLATES}/fresh", 1), "it is active")
    # The genuine one is made anew, as it was; what is not ours is left alone, and told of.
    until(lambda: outcome(plane, genuine) in ("", "passed"), "it is said to be good again")
    assert plane.api.request("GET", f"{REVISIONS}/{forged}")["spec"]["generation"] == 2
    until(lambda: (fresh.metric(f'{IGNORED}{{why="unsigned"}}') or 0) >= 1, "it is counted")
    fresh.wait_for("a PolicyRevision was ignored")
    assert fresh.denies("fresh")
    plane.delete_template("fresh")
    plane.api.request("DELETE", f"{REVISIONS}/{forged}")
    kill([fresh])


@pytest.mark.parametrize("verdict", ["ended", "refused", "trying"])
def test_a_change_cannot_be_kept_out_by_what_was_said_of_it_beforehand(
    plane: Plane, start: StartReplica, verdict: str
) -> None:
    """The change's content and generation were predicted, and its revision made before it."""
    kind = f"Predicted{verdict}"
    name = kind.lower()
    replicas, current = begun(plane, start, kind, 3)
    forged = forge(plane, at(current, 2, harmless(kind)), verdict=verdict)
    until(
        lambda: all(replica.metric(f'{IGNORED}{{why="unknown_key"}}') for replica in replicas),
        "each knows of it",
    )
    plane.put_template(harmless(kind))
    for replica in replicas:
        until(lambda replica=replica: not replica.denies(name), "each enforces the change")
    until(lambda: "Active" in states(plane, f"{TEMPLATES}/{name}", 2), "it is active")
    assert "Error" not in states(plane, f"{TEMPLATES}/{name}", 2)
    until(lambda: outcome(plane, forged) in ("", "passed"), "a replica's word has its place")
    for replica in replicas:
        until(
            lambda replica=replica: replica.metric(f'{IGNORED}{{why="unknown_key"}}') == 0,
            "each knows of that",
        )
    plane.delete_template(name)
    kill(replicas)


def test_an_older_generation_cannot_be_shadowed_for_a_roll_back(
    plane: Plane, start: StartReplica
) -> None:
    """Generations that no object ever had cannot do it either: the genuine ones are kept."""
    replicas, current = begun(plane, start, "Shadowed", 3)
    empty = harmless("Shadowed")
    forged = [forge(plane, at(current, 1, empty))]
    forged += [forge(plane, at(current, 10**15 + number, empty)) for number in range(5)]
    forged.append(forge(plane, at(current, 10**15, empty), "shadowed-without-owner", owned=False))
    plane.put_template(empty)
    for replica in replicas:
        until(lambda replica=replica: not replica.denies("shadowed"), "each enforces the change")
    genuine = [1, 1, 2, *[item for number in range(5) for item in [10**15 + number]], 10**15]
    until(
        lambda: kept(plane, "ConstraintTemplate", "shadowed") == sorted(genuine),
        "what was good is kept, and what is forged is left alone",
    )
    path = f"{TEMPLATES}/shadowed"
    body = {"metadata": {"annotations": {ROLLBACK: "1"}}}
    plane.api.request("PATCH", path, body, content_type=MERGE)
    for replica in replicas:
        until(lambda replica=replica: replica.denies("shadowed"), "each enforces the genuine one")
    late = start("shadowed-late", *ALL_OPERATIONS)
    assert first_verdict(late, "shadowed")["allowed"] is False
    plane.delete_template("shadowed")
    kill([*replicas, late])


def test_what_a_broken_policy_falls_back_to_cannot_be_forged(
    plane: Plane, start: StartReplica
) -> None:
    """The last good revision is enforced after a restart, whatever lies beside it."""
    replicas, current = begun(plane, start, "Fallen")
    plane.put_template(template("Fallen", BROKEN))
    until(lambda: "Error" in states(plane, f"{TEMPLATES}/fallen", 2), "it is broken")
    kill(replicas)
    empty = harmless("Fallen")
    for generation in (1, 2, 10**15):
        forge(plane, at(current, generation, empty))
    copied = plane.api.request("GET", f"{REVISIONS}/{name_of(current, digest_of(current))}")
    for field in ("uid", "resourceVersion", "managedFields", "creationTimestamp"):
        copied["metadata"].pop(field)
    copied["metadata"]["name"] = "fallen-2-copied"
    copied["spec"]["generation"] = 2
    plane.api.request("POST", REVISIONS, copied)
    annotated = revision_object(at(current, 2, empty), "0" * 16)
    annotated["spec"] |= {"encoding": "", "content": '{"annotations":["a"],"spec":{}}'}
    plane.api.request("POST", REVISIONS, annotated)

    (fresh,) = [start("fallen-again", *ALL_OPERATIONS)]
    assert first_verdict(fresh, "fallen")["allowed"] is False
    fresh.wait_ready()
    until(lambda: fresh.metric(f'{IGNORED}{{why="wrong_signature"}}') == 1, "it is counted")
    assert not [event for event in fresh.events if "stacktrace" in event]
    plane.delete_template("fallen")
    kill([fresh])


def test_without_its_secret_a_replica_serves_and_says_that_nothing_is_kept(
    plane: Plane, start: StartReplica
) -> None:
    """This happens after an upgrade of the image alone. With the Secret, revisions are kept."""
    plane.put_template(template("Unsigned"))
    plane.api.request("DELETE", KEYS)
    replica = start("unsigned", *ALL_OPERATIONS)
    replica.wait_ready()
    replica.wait_for("the key that signs revisions cannot be used")
    until(lambda: "Active" in states(plane, f"{TEMPLATES}/unsigned", 1), "it is enforced")
    assert kept(plane, "ConstraintTemplate", "unsigned") == []
    replica.process.send_signal(signal.SIGKILL)
    replica.process.wait()
    plane.delete_pod("unsigned")
    plane.make_namespaces()
    again = start("unsigned-again", *ALL_OPERATIONS).wait_ready()
    until(lambda: kept(plane, "ConstraintTemplate", "unsigned") == [1], "it is kept")
    plane.delete_template("unsigned")
    kill([again])
