"""Faults in the middle of a sweep: no wrong total is ever published, and the next sweep is right."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.patience import until
from tests.system.bulk import create
from tests.system.conftest import control_plane
from tests.system.gate import Gate
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
)
from tests.system.watched_lists import FEATURES

BAD = 90
GOOD = 30
PATH = f"{CONSTRAINTS}/denied/words"
FLAGS = ("--operation=audit", "--operation=generate", "--audit-interval=1", "--audit-chunk-size=20")
"""Six pages; the gate holds back the second."""

StartAudit = Callable[..., Replica]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane that forgets, as any etcd does, with a policy and objects on six pages."""
    folder = tmp_path_factory.mktemp("audit-faults")
    with control_plane(folder, "-apiserver-args", FEATURES) as made:
        words = ["bad"] * BAD + ["good"] * GOOD
        create(
            made.api,
            (
                (CONFIG_MAPS, config_map(word, f"object-{number:03}"))
                for number, word in enumerate(words)
            ),
        )
        with Replica(made, "auditor-first", *FLAGS) as first:
            first.wait_ready()
            made.put_template(template("Denied"))
            made.put_constraint(constraint("words", "bad"))
            until(lambda: total(made) == BAD, "a sweep told the total")
        yield made
        made.cluster.kill()  # told to stop it would wait for watches


@pytest.fixture
def start(plane: Plane) -> Iterator[StartAudit]:
    """Starts audits; they and their Pods end with the test."""
    with ExitStack() as stack:

        def start_one(name: str, *flags: str) -> Replica:
            replica = Replica(plane, name, *FLAGS, *flags)
            stack.callback(plane.delete_pod, name)
            stack.enter_context(replica)
            return replica

        yield start_one


def status(plane: Plane) -> dict[str, Any]:
    """The constraint's status."""
    found = try_request(plane.api, "GET", PATH) or {}
    return dict(found.get("status") or {})


def total(plane: Plane) -> int | None:
    """Returns the audit's ``totalViolations``."""
    return status(plane).get("totalViolations")


def second_page(path: str) -> bool:
    """Whether a request is for the second or a later page of the objects."""
    return "/configmaps?" in path and "continue=" in path


def held(gate: Gate, start: StartAudit, name: str) -> Replica:
    """An audit whose first sweep waits for the second page."""
    gate.hold(second_page)
    replica = start(name, f"--kubeconfig={gate.kubeconfig}")
    gate.wait_for(1)
    return replica


def finished(replica: Replica, number: int = 1) -> dict[str, Any]:
    """The end of one of its sweeps."""
    return replica.wait_for("auditing is complete", number=number)


def violating_names(replica: Replica, audit_id: str) -> list[str]:
    """The names of the objects whose violations a sweep logged."""
    return [
        event["resource_name"]
        for event in replica.events
        if event.get("event_type") == "violation_audited" and event["audit_id"] == audit_id
    ]


def published(plane: Plane, replica: Replica, number: int) -> dict[str, Any]:
    """The status that one of its sweeps wrote."""
    audit_id = finished(replica, number)["audit_id"]
    until(lambda: status(plane)["auditTimestamp"] >= audit_id, "the sweep's results are written")
    return status(plane)


def test_a_token_that_expired_costs_no_object_and_tells_of_none_twice(
    plane: Plane, gate: Gate, start: StartAudit
) -> None:
    """The list's revision is compacted between two pages: it goes on behind the last object."""
    replica = held(gate, start, "auditor-expired")
    # Otherwise nothing has happened since that revision.
    changed = config_map("bad", "object-000") | {"data": {"deny": "bad", "more": "now"}}
    plane.api.apply(f"{CONFIG_MAPS}/object-000", changed)
    plane.cluster.compact()
    gate.open()
    end = finished(replica)
    assert 410 in [code for path, code in gate.answers if second_page(path)]
    names = violating_names(replica, end["audit_id"])
    assert len(names) == len(set(names)) == BAD
    assert end["kinds_failed"] == []
    assert published(plane, replica, 1)["totalViolations"] == BAD
    series = 'waddle_audit_list_tokens_expired_total{how="continued"}'
    until(lambda: (replica.metric(series) or 0) >= 1, "it is counted")


def test_a_restart_of_the_api_server_within_a_list_is_waited_out(
    plane: Plane, gate: Gate, start: StartAudit
) -> None:
    """The page is asked for until it comes."""
    replica = held(gate, start, "auditor-restart")
    plane.cluster.kill()
    gate.open()
    plane.cluster.run()
    end = finished(replica)
    assert len(set(violating_names(replica, end["audit_id"]))) == BAD
    assert end["kinds_failed"] == []
    assert published(plane, replica, 1)["totalViolations"] == BAD


def test_an_audit_killed_within_a_sweep_leaves_the_total_and_its_successor_tells_the_next(
    plane: Plane, gate: Gate, start: StartAudit
) -> None:
    """The killed audit's partial count is never published."""
    before = status(plane)
    replica = held(gate, start, "auditor-killed")
    plane.api.request("POST", CONFIG_MAPS, config_map("bad", "object-more"))
    replica.kill()
    gate.open()
    assert {key: status(plane)[key] for key in AUDITED} == {key: before[key] for key in AUDITED}
    successor = start("auditor-successor")
    assert published(plane, successor, 1)["totalViolations"] == BAD + 1
    plane.api.request("DELETE", f"{CONFIG_MAPS}/object-more")
    number = len([event for event in successor.events if is_end(event)]) + 2
    assert published(plane, successor, number)["totalViolations"] == BAD


AUDITED = ("auditTimestamp", "totalViolations", "violations")


def is_end(event: dict[str, Any]) -> bool:
    return event.get("event_type") == "audit_finished"


def test_a_namespace_deleted_within_a_sweep_fails_nothing_and_its_objects_leave_the_total(
    plane: Plane, gate: Gate, start: StartAudit
) -> None:
    """Its objects were there when the list began: with them or without, but nothing between."""
    doomed = "zz-doomed"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": doomed}}
    plane.api.apply(f"/api/v1/namespaces/{doomed}", body)
    collection = f"/api/v1/namespaces/{doomed}/configmaps"
    objects = [config_map("bad", f"doomed-{number}", doomed) for number in range(5)]
    create(plane.api, ((collection, item) for item in objects))
    replica = held(gate, start, "auditor-doomed")
    plane.api.request("DELETE", f"/api/v1/namespaces/{doomed}")
    until(
        lambda: try_request(plane.api, "GET", f"/api/v1/namespaces/{doomed}") is None,
        "the namespace is gone",
    )
    gate.open()
    assert finished(replica)["kinds_failed"] == []
    assert finished(replica)["constraints_undecided"] == []
    assert published(plane, replica, 1)["totalViolations"] in (BAD, BAD + len(objects))
    assert published(plane, replica, 2)["totalViolations"] == BAD


def test_a_conflict_on_the_status_loses_neither_our_results_nor_the_other_writer_s(
    plane: Plane, gate: Gate, start: StartAudit
) -> None:
    """Another writes byPod between our reading and our writing."""
    gate.hold(lambda path: path.startswith(f"{PATH}/status"))
    replica = start("auditor-conflict", f"--kubeconfig={gate.kubeconfig}")
    gate.wait_for(1)
    current = plane.api.request("GET", PATH)
    theirs = [{"id": "another", "enforced": True}]
    current["status"] = {**current["status"], "byPod": theirs}
    plane.api.request("PUT", f"{PATH}/status", current)
    gate.open()
    found = published(plane, replica, 1)
    codes = [code for path, code in gate.answers if path.startswith(f"{PATH}/status")]
    assert codes[0] == 409
    assert found["byPod"] == theirs
    assert (found["totalViolations"], len(found["violations"])) == (BAD, 20)


def test_a_constraint_changed_within_a_sweep_gets_no_total_of_what_it_said_before(
    plane: Plane, gate: Gate, start: StartAudit
) -> None:
    """The next sweep, which is of the new one, tells it."""
    before = status(plane)
    replica = held(gate, start, "auditor-changed")
    plane.put_constraint(constraint("words", "good"))
    gate.open()
    first = finished(replica)["audit_id"]
    assert len(violating_names(replica, first)) == BAD, "it was of the constraint as it stood"
    finished(replica, 2)
    until(lambda: status(plane)["auditTimestamp"] > before["auditTimestamp"], "results come")
    assert total(plane) == GOOD
    shown = json.dumps(plane.api.request("GET", PATH)["status"]["violations"])
    assert "denied by bad" not in shown
    plane.put_constraint(constraint("words", "bad"))
    until(lambda: total(plane) == BAD, "as it was")


def test_a_kind_that_may_not_be_read_is_left_out_and_named(plane: Plane, tmp_path: Path) -> None:
    """The totals are of what may be read; a metric says that something may not."""
    kubeconfig, rights = account(plane, tmp_path)
    path = f"{CONSTRAINTS}/narrow/everything"

    def delete_policy() -> None:
        plane.delete_template("narrow")
        until(lambda: try_request(plane.api, "GET", path) is None, "the constraint goes with it")

    with ExitStack() as left_as_it_was:
        for right in rights:
            left_as_it_was.callback(plane.api.request, "DELETE", right)
        left_as_it_was.callback(delete_policy)
        left_as_it_was.callback(plane.delete_pod, "auditor-narrow")
        arguments = (*FLAGS, f"--kubeconfig={kubeconfig}")
        replica = left_as_it_was.enter_context(Replica(plane, "auditor-narrow", *arguments))
        plane.put_template(template("Narrow"))
        everything = constraint("everything", "bad", "Narrow")
        everything["spec"]["match"] = {"namespaces": [WORKLOADS]}
        plane.put_constraint(everything)
        until(
            lambda: plane.api.request("GET", path).get("status", {}).get("totalViolations") == BAD,
            "the total of what may be read",
        )

        def ends() -> list[dict[str, Any]]:
            return [one for one in replica.events if is_end(one) and one["kinds_unreadable"]]

        until(ends, "the end of a sweep tells of the kind")  # it comes after the total
        assert ends()[-1]["kinds_unreadable"] == ["/v1, Kind=Secret"]
        assert ends()[-1]["kinds_failed"] == []
        assert replica.metric("waddle_audit_kinds_unreadable") == 1


def account(plane: Plane, folder: Path) -> tuple[Path, list[str]]:
    """The kubeconfig of one that may do everything but read Secrets, and paths of its rights."""
    group = "/apis/rbac.authorization.k8s.io/v1"
    paths = [f"{group}/clusterroles/narrow", f"{group}/clusterrolebindings/narrow"]
    everything = plane.api.request("GET", "/apis")["groups"]
    groups = [item["name"] for item in everything]
    core = [
        item["name"]
        for item in plane.api.request("GET", "/api/v1")["resources"]
        if item["name"] != "secrets"
    ]
    rules = [
        {"apiGroups": groups, "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": core, "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["get"]},
    ]
    metadata = {"name": "narrow"}
    rbac = "rbac.authorization.k8s.io"
    role = {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules}
    plane.api.apply(paths[0], role)
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": WORKLOADS}
    binding = {
        "apiVersion": f"{rbac}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "narrow"},
        "subjects": [subject],
    }
    plane.api.apply(paths[1], binding)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = f"/api/v1/namespaces/{WORKLOADS}/serviceaccounts/default/token"
    token = plane.api.request("POST", path, body)["status"]["token"]
    config = yaml.safe_load(plane.cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    file = folder / "narrow-kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return file, paths
