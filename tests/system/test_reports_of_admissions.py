"""Policy reports of what is admitted: of what was let in and stays, with one write for each resource."""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.cluster import ApiError
from tests.patience import until
from tests.system import reporting
from tests.system.conftest import control_plane
from tests.system.replicas import (
    CONSTRAINTS,
    WEBHOOKS,
    WORKLOADS,
    Plane,
    Replica,
    config_map,
    constraint,
    try_request,
)
from tests.system.reporting import by_scope, metric, put_config_map, reports, rules

pytestmark = pytest.mark.slow

SERVE = ("--operation=webhook,status,generate", "--reports", "--report-debounce=300ms")
CONFIG_MAPS = f"/api/v1/namespaces/{WORKLOADS}/configmaps"
ALLOWED = "gatekeeper_validation_request_count_total"


Start = Callable[..., Replica]


def policies(plane: Plane) -> None:
    """Creates a constraint that denies, and two that admit."""
    plane.put_constraint(constraint("denies", "no"))
    for name, word, action in (("warns", "meh", "warn"), ("tries", "odd", "dryrun")):
        document = constraint(name, word)
        document["spec"]["enforcementAction"] = action
        plane.put_constraint(document)


def enforces_all(plane: Plane, replica: Replica) -> bool:
    """Whether a replica says so of each; they come into force in any order."""
    return all(
        any(
            entry["id"] == replica.name and entry["enforced"]
            for entry in plane.by_pod(f"{CONSTRAINTS}/denied/{name}")
        )
        for name in ("denies", "warns", "tries")
    )


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane with the reports' CRDs, whose writes are counted."""
    folder = tmp_path_factory.mktemp("admissions")
    with control_plane(folder, install=reporting.install) as made:
        made.put_template(reporting.TEMPLATE)
        yield made


@pytest.fixture
def start(plane: Plane) -> Iterator[Start]:
    """Starts replicas; those that serve admission are registered, each as a webhook of its own."""
    with ExitStack() as stack:

        def start_one(name: str, *flags: str) -> Replica:
            stack.callback(plane.delete_pod, name)
            replica = Replica(plane, name, *(flags or SERVE))
            stack.enter_context(replica)
            replica.wait_ready()
            if "admission" in replica.ports:
                policies(plane)
                until(lambda: enforces_all(plane, replica), "the policies are enforced")
                assert replica.denies("no")
                stack.callback(plane.unregister, name)
                plane.register(replica.ports["admission"], name)
                until(lambda: is_refused(plane), f"{name} is asked")
            return replica

        yield start_one
    # Replicas that run yet would write reports after these are deleted.
    try_request(plane.api, "DELETE", f"{CONSTRAINTS}/denied")
    reporting.delete_everywhere(plane)


def is_refused(plane: Plane) -> bool:
    """Whether the API server asks the webhook by now."""
    try:
        plane.api.request("POST", f"{CONFIG_MAPS}?dryRun=All", body("probe", "no"))
    except ApiError as error:
        return "denied by no" in error.body
    return False


def body(name: str, word: str, **labels: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": WORKLOADS, "labels": labels},
        "data": {"deny": word},
    }


def settle(plane: Plane) -> set[str]:
    """Wait until what was admitted has its report; the UIDs of what was admitted for that.

    Resources get their reports in the order of their admission, but for those of one
    moment: when one that was admitted after another has its own, all before have theirs.
    """
    uids = set()
    for number in range(3):
        name = f"fence-{number}"
        uids.add(put_config_map(plane, WORKLOADS, name, "odd")["metadata"]["uid"])
        until(lambda name=name: name in by_scope(plane, WORKLOADS), "the fence has its report")
    for number in range(3):
        reporting.delete_config_map(plane, WORKLOADS, f"fence-{number}")
    until(
        lambda: not any(name.startswith("fence") for name in by_scope(plane, WORKLOADS)),
        "the fences are collected",
    )
    return uids


def test_what_is_let_in_with_violations_has_a_report(plane, start):
    start("serving")
    warned = put_config_map(plane, WORKLOADS, "warned", "meh")
    put_config_map(plane, WORKLOADS, "tried", "odd")
    put_config_map(plane, WORKLOADS, "good", "fine")
    until(lambda: set(by_scope(plane, WORKLOADS)) == {"warned", "tried"}, "both have reports")
    found = by_scope(plane, WORKLOADS)
    assert rules(found["warned"]) == [("warns", "warn")]
    assert rules(found["tried"]) == [("tries", "fail")]
    assert found["warned"]["metadata"]["name"] == warned["metadata"]["uid"]
    put_config_map(plane, WORKLOADS, "warned", "fine")
    put_config_map(plane, WORKLOADS, "good", "odd")
    until(lambda: set(by_scope(plane, WORKLOADS)) == {"good", "tried"}, "reports follow updates")


def test_what_is_denied_tried_or_refused_by_another_has_none(plane, start):
    """Reports have no results of missing objects; the decision log has them."""
    replica = start("serving")
    refusing = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "refusing"},
        "webhooks": [
            {
                "name": "refusing.example.com",
                "admissionReviewVersions": ["v1"],
                "clientConfig": {"url": "https://127.0.0.1:1/", "caBundle": plane.bundle},
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "timeoutSeconds": 1,
                "objectSelector": {"matchLabels": {"refuse": "yes"}},
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["configmaps"],
                    }
                ],
            }
        ],
    }
    plane.api.apply(f"{WEBHOOKS}/refusing", refusing)
    try:

        def is_refused_by_the_other() -> bool:
            before = metric(replica, ALLOWED, admission_status="allow")
            try:
                plane.api.request("POST", CONFIG_MAPS, body("refused", "odd", refuse="yes"))
            except ApiError as error:
                allowed = metric(replica, ALLOWED, admission_status="allow") > before
                return "refusing.example.com" in error.body and allowed
            plane.api.request("DELETE", f"{CONFIG_MAPS}/refused")
            return False

        until(is_refused_by_the_other, "we let in what the other refuses")
        plane.api.request("POST", f"{CONFIG_MAPS}?dryRun=All", body("dry", "odd"))
        with pytest.raises(ApiError, match="denied by no"):
            plane.api.request("POST", CONFIG_MAPS, body("denied", "no"))
        put_config_map(plane, WORKLOADS, "there", "odd")
        until(lambda: "there" in by_scope(plane, WORKLOADS), "what is there has a report")
        settle(plane)
        assert set(by_scope(plane, WORKLOADS)) == {"there"}
    finally:
        plane.unregister("refusing")


def test_writes_are_bounded_by_resources_and_not_by_admissions(plane, start):
    """A rolling update: each of 30 objects is made and then changed eight times."""
    replica = start("serving")
    before = reporting.writes(plane)
    admitted = metric(replica, ALLOWED, admission_status="allow")
    for round_ in range(9):
        for number in range(30):
            put_config_map(plane, WORKLOADS, f"rolled-{number}", "odd", round=str(round_))
    until(lambda: len(reports(plane, WORKLOADS)) == 30, "each has a report")
    after = reporting.writes(plane, ignored=settle(plane))
    assert metric(replica, ALLOWED, admission_status="allow") - admitted >= 270
    assert dict(after - before) == {"create": 30}


def test_replicas_and_an_audit_that_write_the_same_reports_agree(plane, start):
    """Two replicas that both admitted each change, and an audit, race for every report."""
    first = start("first")
    second = start("second")
    auditor = start("auditor", "--operation=audit", "--audit-interval=1", "--reports")
    names = [f"raced-{number}" for number in range(8)]
    words = dict.fromkeys(names, "")

    def change(seed: int, own: list[str]) -> None:
        source = random.Random(seed)
        for _ in range(40):
            name = source.choice(own)
            words[name] = source.choice(["fine", "meh", "odd"])
            put_config_map(plane, WORKLOADS, name, words[name])
            threading.Event().wait(source.uniform(0, 0.1))

    threads = [threading.Thread(target=change, args=(n, names[n::2])) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = {
        name: [("warns", "warn")] if word == "meh" else [("tries", "fail")]
        for name, word in words.items()
        if word in ("meh", "odd")
    }

    def found() -> dict[str, list[tuple[str, str]]]:
        return {name: rules(report) for name, report in by_scope(plane, WORKLOADS).items()}

    settle(plane)
    for replica in (first, second):  # the one that wrote the fences' reports may be ahead
        reporting.await_written(replica)
    reporting.await_sweeps(auditor)
    until(lambda: found() == expected, lambda: f"all agree on {expected}: {found()}")
    for replica in (first, second):
        reporting.await_written(replica)
    before = reporting.writes(plane)
    reporting.await_sweeps(auditor, 3)
    assert reporting.writes(plane) == before, "they agree, and nobody writes any more"
    for process, replica in (("admission", first), ("admission", second), ("audit", auditor)):
        assert metric(replica, "waddle_reports_lost_total", process=process) == 0


def test_reports_of_policies_follow_admissions_too(plane, start):
    start("serving", *SERVE, "--report-mode=policy-namespace")
    for number in range(3):
        put_config_map(plane, WORKLOADS, f"packed-{number}", "odd")

    def entries() -> set[str]:
        return {
            entry["resources"][0]["name"]
            for item in reports(plane, WORKLOADS)
            for entry in item["results"]
        }

    until(lambda: entries() == {"packed-0", "packed-1", "packed-2"}, "all are in")
    assert [item["metadata"]["name"] for item in reports(plane, WORKLOADS)] == [
        "waddle-0.denied.tries"
    ]
    put_config_map(plane, WORKLOADS, "packed-0", "fine")
    until(lambda: entries() == {"packed-1", "packed-2"}, "what was repaired leaves")


def noted_in(plane: Plane) -> dict[str, list[dict[str, Any]]]:
    """By the resource's name, what only an admission can have found, in whichever reports."""
    found: dict[str, list[dict[str, Any]]] = {}
    for report in reports(plane, WORKLOADS):
        for entry in report["results"]:
            if entry.get("properties", {}).get("enforcementPoint"):
                about = entry.get("resources") or [report.get("scope")]
                found.setdefault(about[0]["name"], []).append(entry)
    return found


@pytest.mark.parametrize("mode", ["resource", "policy-namespace"])
def test_what_only_admissions_enforce_is_reported_until_its_resource_changes(plane, start, mode):
    """No audit finds it, so that an audit takes it away only where it speaks of another state."""
    replica = start("serving", *SERVE, f"--report-mode={mode}")
    for name, word in (("greets", "hey"), ("waves", "bye")):
        document = constraint(name, word)
        document["spec"] |= {
            "enforcementAction": "scoped",
            "scopedEnforcementActions": [
                {"action": "warn", "enforcementPoints": [{"name": "validation.gatekeeper.sh"}]}
            ],
        }
        plane.put_constraint(document)
    for word in ("hey", "bye"):
        until(lambda word=word: replica.admit(config_map(word)).get("warnings"), "it warns")
    words = {"stays": "hey", "edited": "hey", "repaired": "hey", "left": "bye", "deleted": "hey"}
    for name, word in words.items():
        put_config_map(plane, WORKLOADS, name, word)
    until(lambda: set(noted_in(plane)) == set(words), "each has a result")
    (found,) = noted_in(plane)["stays"]
    assert (found["rule"], found["result"]) == ("greets", "warn")
    assert found["properties"]["enforcementPoint"] == "validation.gatekeeper.sh"

    put_config_map(plane, WORKLOADS, "repaired", "fine")
    until(lambda: "repaired" not in noted_in(plane), "its next admission found nothing")

    before = reporting.writes_at_rest(plane)
    auditor = start(
        "auditor", "--operation=audit", "--audit-interval=1", "--reports", f"--report-mode={mode}"
    )
    reporting.await_sweeps(auditor)
    assert set(noted_in(plane)) == {"stays", "edited", "left", "deleted"}
    assert reporting.writes(plane) == before, "an audit leaves what it cannot find"
    reporting.delete_config_map(plane, WORKLOADS, "deleted")
    until(lambda: "deleted" not in noted_in(plane), "it has gone, and what was found in it")
    since = reporting.confirmed(plane)
    until(lambda: reporting.confirmed(plane) != since, "it is said that all reports hold")

    plane.unregister("serving")
    put_config_map(plane, WORKLOADS, "edited", "fine")
    until(lambda: set(noted_in(plane)) == {"stays", "left"}, "it is another resource")
    # Of constraints that audits enforce none is left: no sweep lists ConfigMaps any more.
    for name in ("denies", "warns", "tries", "waves"):
        plane.delete_constraint(name, "denied")
    until(lambda: set(noted_in(plane)) == {"stays"}, "its policy is gone")
    reporting.await_sweeps(auditor)
    assert set(noted_in(plane)) == {"stays"}
    put_config_map(plane, WORKLOADS, "stays", "changed")
    until(lambda: reports(plane, WORKLOADS) == [], "nobody was asked about the change")
