"""`waddle status` shows synced kinds."""

import json
import re
from typing import Any

from tests import policies
from webhook.api.gvk import GroupVersionKind
from webhook.cli.status.report import ClusterStanding, as_json, as_table
from webhook.controllers.requirements import missing_text
from webhook.controllers.status.convergence import converge
from webhook.controllers.status.synced_kinds import SyncedKind, SyncFacts, rows_of
from webhook.replicas.pods import Replica

PODS = GroupVersionKind("", "v1", "Pod")
SERVICES = GroupVersionKind("", "v1", "Service")
SYNC = {
    "kind": "SyncSet",
    "metadata": {"name": "s"},
    "spec": {"gvks": [PODS._asdict(), SERVICES._asdict()]},
}


def reader(kind: str, body: str) -> Any:
    return policies.template(kind, f'package p\nviolation[{{"msg": "no"}}] {{ {body} }}')


NODES = reader("Nodes", 'data.inventory.namespace[_].v1.Pod[_].spec.nodeName == "x"')
WHOLES = reader("Wholes", "data.inventory.namespace[_].v1.Pod[_] == input.review.object")


def rows(*templates: Any, arguments: tuple[str, ...] = ()) -> list[SyncedKind]:
    pod = {"spec": {"containers": [{"args": ["serve", *arguments]}]}}
    return rows_of(SyncFacts.of([SYNC], [pod], []), templates, {PODS: 3})


def shown(found: list[SyncedKind]) -> list[list[str]]:
    lines = as_table(ClusterStanding([], [], [], {}, synced=found), "waddle-system").splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("SYNCED KIND"))
    return [re.split(r" {2,}", line) for line in lines[first + 1 :]]


def test_paths_that_templates_read_are_shown_with_the_number_of_objects() -> None:
    found = rows(NODES)
    assert [one.paths for one in found] == [("spec.nodeName",), ()]
    assert shown(found) == [
        ["v1/Pod", "3", "spec.nodeName", "-"],
        ["v1/Service", "?", "names alone", "-"],
    ]
    (pods, services) = json.loads(as_json(ClusterStanding([], [], [], {}, synced=found)))[
        "syncedKinds"
    ]
    assert pods["paths"] == ["spec.nodeName"]
    assert pods["objects"] == 3
    assert services["objects"] is None


def test_whole_objects_name_the_template_that_reads_them() -> None:
    pods, services = rows(NODES, WHOLES)
    assert (pods.paths, pods.why_whole) == (("*",), "read by wholes")
    assert services.why_whole == ""


def test_whole_objects_name_the_flag_that_keeps_them() -> None:
    for flag in ("--sync-projection=false", "--kyverno-policies=audit"):
        assert {one.why_whole for one in rows(NODES, arguments=(flag,))} == {flag}


def test_a_template_that_waits_for_data_is_named_at_its_kind() -> None:
    document = NODES | {"metadata": {"name": "nodes", "uid": "u", "generation": 1}}
    error = {"code": "missing_data", "message": missing_text((frozenset({PODS}),))}
    status = {"id": "a", "podUID": "r", "templateUID": "u", "observedGeneration": 1}
    body = {
        "metadata": {"ownerReferences": [{"kind": "Pod", "uid": "r"}]},
        "status": {**status, "errors": [error]},
    }
    converged = converge(
        document, [body], [Replica("a", "r", ready=True, terminating=False, finished=False)]
    )
    pods, services = rows_of(SyncFacts.of([SYNC], [], [converged]), [NODES])
    assert (pods.waiting, services.waiting) == (("nodes",), ())
