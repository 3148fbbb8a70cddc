"""Policy reports as the audit writes them: complete, accepted by the CRDs, and never stale."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.patience import PATIENCE_SECONDS, until
from tests.system import reporting
from tests.system.conftest import control_plane
from tests.system.replicas import CONSTRAINTS, Plane, Replica, constraint, try_request
from tests.system.reporting import (
    await_sweeps,
    by_scope,
    have_shares,
    make_namespace,
    metric,
    put_config_map,
    reports,
    rules,
)
from tests.webhook.mutation.documents import label
from webhook.reports.report_api import APIS, OPENREPORTS, WGPOLICY

pytestmark = pytest.mark.slow

AUDIT = ("--operation=audit,status,generate", "--audit-interval=1", "--reports")
AUDIT_LABELS = {"app.kubernetes.io/name": "waddle", "gatekeeper.sh/operation": "audit"}
CONFIG = "/apis/config.gatekeeper.sh/v1alpha1/namespaces/waddle-system/configs/config"

Start = Callable[..., Replica]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane with the reports' CRDs, for these tests alone: they audit all of it."""
    folder = tmp_path_factory.mktemp("reports")
    with control_plane(folder, install=reporting.install) as made:
        templates = [made.put_template(item) for item in (reporting.TEMPLATE, reporting.NAMESPACES)]
        with Replica(made, "maker", "--operation=audit,status,generate") as maker:
            for item in templates:
                name, uid = item["metadata"]["name"], item["metadata"]["uid"]
                until(
                    lambda name=name, uid=uid: made.is_generated(name, uid),
                    "constraints have their kinds",
                )
            maker.kill()
        made.delete_pod("maker")
        yield made


@pytest.fixture
def audit(plane: Plane) -> Iterator[Start]:
    """Starts an audit with more flags; it ends with the test, as do the policies."""
    with ExitStack() as stack:

        def start(*flags: str, name: str = "auditor") -> Replica:
            stack.callback(plane.delete_pod, name)
            replica = Replica(plane, name, *AUDIT, *flags, labels=AUDIT_LABELS)
            stack.enter_context(replica)
            replica.wait_ready()
            plane.mark_pod(name, ready=True)
            return replica

        yield start
    for kind in ("denied", "labelled"):
        plane.api.request("DELETE", f"{CONSTRAINTS}/{kind}")
    try_request(plane.api, "DELETE", CONFIG)
    reporting.delete_everywhere(plane)


@pytest.mark.parametrize("api", APIS.values(), ids=APIS)
def test_each_violating_resource_has_a_report_that_viewers_understand(plane, audit, api):
    """Policy Reporter and Headlamp can read them; the CRDs' schemas accept and keep all fields."""
    namespace = f"viewed-{api.name}"
    make_namespace(plane, namespace)
    bad = put_config_map(plane, namespace, "bad", "no")
    put_config_map(plane, namespace, "good", "yes")
    replica = audit(f"--report-api={api.name}")
    plane.put_constraint(constraint("denies", "no"))
    warns = constraint("warns", "no")
    warns["spec"]["enforcementAction"] = "warn"
    plane.put_constraint(warns)
    plane.put_constraint(reporting.labelled("owned"))
    until(
        lambda: (
            namespace in by_scope(plane, "", api)
            and "bad" in by_scope(plane, namespace, api)
            and len(by_scope(plane, namespace, api)["bad"]["results"]) == 2
        ),
        "both have reports",
    )
    await_sweeps(replica)

    assert set(by_scope(plane, namespace, api)) == {"bad"}
    report = by_scope(plane, namespace, api)["bad"]
    uid = bad["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "bad", "uid": uid}
    assert report["metadata"]["name"] == uid
    assert report["metadata"]["ownerReferences"] == [reference]
    assert report["scope"] == reference | {"namespace": namespace}
    assert report["summary"] == {"pass": 0, "fail": 1, "warn": 1, "error": 0, "skip": 0}
    assert rules(report) == [("denies", "fail"), ("warns", "warn")]
    for item in report["results"]:
        assert item["source"] == "waddle"
        assert item["policy"] == "Denied"
        assert item["message"] == "denied by no"
        assert item["timestamp"]["seconds"] > 0
    assert report.get("source") == ("waddle" if api is OPENREPORTS else None)

    of_namespace = by_scope(plane, "", api)[namespace]
    assert of_namespace["scope"]["kind"] == "Namespace"
    (result,) = of_namespace["results"]
    assert (result["severity"], result["category"]) == ("high", "Labels")

    other = WGPOLICY if api is OPENREPORTS else OPENREPORTS
    assert reports(plane, namespace, other) == [], "one API alone is written"
    labels = {"constraint_name": "denies", "namespace": namespace, "result": "fail"}
    until(lambda: metric(replica, "waddle_report_results", **labels) == 1, "the view counts it")


def test_an_audit_that_finds_the_same_writes_nothing(plane, audit):
    make_namespace(plane, "same")
    for number in range(5):
        put_config_map(plane, "same", f"bad{number}", "no")
    plane.put_constraint(constraint("denies", "no"))
    replica = audit()
    until(lambda: len(reports(plane, "same")) == 5, "each has a report")
    await_sweeps(replica)
    before, versions = reporting.writes(plane), versions_of(plane, "same")
    until(lambda: reporting.confirmed(plane) is not None, "it is said when they were confirmed")
    since = reporting.confirmed(plane)
    until(lambda: reporting.confirmed(plane) != since, "and said again")
    await_sweeps(replica, 3)
    assert reporting.writes(plane) == before
    assert versions_of(plane, "same") == versions


def versions_of(plane, namespace):
    return {
        item["metadata"]["name"]: item["metadata"]["resourceVersion"]
        for item in reports(plane, namespace)
    }


def test_no_stale_result_survives(plane, audit):
    """Repairs, other policies, exclusions and deletions remove results."""
    make_namespace(plane, "stale")
    put_config_map(plane, "stale", "bad", "no")
    plane.put_constraint(constraint("first", "no"))
    plane.put_constraint(constraint("second", "no"))
    audit()

    def says(*expected: str) -> bool:
        found = by_scope(plane, "stale").get("bad")
        return [rule for rule, _ in rules(found)] == list(expected) if found else not expected

    until(lambda: says("first", "second"), "both say it")
    plane.put_constraint(constraint("second", "another"))
    until(lambda: says("first"), "a policy changed")
    plane.put_constraint(constraint("second", "no"))
    until(lambda: says("first", "second"), "and changed back")
    plane.delete_constraint("second", "Denied")
    until(lambda: says("first"), "a policy was deleted")
    excluding = constraint("first", "no")
    excluding["spec"]["match"]["excludedNamespaces"] = ["stale"]
    plane.put_constraint(excluding)
    until(says, "the match excludes the namespace")
    del excluding["spec"]["match"]["excludedNamespaces"]
    plane.put_constraint(excluding)
    until(lambda: says("first"), "and includes it again")
    config = {
        "apiVersion": "config.gatekeeper.sh/v1alpha1",
        "kind": "Config",
        "metadata": {"name": "config", "namespace": "waddle-system"},
        "spec": {"match": [{"excludedNamespaces": ["stale"], "processes": ["audit"]}]},
    }
    plane.api.apply(CONFIG, config)
    until(says, "Config excludes the namespace")
    plane.api.request("DELETE", CONFIG)
    until(lambda: says("first"), "and includes it again")
    put_config_map(plane, "stale", "bad", "yes")
    until(says, "the resource was repaired")
    put_config_map(plane, "stale", "bad", "no")
    until(lambda: says("first"), "and broken again")
    plane.delete_constraint("first", "Denied")
    until(says, "no policy is about the kind any more")


def test_audits_that_share_a_cluster_share_its_reports(plane, audit):
    """Each writes those of its share and leaves the other's alone; one that is gone is missed."""
    spaces = [f"shared-{number}" for number in range(12)]
    for space in spaces:
        make_namespace(plane, space)
    replicas = [audit(name=name) for name in ("one", "two")]
    plane.put_constraint(constraint("denies", "no"))
    # An audit that does not know of the other yet also reports the other's share.
    until(lambda: have_shares(plane, 2), "both have spoken of the same shares")
    for space in spaces:
        put_config_map(plane, space, "bad", "no")
    until(lambda: all(len(reports(plane, space)) == 1 for space in spaces), "all have reports")
    for replica in replicas:
        await_sweeps(replica)
    before = reporting.writes(plane)
    for replica in replicas:
        await_sweeps(replica)
        assert metric(replica, "waddle_report_writes_total", action="create") > 0
    assert reporting.writes(plane) == before, "neither touches what the other wrote"
    replicas[0].kill()
    plane.delete_pod("one")
    for space in spaces:
        put_config_map(plane, space, "bad", "yes")
        put_config_map(plane, space, "worse", "no")
    until(
        lambda: all(set(by_scope(plane, space)) == {"worse"} for space in spaces),
        "the one that is left looks at everything",
    )


def test_between_sweeps_reports_follow_what_is_watched(plane, audit):
    """Back and forth: what a report is compared with is what it says by then."""
    make_namespace(plane, "watched")
    put_config_map(plane, "watched", "flips", "yes")
    plane.put_constraint(constraint("denies", "no"))
    replica = audit("--audit-continuous", "--audit-interval=3600")
    until(lambda: reporting.sweeps(replica) == 1, "the one sweep has ended")
    for word in ("no", "yes", "no", "yes"):
        put_config_map(plane, "watched", "flips", word)
        until(lambda word=word: bool(reports(plane, "watched")) == (word == "no"), "it follows")


def test_what_somebody_changed_or_deleted_is_put_right(plane, audit):
    make_namespace(plane, "edited")
    uid = put_config_map(plane, "edited", "bad", "no")["metadata"]["uid"]
    plane.put_constraint(constraint("denies", "no"))
    audit()
    until(lambda: len(reports(plane, "edited")) == 1, "it has a report")
    (report,) = reports(plane, "edited")
    report["results"] = []
    path = WGPOLICY.namespaced.path(uid, "edited")
    plane.api.request("PUT", path, report)
    until(
        lambda: [len(item["results"]) for item in reports(plane, "edited")] == [1],
        "the results are back",
    )
    plane.api.request("DELETE", path)
    until(lambda: len(reports(plane, "edited")) == 1, "the report is back")


def test_the_garbage_collector_removes_reports_of_deleted_resources(plane, audit):
    make_namespace(plane, "collected")
    put_config_map(plane, "collected", "bad", "no")
    put_config_map(plane, "collected", "stays", "no")
    plane.put_constraint(constraint("denies", "no"))
    replica = audit()
    until(lambda: len(reports(plane, "collected")) == 2, "both have reports")
    replica.kill()  # no other audit could do it
    reporting.delete_config_map(plane, "collected", "bad")
    until(lambda: set(by_scope(plane, "collected")) == {"stays"}, "its report is collected")


def test_there_are_no_more_reports_than_allowed_and_it_is_said(plane, audit):
    make_namespace(plane, "capped")
    for number in range(5):
        put_config_map(plane, "capped", f"bad{number}", "no")
    denies, another = constraint("denies", "no"), constraint("another", "no")
    for document in (denies, another):
        document["spec"]["match"]["namespaces"] = [
            "capped"
        ]  # objects of other tests have no report
    plane.put_constraint(denies)
    replica = audit("--report-max-resources=3")
    until(lambda: len(reports(plane, "capped")) == 3, "as many as may be have reports")
    await_sweeps(replica)
    assert len(reports(plane, "capped")) == 3
    assert metric(replica, "waddle_report_limit_reached") == 1
    assert metric(replica, "waddle_report_outcomes_total", outcome="limit") > 0
    replica.wait_for(
        "no more resources get a report: --report-max-resources is reached; reports that exist are kept up to date"
    )
    kept = set(by_scope(plane, "capped"))
    plane.put_constraint(another)
    until(
        lambda: all(len(item["results"]) == 2 for item in reports(plane, "capped")),
        "those that exist are kept up to date",
    )
    assert set(by_scope(plane, "capped")) == kept


def test_another_product_s_report_is_left_alone(plane, audit):
    """Kyverno names its reports by UIDs too."""
    make_namespace(plane, "foreign")
    uid = put_config_map(plane, "foreign", "bad", "no")["metadata"]["uid"]
    theirs = {
        "apiVersion": "wgpolicyk8s.io/v1alpha2",
        "kind": "PolicyReport",
        "metadata": {
            "name": uid,
            "namespace": "foreign",
            "labels": {"app.kubernetes.io/managed-by": "kyverno"},
        },
        "results": [{"policy": "theirs", "result": "fail", "source": "kyverno"}],
    }
    made = plane.api.request("POST", WGPOLICY.namespaced.collection("foreign"), theirs)
    plane.put_constraint(constraint("denies", "no"))
    replica = audit()
    replica.wait_for("another product's report has this resource's name; it is left alone")
    (found,) = reports(plane, "foreign")
    assert found["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


@pytest.mark.parametrize("mode", ["resource", "policy-namespace"])
def test_waddle_report_shows_the_worst_whatever_the_mode(plane, audit, mode):
    namespace = f"shown-{mode}"
    make_namespace(plane, namespace)
    for number in range(3):
        put_config_map(plane, namespace, f"bad{number}", "no")
    plane.put_constraint(constraint("denies", "no"))
    warns = constraint("warns", "no")
    warns["spec"]["enforcementAction"] = "warn"
    plane.put_constraint(warns)
    audit(f"--report-mode={mode}")

    def shown(*options: str) -> str:
        command = [sys.executable, "-m", "webhook", "report", f"-n{namespace}", *options]
        command.append(f"--kubeconfig={plane.cluster.kubeconfig}")
        return subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=PATIENCE_SECONDS
        ).stdout

    def total() -> dict[str, int]:
        return json.loads(shown("-o", "json"))["total"]

    until(lambda: total()["warn"] == total()["fail"] == 3, "every result is counted")
    found = json.loads(shown("-o", "json"))
    assert [(item["rule"], item["fail"], item["warn"]) for item in found["policies"]] == [
        ("denies", 3, 0),
        ("warns", 0, 3),
    ]
    assert {item["name"] for item in found["resources"]} == {"bad0", "bad1", "bad2"}
    until(lambda: "confirmed by the audit that began 20" in shown(), "it is said since when")
    table = shown("--top=1")
    assert table.startswith("0 pass, 3 fail, 3 warn, 0 error, 0 skip, of 3 resources")
    assert "Denied/denies" in table
    assert "and 2 more" in table


def test_passes_and_skips_are_stored_when_they_are_asked_for(plane, audit):
    make_namespace(plane, "passing")
    put_config_map(plane, "passing", "good", "yes")
    plane.put_constraint(constraint("met", "no"))
    excluding = constraint("excluding", "no")
    excluding["spec"]["match"]["excludedNamespaces"] = ["passing"]
    plane.put_constraint(excluding)
    audit("--report-results=pass,skip")
    until(
        lambda: (
            "good" in by_scope(plane, "passing")
            and len(by_scope(plane, "passing")["good"]["results"]) == 2
        ),
        "it has a report",
    )
    report = by_scope(plane, "passing")["good"]
    assert rules(report) == [("excluding", "skip"), ("met", "pass")]
    assert report["summary"] == {"pass": 1, "fail": 0, "warn": 0, "error": 0, "skip": 1}


def test_reports_of_a_policy_in_a_namespace_are_split_and_owned_by_the_constraint(plane, audit):
    make_namespace(plane, "packed")
    make_namespace(plane, "packed-too", owner="somebody")
    for number in range(7):
        put_config_map(plane, "packed", f"bad{number}", "no")
    put_config_map(plane, "packed-too", "bad", "no")
    denies, idle = constraint("denies", "no"), constraint("idle", "nothing")
    for document in (denies, idle):
        document["spec"]["match"]["namespaces"] = [
            "packed*"
        ]  # objects of other tests have no report
    made = plane.put_constraint(denies)
    plane.put_constraint(idle)
    plane.put_constraint(reporting.labelled("owned", namespaces=["packed*"]))
    replica = audit("--report-mode=policy-namespace", "--report-max-entries=3")

    def sizes(namespace: str) -> dict[str, int]:
        return {
            item["metadata"]["name"]: len(item["results"]) for item in reports(plane, namespace)
        }

    names = [f"waddle-{number}.denied.denies" for number in range(3)]
    until(lambda: sizes("packed") == dict(zip(names, (3, 3, 1), strict=True)), "they are split")
    until(lambda: sizes("packed-too") == {names[0]: 1}, "each namespace has its own")
    until(lambda: sizes("") == {"waddle-0.labelled.owned": 1}, "so have cluster-wide kinds")
    first = reports(plane, "packed")[0]
    assert first["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    assert first["summary"]["fail"] == 3
    assert first["results"][0]["resources"][0]["name"] == "bad0"
    assert "scope" not in first

    await_sweeps(replica)
    before = reporting.writes(plane)
    await_sweeps(replica, 3)
    assert reporting.writes(plane) == before, "nothing changed, and nothing is written"

    put_config_map(plane, "packed", "bad0", "yes")
    reporting.delete_config_map(plane, "packed", "bad1")

    def reported() -> list[str]:
        entries = [entry for item in reports(plane, "packed") for entry in item["results"]]
        return sorted(entry["resources"][0]["name"] for entry in entries)

    # Entries move from one report to another, which are written one after another.
    until(
        lambda: reported() == [f"bad{number}" for number in range(2, 7)],
        lambda: f"what was repaired and deleted has left, and nothing else: {reported()}",
    )
    replica.kill()
    plane.delete_constraint("denies", "Denied")
    until(
        lambda: reports(plane, "packed") == [],
        "the garbage collector takes them with the constraint",
    )


def test_another_mode_takes_the_place_of_the_one_before(plane, audit):
    make_namespace(plane, "moved")
    put_config_map(plane, "moved", "bad", "no")
    plane.put_constraint(constraint("denies", "no"))
    by_policy = audit("--report-mode=policy-namespace")
    until(lambda: len(reports(plane, "moved")) == 1, "the policy has a report")
    by_policy.kill()
    plane.delete_pod("auditor")
    audit()
    until(
        lambda: ["scope" in item for item in reports(plane, "moved")] == [True],
        "the resource has a report, and the policy has none",
    )


def test_without_the_crds_nothing_but_the_log_speaks_of_reports(plane, audit):
    make_namespace(plane, "unserved")
    put_config_map(plane, "unserved", "bad", "no")
    plane.put_constraint(constraint("denies", "no"))
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    saved = plane.api.request("GET", f"{crds}/policyreports.wgpolicyk8s.io")
    manifest = {
        "apiVersion": saved["apiVersion"],
        "kind": saved["kind"],
        "metadata": {"name": saved["metadata"]["name"]},
        "spec": saved["spec"],
    }
    path = f"{crds}/policyreports.wgpolicyk8s.io"
    plane.api.request("DELETE", path)
    try:
        until(lambda: try_request(plane.api, "GET", path) is None, "the CRD is gone")
        replica = audit()
        replica.wait_for("reports are not served: install their CRDs (manifests/reports)")
    finally:
        plane.api.apply(path, manifest)
        until(lambda: reporting.is_established(plane, path), "it is served again")
    until(lambda: len(reports(plane, "unserved")) == 1, "the next sweep writes")
    assert json.dumps(reports(plane, "unserved")[0]["summary"])


def test_what_a_mutator_would_change_is_reported_and_forgotten_once_it_is_written(plane, audit):
    namespace = "drifting"
    make_namespace(plane, namespace)
    put_config_map(plane, namespace, "drifted", "yes")
    document = label(
        "owner",
        "owner",
        "nobody",
        match={
            "kinds": [{"apiGroups": [""], "kinds": ["ConfigMap"]}],
            "namespaces": [namespace],
            "name": "drifted",
        },
    )
    path = "/apis/mutations.gatekeeper.sh/v1/assignmetadata/owner"
    plane.api.apply(path, document)
    try:
        replica = audit("--report-mutation-drift")
        until(lambda: "drifted" in by_scope(plane, namespace, WGPOLICY), "it has a report")
        report = by_scope(plane, namespace, WGPOLICY)["drifted"]
        (result,) = report["results"]
        assert (result["policy"], result["rule"]) == ("AssignMetadata", "owner")
        assert (result["result"], result["category"]) == ("warn", "mutation")
        assert "would change /metadata/labels when the object is written" in result["message"]
        until(
            lambda: metric(replica, "waddle_mutation_drift_objects", mutator_name="owner") == 1,
            "the metric counts it",
        )
        stored = plane.api.request("GET", f"/api/v1/namespaces/{namespace}/configmaps/drifted")
        assert "labels" not in stored["metadata"]
        put_config_map(plane, namespace, "drifted", "yes", owner="somebody")
        until(lambda: "drifted" not in by_scope(plane, namespace, WGPOLICY), "its report is gone")
    finally:
        plane.api.request("DELETE", path)
