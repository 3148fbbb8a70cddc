"""Conditions, Events and metrics tell what all replicas together do about a policy."""

import signal

import pytest

from tests.cluster import ApiError
from tests.patience import until
from tests.system.condition_reading import conditions, events, holds, says
from tests.system.conftest import ALL_OPERATIONS, StartReplica
from tests.system.replicas import (
    CONSTRAINTS,
    CRD_PATH,
    NAMESPACE,
    STATUSES,
    TEMPLATES,
    Plane,
    Replica,
    constraint,
    template,
    try_request,
)
from tests.system.rounds import rest
from webhook.api.pod_status import CONSTRAINT, Pod, StatusError, pod_status, status_subject
from webhook.app.fault_injection import VARIABLE

CONFLICT = 409

CRD_WRITTEN = " customresourcedefinitions/ contested."

BROKEN = "package broken\nviolation[{"
THREE_OF_FOUR = "3/4 replicas at generation 1, 75% of requests"


def test_one_faulty_replica_is_named_and_when_its_pod_is_gone_all_is_well(
    plane: Plane, trio: list[Replica], start: StartReplica, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Degraded, then Active, without anybody touching the policy."""
    path, constraint_path = f"{TEMPLATES}/partial", f"{CONSTRAINTS}/partial/words"
    monkeypatch.setenv(VARIABLE, "refuse-template:Partial:waddle-faulty")
    faulty = start("waddle-faulty", *ALL_OPERATIONS).wait_ready()
    faulty.wait_for("a fault is injected for a test", kind="Partial")
    made = plane.put_template(template("Partial"))
    uid = made["metadata"]["uid"]
    try:
        put = plane.put_constraint(constraint("words", "partial", "Partial"))
        # It is degraded by the faulty one alone, too, before the others have tried it; and a replica
        # that has not heard the others' newest word may write of the one before.
        for where in (path, constraint_path):
            until(
                lambda where=where: (
                    conditions(plane, where).get("Enforced", {}).get("message") == THREE_OF_FOUR
                    and holds(plane, where, "Degraded")
                ),
                f"all four have said what they do about {where}",
            )
        assert all(replica.denies("partial") for replica in trio)
        why = f"{THREE_OF_FOUR}. waddle-faulty: ingest_error: refused for a test: {VARIABLE}"
        until(lambda: conditions(plane, path)["Degraded"]["message"] == why, "it says why")
        found = conditions(plane, path)
        assert found["Degraded"]["reason"] == "NotEnforceable"
        until(lambda: "Degraded" in events(plane, uid), "an Event says so")
        event = events(plane, uid)["Degraded"]
        assert event["type"] == "Warning"
        assert "waddle-faulty: ingest_error: refused for a test" in event["message"]
        degraded = 'waddle_policies{kind="template",state="degraded"}'
        for replica in trio:
            until(lambda replica=replica: (replica.metric(degraded) or 0) >= 1, "so does a metric")

        faulty.kill()
        plane.delete_pod("waddle-faulty")
        until(lambda: holds(plane, path, "Active", "Enforced"), "the template is active again")
        until(lambda: holds(plane, constraint_path, "Active", "Enforced"), "and the constraint")
        until(
            lambda: (
                conditions(plane, path)["Enforced"]["message"] == "3/3 replicas at generation 1"
            ),
            "by all three",
        )
        recovered = conditions(plane, path)
        for name in ("Active", "Degraded", "Enforced"):
            assert recovered[name]["lastTransitionTime"] >= found[name]["lastTransitionTime"]
        # It never was in error as a whole, so nothing about that has changed since.
        assert recovered["Error"]["lastTransitionTime"] == found["Error"]["lastTransitionTime"]
        until(lambda: "Active" in events(plane, uid), "an Event says so, too")
        assert events(plane, uid)["Active"]["type"] == "Normal"
        for where, before in ((path, made), (constraint_path, put)):
            after = plane.api.request("GET", where)
            assert after["spec"] == before["spec"]
            assert after["metadata"]["generation"] == before["metadata"]["generation"]
    finally:
        plane.delete_template("partial")


def test_a_status_forged_for_a_foreign_pod_counts_as_no_replica(
    plane: Plane, trio: list[Replica]
) -> None:
    """The attacker may write status objects, and names another Pod of the namespace as owner."""
    path = f"{CONSTRAINTS}/slandered/words"
    plane.put_template(template("Slandered"))
    try:
        document = plane.put_constraint(constraint("words", "slander", "Slandered"))
        uid = plane.make_pod("intruder", {"app": "other"})
        plane.mark_pod("intruder", ready=True)
        forged = pod_status(
            Pod("intruder", NAMESPACE, uid, ("webhook", "status")),
            status_subject(
                CONSTRAINT, {**document, "metadata": {**document["metadata"], "generation": 2}}
            ),
            errors=[StatusError("ingest_error", "forged")],
            enforced=False,
        )
        plane.api.request("POST", f"{STATUSES}/constraintpodstatuses", forged)
        plane.put_constraint(constraint("words", "slandered", "Slandered"))
        all_three = "3/3 replicas at generation 2"
        until(lambda: says(plane, path, "Active", all_three), "three count, and no fourth")
        until(lambda: holds(plane, path, "Active", "Enforced"), "it is active")
        entries = plane.api.request("GET", path)["status"]["byPod"]
        assert sorted(entry["id"] for entry in entries) == [replica.name for replica in trio]
    finally:
        plane.delete_pod("intruder")
        plane.delete_template("slandered")


def test_a_policy_that_no_replica_can_use_is_in_error_until_it_is_repaired(
    plane: Plane, trio: list[Replica]
) -> None:
    """Each change has one Event for all replicas, and the audit's fields stay."""
    path = f"{TEMPLATES}/hopeless"
    uid = plane.put_template(template("Hopeless", BROKEN))["metadata"]["uid"]
    try:
        # The condition holds as soon as one of them has spoken.
        all_three = "0/3 replicas at generation 1. waddle-0, waddle-1, waddle-2: "
        until(lambda: says(plane, path, "Error", all_three), "all three cannot use it")
        until(lambda: holds(plane, path, "Error"), "it is in error")
        message = conditions(plane, path)["Error"]["message"]
        assert "rego_parse_error" in message
        for replica in trio:  # nothing was in force, so that nothing is said to stay
            until(lambda replica=replica: logged_faults(replica, "hopeless"), "the log says so")
            assert logged_faults(replica, "hopeless") == ["policy cannot be used"]
        until(lambda: "Error" in events(plane, uid), "an Event says so")
        none = 'waddle_policies_not_newest{cause="none",kind="template"}'
        until(lambda: (trio[0].metric(none) or 0) >= 1, "so does a metric")

        plane.put_template(template("Hopeless"))
        until(lambda: holds(plane, path, "Active", "Enforced"), "it is repaired")
        plane.put_constraint(constraint("words", "hopeless", "Hopeless"))
        constraint_path = f"{CONSTRAINTS}/hopeless/words"
        all_three = "3/3 replicas at generation 1"
        until(lambda: says(plane, constraint_path, "Active", all_three), "so is its constraint")
        until(lambda: holds(plane, constraint_path, "Active", "Enforced"), "it is active")
        until(lambda: is_overwritten(plane, constraint_path), "another has written the status")
        until(lambda: len(conditions(plane, constraint_path)) == 5, "ours are put right")
        assert conditions(plane, constraint_path)["Foreign"] == FOREIGN
        assert plane.api.request("GET", constraint_path)["status"]["totalViolations"] == 3
        until(lambda: "Active" in events(plane, uid), "an Event says so")
        # A machine so busy that one replica is seconds behind the others has that told, too.
        assert set(events(plane, uid)) - {"Degraded"} == {"Error", "Active"}

        plane.put_template(template("Hopeless", BROKEN))
        for replica in trio:
            until(
                lambda replica=replica: len(logged_faults(replica, "hopeless")) == 2,
                "it broke again",
            )
            assert logged_faults(replica, "hopeless")[-1] == (
                "policy cannot be used; the earlier version stays in force"
            )
            assert replica.denies("hopeless")
    finally:
        plane.delete_template("hopeless")


def logged_faults(replica: Replica, name: str) -> list[str]:
    """Returns the log messages of a replica about a template's faults, in order."""
    begins = f"ConstraintTemplate {name}: "
    return [event["msg"] for event in replica.events if event.get("fault", "").startswith(begins)]


def is_overwritten(plane: Plane, path: str) -> bool:
    """Whether an object has a total and a condition of another now, and none of ours."""
    document = plane.api.request("GET", path)
    document["status"] |= {"totalViolations": 3, "conditions": [FOREIGN]}
    try:
        plane.api.request("PUT", f"{path}/status", document)
    except ApiError as error:
        if error.status != CONFLICT:
            raise
        return False  # a replica has written meanwhile
    return True


FOREIGN = {
    "type": "Foreign",
    "status": "Unknown",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
    "reason": "Unknown",
    "message": "of another controller",
}


def test_a_replica_that_does_not_follow_is_named_as_behind(
    plane: Plane, trio: list[Replica], start: StartReplica
) -> None:
    """After a while, since every change is followed by one replica before another."""
    path = f"{CONSTRAINTS}/lagging/words"
    stopped = start("waddle-stopped").wait_ready()
    plane.put_template(template("Lagging"))
    try:
        plane.put_constraint(constraint("words", "one", "Lagging"))
        until(
            lambda: (
                conditions(plane, path).get("Enforced", {}).get("message")
                == "4/4 replicas at generation 1"
            ),
            "all four enforce it",
        )
        stopped.process.send_signal(signal.SIGSTOP)
        try:
            plane.put_constraint(constraint("words", "two", "Lagging"))
            behind = "3/4 replicas at generation 2, 75% of requests; 1/4 enforce "
            until(lambda: says(plane, path, "Degraded", behind), "the stopped one is missed")
            until(lambda: holds(plane, path, "Degraded"), "for long enough")
            found = conditions(plane, path)["Degraded"]
            assert found["reason"] == "ReplicasBehind"
            assert found["message"].endswith(". waddle-stopped: at generation 1")
        finally:
            stopped.process.send_signal(signal.SIGCONT)
        until(lambda: holds(plane, path, "Active", "Enforced"), "it has followed")
    finally:
        plane.delete_template("lagging")


def test_a_replica_that_cannot_follow_does_not_undo_what_the_others_made(
    plane: Plane, trio: list[Replica], start: StartReplica
) -> None:
    """It enforces the generation before, whose CRD is another; the newest one's stays."""
    older = start("waddle-older", *ALL_OPERATIONS, "--disable-opa-builtin=count")
    older.wait_ready()
    document = template("Contested")
    plane.put_template(document)
    path = f"{CRD_PATH}/contested.constraints.gatekeeper.sh"
    try:
        all_four = "4/4 replicas at generation 1"
        until(lambda: says(plane, f"{TEMPLATES}/contested", "Enforced", all_four), "all enforce it")
        newer = template("Contested", "package contested\nviolation[{}] { count(input) == 0 }")
        schema = newer["spec"]["crd"]["spec"]["validation"]["openAPIV3Schema"]
        schema["properties"]["new"] = {"type": "string"}
        plane.put_template(newer)
        behind = "3/4 replicas at generation 2, 75% of requests; 1/4 enforce generation 1 ("
        until(
            lambda: says(plane, f"{TEMPLATES}/contested", "Degraded", behind), "one cannot follow"
        )
        until(lambda: holds(plane, f"{TEMPLATES}/contested", "Degraded"), "it is degraded")
        message = conditions(plane, f"{TEMPLATES}/contested")["Degraded"]["message"]
        assert "waddle-older: " in message
        before = len(plane.writes(taken=True))
        # Taken away, the CRD is made by whoever is first: then by one that could follow.
        plane.api.request("DELETE", path)

        def is_new() -> bool:
            found = try_request(plane.api, "GET", path)
            if found is None or "deletionTimestamp" in found["metadata"]:
                return False
            version = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
            return "new" in version["properties"]["spec"]["properties"]["parameters"]["properties"]

        # The API server ends the old one in its own time.
        until(is_new, "the newest schema is there again")
        # All see at once that it is gone, and each may try to make it; where the one that cannot
        # follow was first, each of the others may try to replace what it made. Then all rest. Tries
        # are not counted: the API server writes the new one's status, and refuses those beside it.
        rest(plane, [replica.name for replica in (*trio, older)])
        seen = [line for line in plane.writes(taken=True)[before:] if CRD_WRITTEN in line]
        most = (len(trio) + 1) + len(trio)
        assert len(seen) <= most, seen
        assert is_new()
    finally:
        plane.delete_template("contested")
