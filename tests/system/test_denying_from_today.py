"""A ratchet, and namespaces that admissions leave out and audits do not, at a real API server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster import ApiError
from tests.system.conftest import ALL_OPERATIONS, control_plane
from tests.system.replicas import (
    CONFIG_MAPS,
    CONSTRAINTS,
    WORKLOADS,
    Plane,
    Replica,
    config_map,
    constraint,
    template,
    try_request,
    until,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

MERGE = "application/merge-patch+json"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A cluster of these tests' own: they count what an audit finds."""
    with control_plane(tmp_path_factory.mktemp("ratchet")) as made:
        yield made


@pytest.fixture(scope="module")
def replica(plane: Plane) -> Iterator[Replica]:
    """A replica that audits, too, and that the API server asks."""
    flags = (*ALL_OPERATIONS, "--operation=audit", "--audit-interval=1")
    with Replica(plane, "ratcheted", *flags) as started:
        started.wait_ready()
        plane.mark_pod("ratcheted", ready=True)
        plane.put_template(template("Denied"))
        for name, word in (("old", "bad"), ("good", "good")):
            plane.api.request("POST", CONFIG_MAPS, config_map(word, name))
        plane.register(started.ports["admission"])
        yield started
        plane.unregister()
    plane.delete_pod("ratcheted")


@pytest.fixture(autouse=True)
def cleaned(plane: Plane, replica: Replica) -> Iterator[None]:
    """The constraint, and what a test makes or changes, are as they were afterwards."""
    yield
    plane.delete_constraint("words", "denied")
    until(lambda: not replica.denies("bad"), "the constraint is gone")
    try_request(plane.api, "DELETE", f"{CONFIG_MAPS}/another")
    assert patched(plane, "old", {"metadata": {"labels": None}}) == ""


def patched(plane: Plane, name: str, patch: Any) -> str:
    """Returns the refusal of a patch; empty if there is none."""
    try:
        plane.api.request("PATCH", f"{CONFIG_MAPS}/{name}", patch, content_type=MERGE)
    except ApiError as error:
        if error.status != 403:
            raise
        return error.body
    return ""


def is_refused(plane: Plane, word: str) -> bool:
    """Whether a ConfigMap with this word is refused when it is made."""
    try:
        plane.api.request("POST", f"{CONFIG_MAPS}?dryRun=All", config_map(word, "new"))
    except ApiError as error:
        return error.status == 403
    return False


def total(plane: Plane) -> Any:
    """Returns the audit's ``totalViolations``."""
    return (
        plane.api.request("GET", f"{CONSTRAINTS}/denied/words")
        .get("status", {})
        .get("totalViolations")
    )


def test_what_was_there_can_be_updated_and_nothing_comes_in(plane: Plane, replica: Replica) -> None:
    document = constraint("words", "bad")
    document["metadata"]["annotations"] = {"waddle.dev/existing": "allow"}
    plane.put_constraint(document)
    until(lambda: is_refused(plane, "bad"), "it is enforced")
    assert patched(plane, "old", {"metadata": {"labels": {"touched": "yes"}}}) == ""
    assert "denied by bad" in patched(plane, "good", {"data": {"deny": "bad"}})
    answer = replica.admit(config_map("bad", "old"))
    assert not answer["allowed"], "a creation"
    until(lambda: (total(plane) or 0) > 0, "the audit counts what is there")


def test_a_namespace_that_admissions_leave_out_is_audited(plane: Plane, replica: Replica) -> None:
    document = constraint("words", "bad")
    document["spec"]["match"] = {
        **document["spec"].get("match", {}),
        "excludedNamespaces": [WORKLOADS],
        "processes": ["webhook"],
    }
    plane.put_constraint(document)
    until(lambda: not is_refused(plane, "bad"), "admissions leave it out")
    made = plane.api.request("GET", f"{CONSTRAINTS}/denied/words")
    assert made["spec"]["match"]["processes"] == ["webhook"], "the CRD keeps it"
    plane.api.request("POST", CONFIG_MAPS, config_map("bad", "another"))
    until(lambda: total(plane) == 2, "the audit counts both")
    assert not is_refused(plane, "bad"), "the replica has the constraint, and lets it in"
