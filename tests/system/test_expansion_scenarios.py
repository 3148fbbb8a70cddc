"""Gatekeeper's own scenarios of expansion (test/bats), each by itself, at three replicas."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.system.mutating import (
    CRON_JOBS,
    DEPLOYMENTS,
    EXPANSIONS,
    LABELLED,
    OBJECTS,
    REPLICA_SETS,
    REQUIRED,
    allowed_by_all,
    clean,
    delete_required,
    deployment,
    enforce_constraint,
    enforced,
    expanded,
    expansion,
    post,
    refused,
    required,
    retracted,
    three,
)
from tests.system.replicas import Plane, Replica, try_request, until
from tests.webhook.mutation.documents import label

TRIAL = f"{DEPLOYMENTS}?dryRun=All"
ENV = "loadbalancers-must-have-env"
POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "n", "image": "nginx"}]}}
IMPLIED = "[Implied by expand-deployments] you must provide labels"


@pytest.fixture(scope="module")
def replicas(plane: Plane) -> Iterator[list[Replica]]:
    """Three replicas that know the template of required labels."""
    with three(plane) as (started, _):
        plane.put_template(REQUIRED)
        yield started
        delete_required(plane)


@pytest.fixture(autouse=True)
def cleaned(plane: Plane, replicas: list[Replica]) -> Iterator[None]:
    """Deletes the test's policies after it."""
    assert replicas
    yield
    clean(plane, replicas)
    for name in (ENV, f"{ENV}-gen"):
        if try_request(plane.api, "GET", f"{LABELLED}/{name}"):
            plane.delete_constraint(name, "K8sRequiredLabels")
    allowed_by_all(replicas, {"apiVersion": "v1", "kind": "Pod", **POD})


def of_deployments(**spec: Any) -> Any:
    """The template that says what Deployments and ReplicaSets make."""
    kinds = ["Deployment", "ReplicaSet"]
    return expansion("expand-deployments", kinds, "spec.template", ("", "Pod"), **spec)


def pods_need_env(plane: Plane, replicas: list[Replica]) -> None:
    """Expands Deployments, and requires the label on Pods."""
    expanded(plane, of_deployments(), replicas)
    enforce_constraint(plane, required(ENV, "Pod", "env"), replicas)


def cron_job() -> dict[str, Any]:
    """A CronJob whose Pods have no label."""
    containers = [{"name": "nginx", "image": "nginx:1.14.2"}]
    pod = {"spec": {"restartPolicy": "OnFailure", "containers": containers}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "my-cronjob"},
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": pod}}},
    }


def replica_set() -> dict[str, Any]:
    """The ReplicaSet of the Deployment, as its controller would make it."""
    found = deployment()
    return {**found, "kind": "ReplicaSet", "metadata": {"name": "nginx-deployment-1"}}


def test_the_status_of_a_template_names_it_as_it_is(plane: Plane, replicas: list[Replica]) -> None:
    expanded(plane, of_deployments(), replicas)
    path = f"{EXPANSIONS}/expand-deployments"
    uid = plane.api.request("GET", path)["metadata"]["uid"]
    assert {entry["templateUID"] for entry in plane.by_pod(path)} == {uid}


def test_a_deployment_is_refused_for_the_pods_it_would_make(
    plane: Plane, replicas: list[Replica]
) -> None:
    pods_need_env(plane, replicas)
    assert IMPLIED in refused(plane, TRIAL, deployment())
    assert plane.api.request("POST", TRIAL, deployment(env="prod"))


def test_a_deployment_whose_pods_a_mutator_makes_compliant_is_admitted_as_it_came(
    plane: Plane, replicas: list[Replica]
) -> None:
    pods_need_env(plane, replicas)
    match = {"source": "Generated", "scope": "Namespaced"}
    env = label("add-env-label", "env", "prod", match=match)
    enforced(plane, env, replicas)
    made = plane.api.request("POST", TRIAL, deployment())
    assert made["spec"]["template"]["metadata"]["labels"] == {"app": "nginx"}
    retracted(plane, env, replicas)
    assert IMPLIED in refused(plane, TRIAL, deployment())


def test_a_template_that_warns_admits_and_the_audit_tells_of_what_is_there(
    plane: Plane, replicas: list[Replica]
) -> None:
    """Of the Deployment and of its ReplicaSet, one each."""
    pods_need_env(plane, replicas)
    expanded(plane, of_deployments(enforcementAction="warn"), replicas)
    assert plane.api.request("POST", DEPLOYMENTS, deployment())
    assert plane.api.request("POST", REPLICA_SETS, replica_set())
    name = "scenario-auditor"
    auditor = Replica(
        plane,
        name,
        "--operation=audit",
        "--audit-interval=1",
        labels={"app.kubernetes.io/name": "waddle", "gatekeeper.sh/operation": "audit"},
    )
    try:
        with auditor:
            auditor.wait_ready()

            def audit_violations() -> list[dict[str, Any]]:
                status = plane.api.request("GET", f"{LABELLED}/{ENV}").get("status") or {}
                return status.get("violations") or [] if status.get("totalViolations") == 2 else []

            until(audit_violations, "the audit tells of two violations")
            violations = audit_violations()
    finally:
        plane.delete_pod(name)
    assert {item["kind"] for item in violations} == {"Deployment", "ReplicaSet"}
    assert all(item["message"].startswith(IMPLIED) for item in violations)
    assert {item["enforcementAction"] for item in violations} == {"warn"}


def test_a_constraint_about_generated_objects_leaves_original_ones_alone(
    plane: Plane, replicas: list[Replica]
) -> None:
    expanded(plane, of_deployments(), replicas)
    generated = required(f"{ENV}-gen", "Pod", "env", source="Generated")
    enforce_constraint(plane, generated, replicas)
    assert IMPLIED in refused(plane, TRIAL, deployment())
    until(lambda: try_request(plane.api, "GET", f"{OBJECTS}/serviceaccounts/default"), "accounts")
    assert post(plane, "pods?dryRun=All", POD)


def follow_cron_jobs(plane: Plane, replicas: list[Replica]) -> None:
    """Expands CronJobs and their Jobs."""
    of_cron_jobs = expansion("expand-cronjobs", ["CronJob"], "spec.jobTemplate", ("batch", "Job"))
    expanded(plane, of_cron_jobs, replicas)
    expanded(plane, expansion("expand-jobs", ["Job"], "spec.template", ("", "Pod")), replicas)


def test_a_cron_job_is_refused_for_the_pods_of_the_jobs_it_would_make(
    plane: Plane, replicas: list[Replica]
) -> None:
    generated = required(f"{ENV}-gen", "Pod", "env", source="Generated")
    enforce_constraint(plane, generated, replicas)
    follow_cron_jobs(plane, replicas)
    why = refused(plane, f"{CRON_JOBS}?dryRun=All", cron_job())
    assert "[Implied by expand-jobs] you must provide labels" in why


def test_all_templates_of_a_cycle_say_so_and_are_out(plane: Plane, replicas: list[Replica]) -> None:
    generated = required(f"{ENV}-gen", "Pod", "env", source="Generated")
    enforce_constraint(plane, generated, replicas)
    follow_cron_jobs(plane, replicas)
    of_pods = expansion("expand-pods", ["Pod"], "spec.foo", ("batch", "CronJob"))
    plane.api.apply(f"{EXPANSIONS}/expand-pods", of_pods)
    names = {replica.name for replica in replicas}
    for name in ("expand-pods", "expand-cronjobs", "expand-jobs"):
        path = f"{EXPANSIONS}/{name}"

        def reports_circle(path: str = path) -> bool:
            errors = [{"message": "template forms expansion cycle"}]
            return names <= {
                entry["id"] for entry in plane.by_pod(path) if entry.get("errors") == errors
            }

        until(reports_circle, f"{name} says that it is part of a circle")
    assert plane.api.request("POST", f"{CRON_JOBS}?dryRun=All", cron_job())
