"""The audit of the real Gatekeeper, and ours of the same cluster: equal in every total and line."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadtest.bench.gatekeeper import NAMESPACE as GATEKEEPER_NAMESPACE
from tests.patience import until
from tests.system import audited
from tests.system.conftest import control_plane
from tests.system.peer import Gatekeeper
from tests.system.replicas import NAMESPACE, Plane, Replica

LIMITS = ("--audit-interval=2", "--audit-chunk-size=7")
NAMES = set(audited.SPECS)
IDLE = {"nothing", "at-the-webhook"}
"""The constraints that nothing violates."""


@pytest.fixture
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane with Gatekeeper's CRDs, policies and objects."""
    folder = tmp_path_factory.mktemp("audited")
    with control_plane(folder, install=Gatekeeper.install) as made:
        yield made


def now() -> str:
    return dt.datetime.now(tz=dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.slow
def test_totals_and_violations_are_gatekeeper_s(plane: Plane, tmp_path: Path) -> None:
    """Of namespaces, cluster-scoped kinds, excluded ones, selectors, actions and expansions."""
    audited.apply_all(plane)
    for namespace in (GATEKEEPER_NAMESPACE, NAMESPACE):
        audited.apply(plane, *audited.config(namespace))
    path = "/apis/expansion.gatekeeper.sh/v1beta1/expansiontemplate/deployments"
    audited.apply(plane, path, audited.EXPANSION)
    with Gatekeeper(plane, tmp_path, ("audit", "status", "generate"), *LIMITS):
        plane.put_template(audited.TEMPLATE)
        until(lambda: audited.is_served(plane), "the constraint kind is served")
        for constraint in audited.constraints():
            plane.put_constraint(constraint)
        # A sweep that began when everything stood; statuses are written some time after it.
        until(lambda: settled(plane), "Gatekeeper has told of every constraint")
    theirs = audited.results(plane)
    with Replica(plane, "auditor", "--operation=audit", *LIMITS) as replica:
        replica.wait_ready()
        begun = now()
        until(lambda: audited.is_audited_since(plane, begun, NAMES), "our audit tells of them all")
    ours = audited.results(plane)
    for found in (*theirs.values(), *ours.values()):
        del found["auditTimestamp"]
        for violation in found.get("violations", ()):
            # Gatekeeper takes them from a map, in an order that changes.
            violation.get("enforcementActions", []).sort()
    assert ours == theirs
    counts = {name: found["totalViolations"] for name, found in ours.items()}
    assert counts["excluding"] > 20, "more than a status shows"
    assert len(ours["excluding"]["violations"]) == 20
    assert counts["nothing"] == counts["at-the-webhook"] == 0
    idle = {name for name, total in counts.items() if not total}
    assert idle == IDLE, "each of the others says something"


def settled(plane: Plane) -> bool:
    """Whether every constraint has been told of by a sweep that began when all of them stood."""
    until(
        lambda: all("auditTimestamp" in found for found in audited.results(plane).values()),
        "Gatekeeper has told of every constraint",
    )
    moment = now()
    until(lambda: audited.is_audited_since(plane, moment, NAMES), "another sweep is told")
    # Gatekeeper tells totals of nothing while its own cache of constraints is being filled.
    idle = {name for name, total in audited.totals(plane).items() if not total}
    return idle == IDLE
