"""Three replicas beside a real API server: what is applied is enforced by all, and said so."""

from tests.system.replicas import (
    CONSTRAINTS,
    TEMPLATES,
    Plane,
    Replica,
    constraint,
    template,
    until,
)

DENIED = f"{CONSTRAINTS}/denied"


def all_ready(replicas: list[Replica]) -> None:
    """Wait until every replica answers."""
    for replica in replicas:
        until(lambda replica=replica: replica.is_ready, f"{replica.name} is ready")


def test_what_is_applied_is_enforced_by_all_and_shown_by_pod(
    plane: Plane, replicas: list[Replica]
) -> None:
    """Applied, updated, deleted: each replica follows, and byPod says so of each Pod."""
    all_ready(replicas)
    made = plane.put_template(template())
    until(lambda: len(plane.by_pod(f"{TEMPLATES}/denied")) == 3, "the template has three entries")
    entries = plane.by_pod(f"{TEMPLATES}/denied")
    assert {entry["templateUID"] for entry in entries} == {made["metadata"]["uid"]}

    plane.put_constraint(constraint("words", "one"))
    for replica in replicas:
        until(lambda replica=replica: replica.denies("one"), f"{replica.name} denies")
