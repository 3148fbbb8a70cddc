"""Waddle and Gatekeeper on one cluster with Gatekeeper's CRDs: no fights, then a takeover."""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from loadtest.bench.gatekeeper import POD
from tests.conformance.gatekeeper import waddle
from tests.patience import PATIENCE_SECONDS, until
from tests.system.beside import run
from tests.system.conftest import ALL_OPERATIONS
from tests.system.peer import Gatekeeper
from tests.system.replicas import (
    CONSTRAINTS,
    CRD_PATH,
    STATUSES,
    TEMPLATES,
    Plane,
    Replica,
    constraint,
    template,
)
from tests.system.rounds import others, rest
from webhook.controllers.apply.constraint_crds import COLUMNS

PATH = f"{CONSTRAINTS}/shared/words"
PRUNED = 'waddle_status_fields_pruned{kind="ConstraintPodStatus"}'
NAMES = [f"beside-{number}" for number in range(3)]


@pytest.mark.slow(45)
def test_beside_gatekeeper_nobody_fights_and_then_waddle_takes_over(
    peers_plane: Plane, tmp_path: Path
) -> None:
    """Gatekeeper runs every operation, audit in short turns; each replica serves alone."""
    plane = peers_plane
    with ExitStack() as stack:
        peer = Gatekeeper(plane, tmp_path, ("webhook", "status", "generate", "audit"), AUDIT)
        stack.enter_context(peer)
        replicas = run(plane, stack, NAMES)
        plane.put_template(template("Shared"))
        plane.put_constraint(constraint("words", "shared", "Shared"))
        for each in (peer, *replicas):
            until(lambda each=each: each.denies("shared"), "each denies")
        shows_itself(plane, replicas)
        until(lambda: shown(plane, PATH) == [POD], "Gatekeeper says so in byPod")
        writes_nothing(plane, NAMES, [POD])
        assert touched(plane) == {"constraintpodstatuses/", "constrainttemplatepodstatuses/"}
        until(lambda: "shared/status" in touched(plane, "gatekeeper/"), "its audit writes")
        until(lambda: "auditTimestamp" in status(plane), "Gatekeeper's audit has told its total")
        peer.stop()
        audited = status(plane)  # no other program writes its last findings
        for replica in replicas:
            assert replica.stop() == 0
            plane.delete_pod(replica.name)
        names = [f"after-{number}" for number in range(3)]
        replicas = run(plane, stack, names, *ALL_OPERATIONS)
        takes_over(plane, replicas, audited)
        writes_nothing(plane, names, names)
        keeps_every_field(plane, replicas)


@pytest.mark.slow(20)
def test_where_both_make_the_crds_of_constraints_neither_writes_for_ever(
    peers_plane: Plane, tmp_path: Path
) -> None:
    """This happens without intention if the base is applied beside Gatekeeper."""
    plane = peers_plane
    with ExitStack() as stack:
        peer = Gatekeeper(plane, tmp_path, ("webhook", "status", "generate"))
        stack.enter_context(peer)
        replicas = run(plane, stack, ["both-0"], "--operation=webhook,generate")
        for name in ("Early", "Late"):
            plane.put_template(template(name))
            plane.put_constraint(constraint("words", name.lower(), name))
            for each in (peer, *replicas):
                until(lambda each=each, name=name: each.denies(name.lower()), "each denies")
            changed = template(name)
            schema = changed["spec"]["crd"]["spec"]["validation"]["openAPIV3Schema"]
            schema["properties"]["more"] = {"type": "string"}
            plane.put_template(changed)

        rest(plane, [POD, "both-0"], partial(crd_writes, plane), shown=[POD])
        plane.delete_pod("both-0")
        plane.delete_templates()


def crd_writes(plane: Plane) -> list[str]:
    """Of constraints' CRDs, by both."""
    written = [line for agent in ("waddle/", "gatekeeper/") for line in plane.writes(agent)]
    return [line for line in others(written) if "customresourcedefinitions" in line]


AUDIT = "--audit-interval=2"


def shown(plane: Plane, path: str) -> list[str]:
    """The pods in `.status.byPod`."""
    return [entry["id"] for entry in plane.by_pod(path)]


def touched(plane: Plane, agent: str = "waddle/") -> set[str]:
    """The resources that replicas, or another program, have written."""
    return {line.split()[1] for line in plane.writes(agent)}


def shows_itself(plane: Plane, replicas: list[Replica]) -> None:
    """By `waddle status` and `wait`; and what the CRDs do not keep is said three times over."""
    options = ("--kubeconfig", str(plane.cluster.kubeconfig))
    waited = waddle(
        "wait",
        "Shared/words",
        "ConstraintTemplate/shared",
        f"--timeout={PATIENCE_SECONDS:.0f}s",
        *options,
    )
    assert waited.returncode == 0, waited.stderr
    table = waddle("status", *options).stdout.splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in table if "  " in line}
    assert rows["Shared/words"] == ["1", "3/3", "-", "yes", "yes", "yes"]
    assert rows["ConstraintTemplate/shared"] == ["1", "3/3", "-", "yes", "yes", "yes"]
    assert "times are not known: the CRDs of statuses are Gatekeeper's own" in table[-1]
    for replica in replicas:
        event = replica.wait_for(
            "the CRD is another product's: statuses lack the fields that only Waddle has",
            crd="constraintpodstatuses.status.gatekeeper.sh",
        )
        assert {"activeGeneration", "since"} <= set(event["fields"])
        until(
            lambda replica=replica, event=event: replica.metric(PRUNED) == len(event["fields"]),
            "a metric says how many",
        )


def writes_nothing(plane: Plane, names: Sequence[str], shown: Sequence[str]) -> None:
    """From some moment on; Gatekeeper, if it runs, writes what its audit found and no more."""

    def written() -> list[str]:
        theirs = others(plane.writes("gatekeeper/"))
        return others(plane.writes()) + [line for line in theirs if " shared/status " not in line]

    rest(plane, sorted({*names, *shown}), written, shown=shown)


def takes_over(plane: Plane, replicas: list[Replica], audited: dict[str, Any]) -> None:
    """Its entries go and ours come; its CRDs are right and stay; its audit's findings stay."""
    names = [replica.name for replica in replicas]
    crd = f"{CRD_PATH}/shared.constraints.gatekeeper.sh"
    until(lambda: COLUMNS in annotations(plane, crd), "its columns are added, once")
    before = plane.api.request("GET", crd)["metadata"]["resourceVersion"]
    for path in (PATH, f"{TEMPLATES}/shared"):
        until(lambda path=path: shown(plane, path) == names, f"byPod of {path} is ours")
    status = plane.api.request("GET", PATH)["status"]
    kept = ("auditTimestamp", "totalViolations")
    assert [status[name] for name in kept] == [audited[name] for name in kept]
    plane.put_template(template("Taken"))
    plane.put_constraint(constraint("words", "taken", "Taken"))
    for replica in replicas:
        until(lambda replica=replica: replica.denies("taken"), "what is new is enforced")
        assert replica.denies("shared")
    assert plane.api.request("GET", crd)["metadata"]["resourceVersion"] == before
    until(lambda: shown(plane, f"{CONSTRAINTS}/taken/words") == names, "and shown")


def status(plane: Plane) -> dict[str, Any]:
    """Of the constraint."""
    found: dict[str, Any] = plane.api.request("GET", PATH)["status"]
    return found


def annotations(plane: Plane, path: str) -> dict[str, str]:
    """Returns the annotations of an object."""
    return plane.api.request("GET", path)["metadata"].get("annotations") or {}


def keeps_every_field(plane: Plane, replicas: list[Replica]) -> None:
    """From when our CRDs are applied, while the replicas run."""
    plane.install()
    path = f"{STATUSES}/constraintpodstatuses"

    def has_all() -> bool:
        return all("since" in item["status"] for item in plane.api.request("GET", path)["items"])

    until(has_all, "the statuses hold what was left out")
    for replica in replicas:
        replica.wait_for("the CRD keeps every field of statuses")
        until(lambda replica=replica: replica.metric(PRUNED) == 0, "the metric says so")
