"""Several audits each look at a share; one that watches follows what changes."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from tests.patience import until
from tests.repeating import Repeating
from tests.system.bulk import create
from tests.system.replicas import (
    CONSTRAINTS,
    STATUSES,
    Plane,
    Replica,
    config_map,
    constraint,
    template,
)

SPACES = [f"shared-{number}" for number in range(8)]
EACH = 4
ALL = EACH * len(SPACES)
AUDIT_LABELS = {"app.kubernetes.io/name": "waddle", "gatekeeper.sh/operation": "audit"}
PATH = f"{CONSTRAINTS}/shared/words"


@pytest.fixture(scope="module")
def shared(empty_plane: Plane) -> Iterator[Plane]:
    """A cluster with violations in some namespaces, and a replica that makes kinds and statuses."""
    plane = empty_plane
    for name in SPACES:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        plane.api.apply(f"/api/v1/namespaces/{name}", body)
    create(
        plane.api,
        (
            (f"/api/v1/namespaces/{space}/configmaps", config_map("bad", f"bad-{number}", space))
            for space in SPACES
            for number in range(EACH)
        ),
    )
    flags = ("--operation=webhook", "--operation=status", "--operation=generate")
    with Replica(plane, "waddle-keeper", *flags) as keeper:
        keeper.wait_ready()
        plane.mark_pod("waddle-keeper", ready=True)
        plane.put_template(template("Shared"))
        plane.put_constraint(constraint("words", "bad", "Shared"))
        yield plane
        plane.delete_template("shared")
    plane.delete_pod("waddle-keeper")
    for space in SPACES:
        plane.api.request("DELETE", f"/api/v1/namespaces/{space}/configmaps")


@contextmanager
def audits(plane: Plane, *names: str, flags: tuple[str, ...]) -> Iterator[list[Replica]]:
    """Audits, each in a Pod that is ready."""
    with ExitStack() as stack:
        started = []
        for name in names:
            replica = Replica(plane, name, "--operation=audit", *flags, labels=AUDIT_LABELS)
            stack.callback(plane.delete_pod, name)
            started.append(stack.enter_context(replica))
        for replica in started:
            replica.wait_ready()
            plane.mark_pod(replica.name, ready=True)
        yield started


def total(plane: Plane, path: str = PATH) -> Any:
    """Returns ``totalViolations`` of the constraint's status."""
    return (plane.api.request("GET", path).get("status") or {}).get("totalViolations")


def shards(plane: Plane) -> dict[str, dict[str, Any]]:
    """Returns each audit's share of the results, by the audit's name."""
    selector = "internal.gatekeeper.sh/constraint-kind=Shared"
    found = plane.api.request("GET", f"{STATUSES}/constraintpodstatuses?labelSelector={selector}")[
        "items"
    ]
    return {
        item["status"]["id"]: item["status"]["audit"] for item in found if "audit" in item["status"]
    }


def agreed(plane: Plane, count: int) -> str:
    """The shares that so many audits, and no others, speak of; empty while they do not agree."""
    found = shards(plane)
    members = {item["members"] for item in found.values()}
    return members.pop() if len(found) == count and len(members) == 1 else ""


class Watcher(Repeating):
    """Collects every total that is ever seen."""

    def __init__(self, plane: Plane) -> None:
        self.seen: set[Any] = set()
        self._plane = plane
        # A picture of what people would see, not a wait for anything.
        super().__init__(self._watch, pause_seconds=0.02)

    def _watch(self) -> None:
        self.seen.add(total(self._plane))


def test_three_audits_tell_the_total_of_one_and_so_do_the_two_that_one_leaves(
    shared: Plane,
) -> None:
    """While shares move the old total stays: nobody ever sees another."""
    names = ("auditor-a", "auditor-b", "auditor-c")
    with audits(shared, *names, flags=("--audit-interval=3",)) as running:
        until(lambda: bool(agreed(shared, 3)), "three audits have spoken of the same shares")
        until(lambda: total(shared) == ALL, "the total is that of all")
        found = shards(shared)
        assert sum(item["totalViolations"] for item in found.values()) == ALL
        assert max(item["totalViolations"] for item in found.values()) < ALL
        shown = shared.api.request("GET", PATH)["status"]
        assert len(shown["violations"]) == 20
        places = [(item["namespace"], item["name"]) for item in shown["violations"]]
        assert places == sorted(places, reverse=True)
        assert all("audit" not in entry for entry in shown["byPod"])
        before = agreed(shared, 3)
        with Watcher(shared) as watcher:
            running[1].kill()
            shared.delete_pod("auditor-b")
            until(
                lambda: agreed(shared, 2) not in ("", before), "two audits have shares of the whole"
            )
            found = shards(shared)
            assert sum(item["totalViolations"] for item in found.values()) == ALL
        assert watcher.seen == {ALL}
        extra = f"/api/v1/namespaces/{SPACES[0]}/configmaps"
        shared.api.request("POST", extra, config_map("bad", "extra", SPACES[0]))
        until(lambda: total(shared) == ALL + 1, "the next sweeps are right")
        shared.api.request("DELETE", f"{extra}/extra")
        until(lambda: total(shared) == ALL, "and those after them")


@pytest.mark.slow(35)
def test_an_audit_that_watches_follows_objects_and_policies_between_sweeps(shared: Plane) -> None:
    """With an hour between two sweeps."""
    collection = f"/api/v1/namespaces/{SPACES[1]}/configmaps"
    flags = ("--audit-interval=3600", "--audit-continuous")
    with audits(shared, "auditor-watching", flags=flags) as (replica,):
        replica.wait_for("auditing is complete")
        until(lambda: total(shared) == ALL, "the first sweep told the total")

        shared.api.request("POST", collection, config_map("bad", "changing", SPACES[1]))
        until(lambda: total(shared) == ALL + 1, "a new object counts")
        shared.api.apply(f"{collection}/changing", config_map("good", "changing", SPACES[1]))
        until(lambda: total(shared) == ALL, "one that was repaired does not")
        shared.api.apply(f"{collection}/changing", config_map("bad", "changing", SPACES[1]))
        until(lambda: total(shared) == ALL + 1, "one that was broken again does")
        shown = shared.api.request("GET", PATH)["status"]["violations"]
        assert len(shown) == 20
        shared.api.request("DELETE", f"{collection}/changing")
        until(lambda: total(shared) == ALL, "one that is gone does not")

        other = f"{CONSTRAINTS}/shared/others"
        shared.put_constraint(constraint("others", "other", "Shared"))
        until(lambda: total(shared, other) == 0, "a new constraint is told of at once")
        shared.api.request("POST", collection, config_map("other", "changing", SPACES[1]))
        until(lambda: total(shared, other) == 1, "and followed")
        shared.api.request("DELETE", f"{collection}/changing")
        until(lambda: total(shared, other) == 0, "to the end")
        assert total(shared) == ALL
        shared.delete_constraint("others", "Shared")
