"""A baseline: an exception for each constraint and what somebody wrote, and for nothing more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.webhook.constraint.policies import client, constraint, template
from webhook.exceptions.baseline import (
    LABEL,
    Owner,
    StandingViolation,
    baseline,
    closed,
    implied,
    naming_owner,
    selector_labels,
)
from webhook.exceptions.reading import read_exception
from webhook.exceptions.writing import ExceptionTerms

if TYPE_CHECKING:
    from webhook.constraint.constraint import Constraint

TERMS = ExceptionTerms("moves in May", "2099-05-31T00:00:00Z", ticket="OPS-1")
WEB = Owner("apps", "Deployment", "web", (("app", "web"),))


def violated(allows: str = "all") -> Constraint:
    """A constraint that allows these exceptions."""
    document = constraint(name="no")
    if allows:
        document["metadata"]["annotations"] = {"waddle.dev/exceptions": allows}
    (made,) = client(template(), document).snapshot.constraints
    return made


def pod(
    name: str, owner: Owner | None = None, allows: str = "all", **labels: str
) -> StandingViolation:
    """A Pod that violates it."""
    labels = labels or dict(() if owner is None else owner.labels)
    return StandingViolation(violated(allows), "", "Pod", "shop", name, owner, labels)


def written(*violations: StandingViolation, **terms: Any) -> list[dict[str, Any]]:
    """The exceptions, all of which can be read."""
    made = baseline(violations, TERMS._replace(**terms))
    for one in made:
        read_exception(one)
    return made


def test_pods_of_one_deployment_have_one_exception_that_its_next_ones_have_too() -> None:
    (made,) = written(pod("web-5f9-aaaaa", WEB), pod("web-5f9-bbbbb", WEB), pod("web-77c-c", WEB))
    assert (made["apiVersion"], made["kind"]) == ("waddle.dev/v1alpha1", "PolicyException")
    assert made["metadata"]["namespace"] == "shop"
    assert made["metadata"]["labels"] == {LABEL: "true"}
    assert made["spec"] == {
        "constraints": [{"kind": "K8sDeny", "name": "no"}],
        "match": {
            "kinds": [{"apiGroups": [""], "kinds": ["Pod"]}],
            "name": "web-*",
            "labelSelector": {"matchLabels": {"app": "web"}},
        },
        "effect": "skip",
        "reason": "moves in May",
        "ticket": "OPS-1",
        "expires": "2099-05-31T00:00:00Z",
    }


def test_what_nobody_made_is_excused_by_its_name_alone() -> None:
    (made,) = written(pod("web-1"))
    assert made["spec"]["match"]["name"] == "web-1"


def test_each_kind_and_owner_has_its_own() -> None:
    deployment = StandingViolation(violated(), "apps", "Deployment", "shop", "web")
    other = Owner("apps", "Deployment", "web-api", (("app", "api"),))
    made = written(pod("web-5f9-a", WEB), pod("web-api-5f9-a", other), deployment)
    assert len({one["metadata"]["name"] for one in made}) == 3
    assert {one["spec"]["match"]["name"] for one in made} == {"web", "web-*", "web-api-*"}


def test_workloads_of_the_same_name_each_have_their_own() -> None:
    """Only the first had an exception, and the Pods of the others were refused."""
    database = Owner("apps", "StatefulSet", "web", (("app", "db"),))
    made = written(pod("web"), pod("web-5f9-a", WEB), pod("web-0", database))
    assert len({one["metadata"]["name"] for one in made}) == 3
    matches = [one["spec"]["match"] for one in made]
    assert sorted(
        (match["name"], match.get("labelSelector", {}).get("matchLabels", {}).get("app", ""))
        for match in matches
    ) == [("web", ""), ("web-*", "db"), ("web-*", "web")]


def test_an_owner_whose_name_its_objects_do_not_have_excuses_each_by_its_own() -> None:
    odd = Owner("example.com", "Runner", "blue")
    (made,) = written(pod("green-1", odd))
    assert made["spec"]["match"] == {
        "kinds": [{"apiGroups": [""], "kinds": ["Pod"]}],
        "name": "green-1",
    }


def test_pods_of_an_owner_with_a_long_name_have_its_beginning() -> None:
    """The API server cuts the beginning of a generated name: each Pod had its own exception."""
    name = f"{'a' * 57}bc"
    owner = Owner("apps", "Deployment", name)
    (made,) = written(pod(f"{name[:58]}12345", owner), pod(f"{name[:58]}54321", owner))
    assert made["spec"]["match"]["name"] == f"{name[:58]}*"
    replica_set = StandingViolation(violated(), "apps", "ReplicaSet", "shop", f"{name}-5f9", owner)
    (made,) = written(replica_set)
    assert made["spec"]["match"]["name"] == f"{name}-*"


def test_a_selector_that_selects_other_objects_does_not_limit_the_exception() -> None:
    """As that of a Prometheus, which selects monitors: its own Pods had no exception."""
    owner = Owner("monitoring.coreos.com", "Prometheus", "k8s", (("team", "front"),))
    (made,) = written(pod("k8s-0", owner, app="prometheus"))
    assert made["spec"]["match"] == {
        "kinds": [{"apiGroups": [""], "kinds": ["Pod"]}],
        "name": "k8s-*",
    }


def test_an_operator_s_workload_of_another_name_is_the_owner_of_its_pods() -> None:
    """Each Pod was excused by its own name alone, and its next one was refused."""
    resource = Owner("grafana.example.com", "Grafana", "main")
    deployment = Owner("apps", "Deployment", "grafana", (("app", "grafana"),))
    replica_set = Owner("apps", "ReplicaSet", "grafana-5f9", (("app", "grafana"),))
    owners = [replica_set, deployment, resource]
    assert naming_owner("grafana-5f9-aaaaa", owners) == deployment
    assert naming_owner("grafana-5f9", owners[1:]) == deployment
    assert naming_owner("grafana", owners[2:]) == resource
    named = resource._replace(name="grafana")
    assert naming_owner("grafana-5f9-aaaaa", [*owners, named]) == named
    of_deployment = StandingViolation(violated(), "apps", "Deployment", "shop", "grafana")
    made = implied(of_deployment, owners[1:], ("", "Pod"))
    assert (made.name, made.owner) == ("grafana-", deployment)


@pytest.mark.parametrize("name", ["web", f"{'a' * 57}bc"])
def test_what_an_owner_will_make_has_the_exception_of_what_it_has_made(name: str) -> None:
    """A CronJob without a Job, or a Deployment of no replicas: its first Pod was refused."""
    owner = Owner("apps", "Deployment", name, (("app", "web"),))
    deployment = StandingViolation(violated(), "apps", "Deployment", "shop", name)
    of_pod = pod(f"{name}-5f9-"[:58] + "aaaaa", owner)
    (made,) = written(implied(deployment, [owner], ("", "Pod")), of_pod)
    assert written(of_pod) == [made]


@pytest.mark.parametrize("allows", ["", "cluster"])
def test_constraints_that_allow_those_of_the_cluster_alone_get_them(allows: str) -> None:
    (made,) = written(pod("web-1", allows=allows))
    assert made["kind"] == "ClusterPolicyException"
    assert "namespace" not in made["metadata"]
    assert made["spec"]["match"]["namespaces"] == ["shop"]
    (wide,) = written(pod("web-1"), of_cluster=True)
    assert wide["kind"] == "ClusterPolicyException"


def test_what_allows_none_is_named_and_left() -> None:
    one = pod("web-1", allows="none")
    assert written(one) == []
    assert closed([one, pod("web-2")]) == ["K8sDeny/no"]


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("widgets.example.com", "widgets.example.com"),
        ("system:Role_1", "system:Role_1"),
        ("a*b", "a*"),
        ("*a*b", "*b"),
    ],
)
def test_any_name_is_excused_by_itself(name: str, pattern: str) -> None:
    """Names with dots were cut at the first, so that others were excused as well."""
    (made,) = written(StandingViolation(violated(""), "rbac", "ClusterRole", "", name))
    assert made["spec"]["match"]["name"] == pattern
    read_exception(made)


def test_the_uid_in_the_selector_of_a_job_is_not_of_the_job_that_takes_its_place() -> None:
    """A Job that was deleted and created anew could not make its Pods."""
    labels = {"batch.kubernetes.io/controller-uid": "5f9c", "app": "migrate"}
    job = {"metadata": {"uid": "5f9c"}, "spec": {"selector": {"matchLabels": labels}}}
    assert selector_labels(job) == (("app", "migrate"),)


@pytest.mark.parametrize(
    "document",
    [{}, {"spec": None}, {"spec": {"selector": {"app": "x"}}}, {"spec": {"selector": []}}],
)
def test_an_owner_without_a_selector_has_no_labels(document: Any) -> None:
    assert selector_labels(document) == ()
