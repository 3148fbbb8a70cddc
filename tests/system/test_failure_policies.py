"""While no replica answers, only constraints that fail closed refuse requests."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import yaml

from tests.manifests import ROOT
from tests.patience import until
from tests.system.admission_calls import dry_run
from tests.system.condition_reading import conditions, says
from tests.system.conftest import ALL_OPERATIONS
from tests.system.proxy import Proxy
from tests.system.replicas import (
    CONSTRAINTS,
    WEBHOOKS,
    WORKLOADS,
    Plane,
    Replica,
    config_map,
    constraint,
    review_of,
    template,
)

NAME = "failure-policies"
COMPONENT = ROOT / "manifests/components/failure-policy-by-constraint/kustomization.yaml"
FAIL_CLOSED = {"waddle.dev/failure-policy": "fail"}


def fail_entry() -> dict[str, Any]:
    """The entry that fails closed, as the component has it."""
    (patch,) = yaml.safe_load(COMPONENT.read_text())["patches"]
    entry: dict[str, Any] = yaml.safe_load(patch["patch"])[-1]["value"]
    return entry


def register(plane: Plane, port: int) -> None:
    """Registers both entries, for ConfigMaps and Secrets of one namespace."""
    fail = fail_entry()
    rule = {"apiGroups": [""], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"]}
    ignore = fail | {"name": "validation.gatekeeper.sh", "failurePolicy": "Ignore"}
    mine = {"name": "mine", "expression": f"request.namespace == '{WORKLOADS}'"}
    for entry, path, resources in (
        (fail, "fail", ["configmaps"]),
        (ignore, "ignore", ["configmaps", "secrets"]),
    ):
        url = f"https://127.0.0.1:{port}/v1/admit/{path}"
        entry["clientConfig"] = {"url": url, "caBundle": plane.bundle}
        entry["rules"] = [{**rule, "resources": resources}]
        entry["matchConditions"] = [mine]
        entry["timeoutSeconds"] = 30
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME},
        "webhooks": [fail, ignore],
    }
    plane.api.apply(f"{WEBHOOKS}/{NAME}", body)


@pytest.fixture
def replicas(empty_plane: Plane) -> Iterator[list[Replica]]:
    """Three replicas that a test kills."""
    with ExitStack() as stack:
        started = []
        for number in range(3):
            name = f"closing-{number}"
            stack.callback(empty_plane.delete_pod, name)
            started.append(stack.enter_context(Replica(empty_plane, name, *ALL_OPERATIONS)))
        for replica in started:
            replica.wait_ready()
            empty_plane.mark_pod(replica.name, ready=True)
        yield started


@pytest.mark.slow(40)
def test_while_nobody_answers_only_what_fails_closed_is_refused(
    empty_plane: Plane, proxy: Proxy, replicas: list[Replica]
) -> None:
    plane = empty_plane
    proxy.replicas = list(replicas)
    closed, opened = constraint("closed", "closed"), constraint("opened", "opened")
    closed["metadata"]["annotations"] = FAIL_CLOSED
    opened["spec"]["match"]["kinds"][0]["kinds"] = ["ConfigMap", "Secret"]
    made = plane.put_template(template())
    until(lambda: plane.is_generated("denied", made["metadata"]["uid"]), "its CRD is there")
    try:
        register(plane, proxy.port)
        plane.put_constraint(closed)
        plane.put_constraint(opened)
        for word in ("closed", "opened"):
            until(
                lambda word=word: (
                    f"denied by {word}" in dry_run(plane, "configmaps", data={"deny": word})
                ),
                f"{word} is enforced",
            )
            until(
                lambda word=word: says(plane, f"{CONSTRAINTS}/denied/{word}", "Enforced", "3/3"),
                "all replicas say so",
            )
        for replica in replicas:
            review = review_of(config_map("closed"))
            other = replica.post(review, "/v1/admit/ignore?timeout=30s").verdict
            assert other["allowed"], "the constraint is the other entry's"
        _check_locked_out(plane)
        for replica in replicas:
            replica.kill()
        assert "failed calling webhook" in dry_run(plane, "configmaps", data={"deny": "nothing"})
        assert dry_run(plane, "secrets") == "admitted"
        plane.cluster.restart()
        # It is ready, and what recovers a cluster is written: leases, and all in other namespaces.
        refused = dry_run(plane, "configmaps", data={"deny": "nothing"})
        assert "fail-closed.validation.gatekeeper.sh" in refused
        assert dry_run(plane, "secrets") == "admitted"
        lease = {"metadata": {"name": "tried"}, "spec": {"holderIdentity": "me"}}
        leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases?dryRun=All"
        plane.api.request("POST", leases, lease)
    finally:
        plane.api.request("DELETE", f"{WEBHOOKS}/{NAME}")
        plane.delete_template("denied")


def _check_locked_out(plane: Plane) -> None:
    """A constraint that would lock the cluster out has the reason in its status."""
    everything = constraint("everything", "everything")
    everything["metadata"]["annotations"] = FAIL_CLOSED
    del everything["spec"]["match"]
    plane.put_constraint(everything)
    path = f"{CONSTRAINTS}/denied/everything"
    until(
        lambda: "would lock the cluster out" in str(conditions(plane, path)),
        lambda: f"it says why: {conditions(plane, path)}",
    )
    plane.delete_constraint("everything", "denied")
