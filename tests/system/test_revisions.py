"""The last good revision outlives every replica, and an older one is asked for by annotation."""

import signal
from typing import Any

import pytest
import yaml

from tests.cluster import ApiError
from tests.patience import until
from tests.system.conftest import ALL_OPERATIONS, StartReplica
from tests.system.gate import Gate
from tests.system.replicas import (
    CONSTRAINTS,
    CRD_PATH,
    CRDS,
    TEMPLATES,
    Plane,
    Replica,
    config_map,
    constraint,
    review_of,
    template,
    try_request,
)
from tests.system.revisions import (
    BROKEN,
    MERGE,
    REVISIONS,
    conditions,
    first_verdict,
    kept,
    kill,
    states,
)
from webhook.api.revision import ROLLBACK, digest_of

CRD = f"{CRD_PATH}/policyrevisions.policy.waddle.dev"


@pytest.fixture
def plane(empty_plane: Plane) -> Plane:
    """Here every replica ends: no other may be there."""
    return empty_plane


def start_three(start: StartReplica, stem: str) -> list[Replica]:
    """Three ready replicas that carry out every operation."""
    started = [start(f"{stem}-{number}", *ALL_OPERATIONS) for number in range(3)]
    return [replica.wait_ready() for replica in started]


def test_the_last_good_revision_is_enforced_after_every_replica_was_restarted(
    plane: Plane, start: StartReplica
) -> None:
    """Of a template broken while they ran, and of a constraint broken while none did."""
    template_path, path = f"{TEMPLATES}/kept", f"{CONSTRAINTS}/kept/words"
    made = plane.put_template(template("Kept"))
    replicas = start_three(start, "first")
    plane.put_constraint(constraint("words", "kept", "Kept"))
    for replica in replicas:
        until(lambda replica=replica: replica.denies("kept"), "each denies")
    until(lambda: kept(plane, "ConstraintTemplate", "kept") == [1], "the template is kept")
    until(lambda: kept(plane, "Kept", "words") == [1], "the constraint is kept")

    plane.put_template(template("Kept", BROKEN))
    until(lambda: "Error" in states(plane, template_path, 2), "the fault is in the conditions")
    assert all(replica.denies("kept") for replica in replicas)
    kill(replicas)
    # No webhook asks anybody about it, and the API server's schema does not know selectors.
    broken = constraint("words", "other", "Kept")
    selector = {"matchExpressions": [{"key": "a", "operator": "Bogus", "values": ["b"]}]}
    broken["spec"]["match"]["labelSelector"] = selector
    plane.put_constraint(broken)

    replicas = [start(f"second-{number}", *ALL_OPERATIONS) for number in range(3)]
    for replica in replicas:
        verdict = first_verdict(replica, "kept")
        assert verdict["allowed"] is False
        assert verdict["status"]["message"] == "[words] denied by kept"
    names = {replica.name for replica in replicas}
    expected = "0/3 replicas at generation 2; 3/3 enforce generation 1 ("
    for where, document in ((template_path, made), (path, constraint("words", "kept", "Kept"))):
        # Until they have, byPod may still be of those that were there before.
        until(
            lambda where=where: {entry["id"] for entry in plane.by_pod(where)} == names,
            "the new ones say so",
        )
        until(lambda where=where: "Error" in states(plane, where, 2), "conditions say so")
        # The condition holds as soon as one of them has spoken.
        until(
            lambda where=where: all(enforces_the_first(entry) for entry in plane.by_pod(where)),
            f"each says of {where} what it enforces",
        )
        shown = {entry["activeDigest"] for entry in plane.by_pod(where)}
        if where == template_path:
            assert shown == {digest_of(document)}
        # One that has spoken of the template and not of the constraint yet is not counted yet.
        until(
            lambda where=where: conditions(plane, where)["Enforced"]["message"].startswith(
                expected
            ),
            "the condition counts all three",
        )
    earlier = 'waddle_policies_not_newest{cause="earlier",kind="template"}'
    until(lambda: replicas[0].metric(earlier) == 1, "a metric says so, too")

    plane.put_template(template("Kept"))
    plane.put_constraint(constraint("words", "again", "Kept"))
    for replica in replicas:
        until(lambda replica=replica: replica.denies("again"), "each denies what is new")
        assert not replica.denies("kept")
    until(lambda: "Active" in states(plane, template_path, 3), "the template is active")
    # Generation 3 has the content of 1; two are kept by default.
    until(lambda: kept(plane, "ConstraintTemplate", "kept") == [1, 3], "the repaired one is kept")
    plane.put_template(template("Kept", template("Kept")["spec"]["targets"][0]["rego"] + "\n"))
    until(lambda: kept(plane, "ConstraintTemplate", "kept") == [3, 4], "the oldest is dropped")

    plane.delete_template("kept")
    until(lambda: kept(plane, "ConstraintTemplate", "kept") == [], "they go with the template")
    until(lambda: kept(plane, "Kept", "words") == [], "and with the constraint")
    kill(replicas)


def enforces_the_first(entry: dict[str, Any]) -> bool:
    """Whether a replica says that it enforces generation 1 for want of 2, which is wrong."""
    generations = (entry["observedGeneration"], entry.get("activeGeneration"))
    return generations == (2, 1) and bool(entry.get("activeRevision") and entry.get("errors"))


def test_no_replica_is_ready_before_it_knows_what_is_kept(
    plane: Plane, start: StartReplica, gate: Gate
) -> None:
    """However long the list takes: without it a broken template would not be enforced."""
    before = start("before", *ALL_OPERATIONS).wait_ready()
    plane.put_template(template("Awaited"))
    plane.put_constraint(constraint("words", "awaited", "Awaited"))
    until(lambda: before.denies("awaited"), "it denies")
    until(lambda: kept(plane, "ConstraintTemplate", "awaited") == [1], "it is kept")
    plane.put_template(template("Awaited", BROKEN))
    until(lambda: "Error" in states(plane, f"{TEMPLATES}/awaited", 2), "it is broken")
    kill([before])

    gate.hold(lambda path: "/policyrevisions" in path)
    after = start("after", *ALL_OPERATIONS, f"--kubeconfig={gate.kubeconfig}")
    gate.wait_for(1)
    until(
        lambda: b"the list of PolicyRevision" in after.get("health", "/readyz?verbose").body,
        "readiness names the list",
    )
    assert after.post(review_of(config_map("awaited"))).status == 503
    assert not after.is_ready
    gate.open()
    verdict = first_verdict(after, "awaited")
    assert verdict["status"]["message"] == "[words] denied by awaited"
    plane.delete_template("awaited")
    kill([after])


def test_an_annotation_rolls_back_and_its_removal_returns_to_the_spec(
    plane: Plane, start: StartReplica
) -> None:
    """On every replica, in one that starts too; what is not kept is an error and changes nothing."""
    replicas = start_three(start, "rolling")
    path = f"{TEMPLATES}/rolled"
    plane.put_template(template("Rolled"))
    plane.put_constraint(constraint("words", "rolled", "Rolled"))
    for replica in replicas:
        until(lambda replica=replica: replica.denies("rolled"), "each denies")
    until(lambda: kept(plane, "ConstraintTemplate", "rolled") == [1], "it is kept")
    harmless = 'package rolled\nviolation[{"msg": "never"}] { false }'
    plane.put_template(template("Rolled", harmless))
    for replica in replicas:
        until(lambda replica=replica: not replica.denies("rolled"), "each allows")
    until(lambda: kept(plane, "ConstraintTemplate", "rolled") == [1, 2], "both are kept")
    until(lambda: {"Active"} < states(plane, path, 2), "it is active")

    def annotate(value: str | None) -> None:
        body = {"metadata": {"annotations": {ROLLBACK: value}}}
        plane.api.request("PATCH", path, body, content_type=MERGE)

    annotate("1")
    for replica in replicas:
        until(lambda replica=replica: replica.denies("rolled"), "each denies again")
    until(lambda: states(plane, path, 2) == set(), "none of the conditions holds")
    until(lambda: conditions(plane, path)["Active"]["reason"] == "RolledBack", "and it says why")
    assert (
        "rolled back to generation 1 by annotation" in conditions(plane, path)["Active"]["message"]
    )

    def active() -> list[tuple[Any, ...]]:
        names = ("activeGeneration", "rolledBackTo", "errors")
        return [tuple(entry.get(name) for name in names) for entry in plane.by_pod(path)]

    # The condition holds as soon as one of them has spoken.
    until(lambda: active() == [(1, "1", None)] * len(replicas), "each says what it enforces")
    late = start("rolling-late", *ALL_OPERATIONS)
    assert first_verdict(late, "rolled")["allowed"] is False

    annotate("99")
    until(lambda: "Error" in states(plane, path, 2), "it is an error")
    fault = conditions(plane, path)["Error"]["message"]
    assert "there is no revision '99'; kept generations: 2, 1" in fault
    for replica in (*replicas, late):
        until(lambda replica=replica: not replica.denies("rolled"), "each allows again")

    annotate(None)
    until(lambda: {"Active"} < states(plane, path, 2), "it is active again")
    assert not any(replica.denies("rolled") for replica in [*replicas, late])
    plane.delete_template("rolled")
    kill([*replicas, late])


def test_a_template_made_anew_has_no_last_good_revision_of_the_old_one(
    plane: Plane, start: StartReplica
) -> None:
    """The template is another object; its user may have discarded the first on purpose."""
    (replica,) = [start("anew", *ALL_OPERATIONS).wait_ready()]
    plane.put_template(template("Reborn"))
    until(lambda: kept(plane, "ConstraintTemplate", "reborn") == [1], "it is kept")
    replica.process.send_signal(signal.SIGSTOP)
    plane.delete_template("reborn")
    plane.put_template(template("Reborn", BROKEN))
    replica.process.send_signal(signal.SIGCONT)
    kill([replica])
    replica = start("anew-again", *ALL_OPERATIONS).wait_ready()
    until(lambda: "Error" in states(plane, f"{TEMPLATES}/reborn", 1), "nothing is enforced")
    path = f"{TEMPLATES}/reborn"
    until(
        lambda: [entry["id"] for entry in plane.by_pod(path)] == ["anew-again"],
        "it alone speaks of it",
    )
    (entry,) = plane.by_pod(path)
    assert entry["activeGeneration"] == 0
    assert "activeRevision" not in entry
    plane.delete_template("reborn")
    kill([replica])


def test_a_cluster_without_the_kind_is_served_and_one_that_gets_it_is_followed(
    plane: Plane, start: StartReplica
) -> None:
    """Replicas report that no revisions are kept, and follow the new kind without a restart."""
    plane.api.request("DELETE", CRD)
    until(lambda: try_request(plane.api, "GET", REVISIONS) is None, "the kind is gone")
    try:
        replica = start("unkept", *ALL_OPERATIONS)
        replica.wait_for("no last good revision is kept across restarts")
        replica.wait_ready()
        plane.put_template(template("Unkept"))
        path = f"{TEMPLATES}/unkept"
        until(lambda: {"Active"} < states(plane, path, 1), "it is enforced")
    finally:
        plane.api.apply(CRD, yaml.safe_load((CRDS / "policyrevisions.yaml").read_text()))

    def is_kept() -> bool:
        try:
            return kept(plane, "ConstraintTemplate", "unkept") == [1]
        except ApiError:
            return False  # its storage is being made

    until(is_kept, "it is kept")
    plane.delete_template("unkept")
    kill([replica])
