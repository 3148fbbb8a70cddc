"""Output of an audit besides statuses: Events, the log, the decision log, metrics, synced data."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.decisions.process import Sidecar
from tests.manifests import MANIFESTS, kustomized, path_of, pod_of
from tests.patience import until
from tests.system import audited
from tests.system.replicas import NAMESPACE, Plane, Replica

FLAGS = ("--operation=audit", "--operation=generate", "--audit-interval=1")
NAMES = ("dry", "at-the-audit", "cluster-scoped")
SYNC_SET = "/apis/syncset.gatekeeper.sh/v1alpha1/syncsets/audited"


@pytest.fixture(scope="module")
def policies(audited_plane: Plane) -> Iterator[Plane]:
    """The mixed set, with a few of its constraints in force."""
    with Replica(audited_plane, "audit-maker", *FLAGS) as maker:
        maker.wait_ready()
        audited_plane.put_template(audited.TEMPLATE)
        for constraint in audited.constraints():
            if constraint["metadata"]["name"] in NAMES:
                audited_plane.put_constraint(constraint)
        until(lambda: None not in audited.totals(audited_plane).values(), "totals are told")
    audited_plane.delete_pod("audit-maker")
    yield audited_plane
    audited_plane.delete_templates()


def audit(stack: ExitStack, plane: Plane, name: str, *flags: str) -> Replica:
    """An audit that has ended a sweep."""
    stack.callback(plane.delete_pod, name)
    replica = stack.enter_context(Replica(plane, name, *FLAGS, *flags))
    replica.wait_for("auditing is complete")
    return replica


def test_the_log_the_decision_log_and_the_metrics_have_what_the_statuses_count(
    policies: Plane, tmp_path: Path
) -> None:
    """A sweep has the same violations in four accounts."""
    target = tmp_path / "decisions.ndjson"
    sink = {"name": "file", "type": "file", "settings": {"path": str(target)}}
    with ExitStack() as stack:
        sidecar = stack.enter_context(Sidecar(tmp_path / "sidecar", [sink]))
        configuration = tmp_path / "decisions.yaml"
        configuration.write_text(json.dumps({"sidecarURL": sidecar.url}))
        flag = f"--decision-log-config={configuration}"
        replica = audit(stack, policies, "audit-accounts", flag)
        end = replica.wait_for("auditing is complete")
        until(
            lambda: audited.is_audited_since(policies, end["audit_id"], set(NAMES)),
            "the sweep's totals are written",
        )
        totals = audited.totals(policies)
        assert end["violations"] == sum(totals.values())
        actions = {"dryrun": totals["dry"], "scoped": totals["at-the-audit"]}
        actions["deny"] = totals["cluster-scoped"]
        for action, number in actions.items():
            series = f'gatekeeper_violations{{enforcement_action="{action}"}}'
            until(lambda s=series, n=number: replica.metric(s) == n, f"{series} is {number}")
        assert (replica.metric("gatekeeper_audit_duration_seconds_count") or 0) >= 1
        assert (replica.metric("gatekeeper_audit_last_run_time") or 0) > 0
        assert replica.stop() == 0
        logged = [event for event in replica.events if is_violation(event, end["audit_id"])]
        sidecar.stop()
    assert {event["process"] for event in logged} == {"audit"}
    records = [json.loads(line) for line in target.read_text().splitlines()]
    records = [
        record for record in records if record.get("auditID", "").startswith(end["audit_id"])
    ]
    types = [record["eventType"] for record in records]
    assert (types[0], types[-1]) == ("audit_started", "audit_finished")
    recorded = [
        (record["resourceKind"], record["resourceNamespace"], record["resourceName"], item)
        for record in records
        if record["eventType"] == "decision"
        for item in (result["constraint"]["name"] for result in record["results"])
    ]
    keys = ("resource_kind", "resource_namespace", "resource_name", "constraint_name")
    assert sorted(recorded) == sorted(tuple(event[key] for key in keys) for event in logged)
    assert len(recorded) == len(set(recorded)) == sum(totals.values())
    details = [
        result["details"]
        for record in records
        if record["eventType"] == "decision"
        for result in record["results"]
    ]
    assert all(item == {"missing": "owner"} for item in details)


def is_violation(event: dict[str, Any], audit_id: str) -> bool:
    """Whether a line of the log is a violation of a sweep."""
    return event.get("event_type") == "violation_audited" and event["audit_id"] == audit_id


@pytest.mark.parametrize("inside", [False, True])
def test_an_event_tells_of_each_violation_and_is_counted_up_when_it_is_found_again(
    policies: Plane, *, inside: bool
) -> None:
    """In our namespace, or in the object's where that is asked for."""
    name = f"audit-events-{inside}".lower()

    def written() -> list[dict[str, Any]]:
        path = "/api/v1/events?fieldSelector=reason%3DAuditViolation"
        return [
            item
            for item in policies.api.request("GET", path)["items"]
            if (item["metadata"]["namespace"] != NAMESPACE) is inside
            and item["metadata"]["annotations"]["constraint_name"] == "at-the-audit"
        ]

    # Another test's audit may have written the same Events.
    before = {item["metadata"]["name"]: item["count"] for item in written()}

    def are_counted_up() -> bool:
        counts = {item["metadata"]["name"]: item["count"] for item in written()}
        return len(counts) == 2 and all(
            count > before.get(event, 1) for event, count in counts.items()
        )

    flags = ["--emit-audit-events"]
    flags += ["--audit-events-involved-namespace"] if inside else []
    with ExitStack() as stack:
        audit(stack, policies, name, *flags)
        until(are_counted_up, "two Events, counted up")
    found = written()
    subject = found[0]["involvedObject"]
    assert found[0]["source"] == {"component": "gatekeeper-audit"}
    assert found[0]["type"] == "Warning"
    assert found[0]["metadata"]["annotations"]["event_type"] == "violation_audited"
    text = f"Constraint: at-the-audit, Message: ConfigMap {subject['name']} has no label owner"
    if inside:
        assert subject["namespace"] == "audited-b"
        assert found[0]["message"] == text
    else:
        assert subject["uid"] == f"ConfigMap/audited-b/{subject['name']}/Labelled//at-the-audit"
        assert found[0]["message"] == f"Resource Namespace: audited-b, {text}"


RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")


def test_the_audit_of_the_manifests_has_the_rights_that_it_needs_and_no_admission_port(
    policies: Plane, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """With their arguments, as their account, Events in the objects' namespaces included."""
    objects = kustomized(MANIFESTS / "base")
    for (kind, _, name), item in objects.items():
        if kind in RIGHTS and name == "waddle-audit":
            path = path_of(item)
            policies.api.apply(path, item)
            request.addfinalizer(partial(policies.api.request, "DELETE", path))
    every_kind = next(
        item for item in audited.constraints() if item["metadata"]["name"] == "every-kind"
    )
    policies.put_constraint(every_kind)
    request.addfinalizer(lambda: policies.delete_constraint("every-kind", "labelled"))
    request.addfinalizer(lambda: policies.delete_pod("audit-installed"))
    (container,) = pod_of(objects, "waddle-audit")["spec"]["containers"]
    ports = ("serve", "--kubernetes", "--health-addr", "--prometheus-port", "--audit-interval")
    flags = [item for item in container["args"] if not item.startswith(ports)]
    flags += ["--audit-interval=1", "--emit-audit-events", "--audit-events-involved-namespace"]
    flags.append(f"--kubeconfig={account(policies, tmp_path)}")
    with Replica(policies, "audit-installed", *flags) as replica:
        replica.wait_ready()
        # A sweep with the constraint in force has told its total.
        until(lambda: audited.totals(policies)["every-kind"] is not None, "its total is told")
        ended = len([one for one in replica.events if one["msg"] == "auditing is complete"])
        end = replica.wait_for("auditing is complete", number=ended + 1)
        assert end["kinds_unreadable"] == end["kinds_failed"] == []
        assert end["kinds"] > 20, "a constraint on every kind asks for every kind"
        assert "admission" not in replica.ports
        series = 'waddle_audit_events_total{outcome="written"}'
        until(lambda: (replica.metric(series) or 0) > 0, "Events are written")
        assert replica.metric('waddle_audit_events_total{outcome="failed"}') is None
        for part in ("audit", "status"):
            failures = f'waddle_api_write_failures_total{{what="{part}"}}'
            assert not replica.metric(failures)


def account(plane: Plane, folder: Path) -> Path:
    """A kubeconfig of the audit's own account."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/waddle-audit/token"
    token = plane.api.request("POST", path, body)["status"]["token"]
    config = yaml.safe_load(plane.cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    file = folder / "kubeconfig-of-the-audit"
    file.write_text(yaml.safe_dump(config))
    return file


def test_synced_data_is_audited_in_place_of_lists(policies: Plane) -> None:
    """Only what Config and SyncSets ask for: of other kinds there is nothing to count."""
    before = audited.totals(policies)
    sync_set = {
        "apiVersion": "syncset.gatekeeper.sh/v1alpha1",
        "kind": "SyncSet",
        "metadata": {"name": "audited"},
        "spec": {"gvks": [{"group": "", "version": "v1", "kind": "ConfigMap"}]},
    }
    with ExitStack() as stack:
        policies.api.apply(SYNC_SET, sync_set)
        stack.callback(policies.api.request, "DELETE", SYNC_SET)
        replica = audit(stack, policies, "audit-cached", "--audit-from-cache")

        def is_left_out() -> bool:
            """Returns whether kinds that were not listed keep their earlier totals instead of 0."""
            found = audited.totals(policies)
            unseen = found.pop("cluster-scoped")
            rest = {name: total for name, total in before.items() if name != "cluster-scoped"}
            return found == rest and unseen in (None, before["cluster-scoped"])

        sweeps = "waddle_audit_sweeps_total{outcome="
        until(
            lambda: any(
                line.startswith(sweeps) and not line.endswith(" 0")
                for line in replica.get("metrics", "/metrics").body.decode().splitlines()
            ),
            "a sweep of what is synced",
        )
        until(is_left_out, "totals of what is synced")
        assert all(event.get("kinds_failed", []) == [] for event in replica.events)
