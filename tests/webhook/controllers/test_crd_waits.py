"""Constraint CRDs that are not established: told after a while, with what the API server says."""

from typing import Any

import pytest

from webhook.controllers.follow.crd_waits import WAIT_SECONDS, CrdWaits

NAME = "a.constraints.gatekeeper.sh"
NOT_YET = "the API server has not established it yet"


def crd(*conditions: dict[str, str], **metadata: str) -> dict[str, Any]:
    """A CRD with these conditions."""
    return {"metadata": {"name": NAME, **metadata}, "status": {"conditions": list(conditions)}}


def condition(kind: str, status: str, **more: str) -> dict[str, str]:
    return {"type": kind, "status": status, **more}


@pytest.mark.parametrize(
    ("crds", "reason"),
    [
        ([], "there is no such CRD: no replica with --operation=generate has made it"),
        ([crd()], NOT_YET),
        ([crd(condition("Established", "Unknown"))], NOT_YET),
        (
            [crd(condition("Established", "False", reason="Installing", message="soon"))],
            "soon",
        ),
        (
            [
                crd(
                    condition("Established", "False", message="not accepted"),
                    condition("NamesAccepted", "False", reason="ListKindConflict"),
                )
            ],
            "ListKindConflict",
        ),
        ([crd(condition("Established", "False"))], "not established"),
        (
            [crd(condition("Established", "True"), deletionTimestamp="2026-01-01T00:00:00Z")],
            "the CRD is being deleted, and every constraint of its kind with it",
        ),
    ],
)
def test_one_that_is_not_established_for_a_while_is_reported_with_the_reason(
    crds: list[dict[str, Any]], reason: str
) -> None:
    now = 100.0
    waits = CrdWaits(lambda: now)
    assert waits.look([NAME], crds) == {}
    now += WAIT_SECONDS / 2
    assert waits.look([NAME], crds) == {}
    now += WAIT_SECONDS / 2
    assert waits.look([NAME], crds) == {NAME: reason}
    assert waits.look([NAME], [crd(condition("Established", "True"))]) == {}
    assert waits.look([NAME], crds) == {}  # It begins anew.
    assert waits.look([], crds) == {}


def test_time_changes_something_only_while_one_is_not_established() -> None:
    waits = CrdWaits(lambda: 100.0)
    assert not waits.is_waiting
    waits.look([NAME], [])
    assert waits.is_waiting
    waits.look([NAME], [crd(condition("Established", "True"))])
    assert not waits.is_waiting
